"""What a run uses but does not depend on, made ready: jax, progress, Ctrl-C."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moie.learn.config import require
from moie.learn.runtime import prepare
from moie.runs.config import whole
from moie.runs.listening import Callback, Listeners, check_callbacks
from moie.stopping import stoppable
from moie.system import n_cores


def n_workers(given: int | None) -> int:
    """As many as the user wants, or as there are free cores."""
    if given is None:
        return n_cores()
    return whole("workers", given)


def check_timeout(seconds: float) -> None:
    """InputError if a worker can not be waited for that long."""
    expected = "a positive number of seconds, at most a year"
    require(0 < seconds <= 366 * 86_400, "worker_timeout", seconds, expected)


@contextmanager
def machinery(
    workers: int | None,
    worker_timeout: float,
    packaged_env: bool,
    quiet: bool,
    callbacks: Sequence[Callback] = (),
) -> Iterator[Any]:
    """A `training.Machinery`; jax is not imported before this."""
    count = n_workers(workers)
    check_timeout(worker_timeout)
    check_callbacks(callbacks)
    prepare()
    from moie.runs.progress import Progress
    from moie.runs.training import Machinery

    with stoppable() as check:
        progress, listeners = Progress(quiet), Listeners(callbacks)
        yield Machinery(count, worker_timeout, packaged_env, progress, check, listeners)

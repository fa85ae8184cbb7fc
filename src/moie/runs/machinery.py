"""The surroundings of a run: jax, workers, progress, Ctrl-C and callbacks."""

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moie.errors import Stopped, StoppedByCallback, require
from moie.learn.runtime import prepare
from moie.runs.config import whole
from moie.runs.progress import Progress
from moie.stopping import stoppable
from moie.system import n_cores

Callback = Callable[[Mapping[str, Any]], bool | None]
"""Called with each row of `metrics.jsonl`; False stops the run."""


@dataclass(frozen=True)
class Machinery:
    """Workers, progress, Ctrl-C and callbacks of a run. They change nothing that it learns."""

    workers: int
    worker_timeout: float
    packaged_env: bool
    """Step PyBullet's walkers as they are packaged, not by `environments.bullet`."""
    progress: Progress
    check: Callable[[], None]
    """Called often; raises `Stopped` when the user wants to stop."""
    callbacks: tuple[Callback, ...] = ()
    """With callbacks, each iteration waits for its evaluation: they get complete rows."""

    def tell(self, row: Mapping[str, Any]) -> None:
        """Call every callback with the row; then stop the run if one of them wants that."""
        wishes: list[Stopped] = []
        for callback in self.callbacks:
            try:
                if callback(dict(row)) is False:
                    wishes.append(StoppedByCallback("stopped by a callback"))
            except Stopped as wish:
                wishes.append(wish)
        if wishes:
            raise wishes[0]


def n_workers(given: int | None) -> int:
    """As many workers as the user wants, or as there are free cores."""
    return n_cores() if given is None else whole("workers", given)


def check_timeout(seconds: float) -> None:
    """InputError if a worker cannot be waited for that long."""
    expected = "a positive number of seconds, at most a year"
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    require(is_number and 0 < seconds <= 366 * 86_400, "worker_timeout", seconds, expected)


@contextmanager
def machinery(
    workers: int | None,
    worker_timeout: float,
    packaged_env: bool,
    quiet: bool,
    callbacks: Sequence[Callback] = (),
    accelerator: bool = False,
) -> Iterator[Machinery]:
    """Check the arguments, then import jax and catch Ctrl-C."""
    count = n_workers(workers)
    check_timeout(worker_timeout)
    are_functions = isinstance(callbacks, Sequence) and all(map(callable, callbacks))
    require(are_functions, "callbacks", callbacks, "a list of functions")
    prepare(accelerator)
    with stoppable() as check:
        progress = Progress(quiet)
        yield Machinery(count, worker_timeout, packaged_env, progress, check, tuple(callbacks))

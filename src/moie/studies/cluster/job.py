"""Work on one run in a process of the cluster. An error of one run must not end the study."""

import dataclasses
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from moie.environments import specs
from moie.errors import Busy, InputError, Stopped
from moie.runs.config import RunConfig, differences
from moie.runs.disk.directory import RunDirectory
from moie.runs.machinery import machinery

End = Literal["done", "stopped", "busy", "failed", "died"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How an attempt ended; "died": the process is gone."""

    end: End
    error: str = ""
    details: str = ""  # a traceback, where the error is not the user's to mend
    node: str = ""
    seconds: float = 0.0


def work(
    path: Path,
    config: RunConfig,
    spec: bytes,
    workers: int,
    timeout: float,
    foreign: tuple[str, ...] = (),
) -> Outcome:
    """Train to the configuration's number of iterations, from wherever the run stands. `spec` is
    the task, as `specs.pack` gives it; `foreign` are folders that Ray, not the user, has added to
    the search path of modules."""

    def act() -> None:
        sys.path[:] = [folder for folder in sys.path if folder not in foreign]
        specs.unpack(spec)
        _train_or_resume(path, config, workers, timeout)

    return attempted(act, _node())


def attempted(act: Callable[[], None], node: str = "") -> Outcome:
    """Do something to runs; how it ended."""
    began = time.monotonic()
    end: End = "done"
    error = details = ""
    try:
        act()
    except Stopped as stop:
        end, error = "stopped", str(stop)
    except Busy as busy:
        end, error = "busy", str(busy)
    except InputError as wrong:
        end, error = "failed", str(wrong)
    except Exception as fault:
        end, error = "failed", f"{type(fault).__name__}: {' '.join(str(fault).split())}"
        details = traceback.format_exc()
    return Outcome(end, error, details, node, time.monotonic() - began)


def _train_or_resume(path: Path, wanted: RunConfig, workers: int, timeout: float) -> None:
    if not (path / "run.json").exists():
        try:
            RunDirectory.create(path, wanted)
        except InputError:
            if not (path / "run.json").exists():  # otherwise another process was faster
                raise
    for name, old, new in differences(RunDirectory(path).read_config(), wanted):
        raise InputError(f"{path} was made with {name} = {old}, the study wants {new}")
    with machinery(workers, timeout, packaged_env=False, quiet=True) as parts:
        import jax

        from moie.runs import lifecycle

        try:
            lifecycle.resume(path, parts, wanted.iterations)
        finally:
            jax.clear_caches()  # the next run of this process may be another learner's


def _node() -> str:
    """The cluster's name for this machine; empty outside a cluster."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""

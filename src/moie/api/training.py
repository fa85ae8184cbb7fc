"""Functions that start and continue a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moie.api.policies import find_task
from moie.api.run import Run
from moie.errors import StoppedByCallback

if TYPE_CHECKING:
    from moie.environments.catalogue import Task
    from moie.runs.config import RunConfig
    from moie.runs.machinery import Callback


def tasks() -> tuple[Task, ...]:
    """The paper's tasks: short name, Gymnasium id, names of features and joints. Any other
    Gymnasium id works too."""
    from moie.environments.catalogue import TASKS

    return TASKS


@contextmanager
def _machinery(*options: Any) -> Iterator[Any]:
    """A run's machinery; a callback that returns False ends the run without an error."""
    from moie.runs.machinery import machinery

    with machinery(*options) as parts:
        try:
            yield parts
        except StoppedByCallback as stop:
            parts.progress.note(str(stop))


def task_preset(task: str, algorithm: str | None = None) -> RunConfig:
    """The settings that a task and an algorithm get where the user gives none; InputError if they
    are not usable."""
    from moie.learn import registry
    from moie.runs import presets

    return presets.task_preset(task, registry.DEFAULT if algorithm is None else algorithm)


def default_out(config: RunConfig, end: str = "") -> Path:
    """runs/TASK[-ALGORITHM][-kEXPERTS]-sSEED, with a number behind if that is taken. `end`: instead
    of the seed."""
    from moie.learn import registry

    name = re.sub(r"[^\w.-]+", "_", config.task)
    learner = config.learner
    who = "" if learner.algorithm == registry.DEFAULT else f"-{learner.algorithm}"
    size = f"-k{learner.policy.experts}" if learner.has_experts else ""
    base = Path("runs") / f"{name}{who}{size}-{end or f's{config.seed}'}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def train_config(
    config: RunConfig,
    out: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train with a complete configuration; `steps` overrides its iterations."""
    from moie.runs.config import with_steps
    from moie.runs.disk.directory import RunDirectory

    config = with_steps(config, steps)
    path = default_out(config) if out is None else Path(out)
    RunDirectory.check_free(path)
    with _machinery(workers, worker_timeout, packaged_env, quiet, callbacks) as parts:
        from moie.runs import lifecycle

        lifecycle.train(path, config, parts)
    return Run(path)


def train(
    task: str,
    *,
    algorithm: str | None = None,
    experts: int | None = None,
    seed: int | None = None,
    steps: int | None = None,
    iterations: int | None = None,
    callbacks: Sequence[Callback] = (),
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train a policy on a task; the paper's settings on the paper's tasks.

    Args:
        task: a Gymnasium id, or a short name that `moie.tasks()` lists.
        algorithm: "moie" (the default), "crisp" or one of the baselines.
        experts: number of experts; default: 10.
        seed: seed of everything random in the run; default: 0.
        steps: environment steps to learn from, rounded up to whole batches.
        iterations: batches to learn from, if `steps` is not given; the default depends on the task.
        callbacks: functions that are called after each iteration with its row of the metrics (and
            with the final evaluation's). One that returns False stops the run: `train` returns,
            and `resume` continues from there. One that raises `moie.Stopped` does the same, but
            `train` raises it. With callbacks an evaluation holds up training until it is complete.
            `moie.callbacks` has callbacks for experiment trackers.
        out: the run directory, which must not exist; default: runs/TASK-...
        workers: simulation processes; default: number of cores. Does not change the result.
        worker_timeout: seconds after which a worker that does not respond is replaced.
        packaged_env: step PyBullet's walkers with their original code. Slower; does not change the
            result.
        quiet: show no progress.
        settings: any other setting that `moie train --help` lists, with underscores.
    """
    from moie.runs.config import with_settings

    named = {"algorithm": algorithm, "experts": experts, "seed": seed, "iterations": iterations}
    settings |= {name: value for name, value in named.items() if value is not None}
    config = with_settings(task_preset(task, algorithm), settings)
    return train_config(config, out, steps, workers, worker_timeout, packaged_env, quiet, callbacks)


def resume(
    path: str | os.PathLike[str],
    *,
    iterations: int | None = None,
    callbacks: Sequence[Callback] = (),
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
) -> Run:
    """Continue a run that was stopped or killed. It ends with the same policy as if it had never
    stopped. Of a swarm, whose runs continue together, the folder is returned.

    Args:
        path: the run directory, or the folder of a swarm.
        iterations: train up to this many iterations; default: as many as the run was started for.
        callbacks: see `moie.train`.
        task: "MODULE:ID", if a module of yours registers the run's task.
        trust_task: import the module of a task "module:Id" that the run names. It may run any code.
        workers, worker_timeout, packaged_env, quiet: see `moie.train`.
    """
    from moie.accelerated.folder import check_single, is_swarm
    from moie.runs.config import whole
    from moie.runs.disk.directory import RunDirectory

    if iterations is not None:
        iterations = whole("iterations", iterations)
    if is_swarm(Path(path)):
        with _machinery(workers, worker_timeout, False, quiet, callbacks, True) as parts:
            from moie.accelerated import lifecycle as swarms

            swarms.resume(Path(path), parts, iterations)
        return Run(Path(path))
    check_single(Path(path))
    find_task(RunDirectory.open(Path(path)).read_config().task, task, trust_task, path)
    with _machinery(workers, worker_timeout, packaged_env, quiet, callbacks) as parts:
        from moie.runs import lifecycle

        lifecycle.resume(Path(path), parts, iterations)
    return Run(Path(path))

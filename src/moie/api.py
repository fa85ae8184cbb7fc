"""The Python interface. Imports stay inside the functions: acting with a policy needs no jax."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moie.errors import InputError
from moie.stopping import stoppable
from moie.terminal import printable

if TYPE_CHECKING:
    from moie.policy.base import Policy
    from moie.runs.config import RunConfig
    from moie.runs.measured import Measured


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path

    @property
    def policy(self) -> Policy:
        """The policy as it stands."""
        return load(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row an iteration; a warning names lines that cannot be read."""
        from moie.runs.disk.directory import RunDirectory
        from moie.runs.disk.metrics import read

        file = RunDirectory.open(self.path).metrics_file
        found = read(file)
        if found.problems:
            warnings.warn(f"{file}: {'; '.join(found.problems)}", stacklevel=2)
        return found.rows

    def show(self) -> str:
        """The policy as a program of IF blocks: `print` it."""
        from moie.explanation.program import program

        return program(self.policy)

    def evaluate(self, **options: Any) -> Measured:
        """Measure the policy: returns, lengths, how literally it may be read. See
        `api.evaluate`."""
        return evaluate(self.path, **options)

    def explain(self, **options: Any) -> Path:
        """Write the explanation of the policy; the path of its report. See `api.explain`."""
        return explain(self.path, **options)

    def prune(self, **options: Any) -> tuple[dict[str, Any], Path]:
        """Remove the experts that the policy does not need. See `api.prune`."""
        return prune(self.path, **options)


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy of a run directory or of a policy file. Loading executes nothing."""
    from moie.runs.disk.directory import load_policy

    return load_policy(path)


def task_preset(task: str, algorithm: str | None = None) -> RunConfig:
    """The settings that a task and an algorithm get where the user gives none; InputError if they
    are not usable."""
    from moie.learn import registry
    from moie.runs import presets

    return presets.task_preset(task, registry.DEFAULT if algorithm is None else algorithm)


def default_out(config: RunConfig) -> Path:
    """runs/TASK[-ALGORITHM][-kEXPERTS]-sSEED, with a number behind if that is taken."""
    from moie.learn import registry

    name = re.sub(r"[^\w.-]+", "_", config.task)
    learner = config.learner
    who = "" if learner.algorithm == registry.DEFAULT else f"-{learner.algorithm}"
    size = f"-k{learner.policy.experts}" if learner.has_experts else ""
    base = Path("runs") / f"{name}{who}{size}-s{config.seed}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def train_config(
    config: RunConfig,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
) -> Run:
    """Train by a complete configuration."""
    from moie.runs.disk.directory import RunDirectory
    from moie.runs.machinery import machinery

    path = default_out(config) if out is None else Path(out)
    RunDirectory.check_free(path)
    with machinery(workers, worker_timeout, packaged_env, quiet) as parts:
        from moie.runs import lifecycle

        return Run(lifecycle.train(path, config, parts).path)


def train(
    task: str,
    *,
    steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train a policy on a task; the paper's settings on the paper's tasks.

    Args:
        task: a Gymnasium id, or a short name that `moie tasks` lists.
        steps: environment steps to learn from, instead of `iterations`.
        out: the run directory, which must not exist; runs/TASK-... without one.
        workers: processes that simulate; as many as there are cores without. Changes no result.
        worker_timeout: seconds without a sign of life after which a worker is replaced.
        packaged_env: step PyBullet's walkers as they are packaged. Slower; changes no result.
        quiet: show no progress.
        settings: any setting of `moie train TASK --help`: `experts=10`, `seed=0`, ...
    """
    from moie.runs.config import with_settings

    config = with_settings(task_preset(task, settings.get("algorithm")), settings)
    if steps is not None:
        config = with_settings(config, {"iterations": iterations_for(steps, config)})
    return train_config(config, out, workers, worker_timeout, packaged_env, quiet)


def iterations_for(steps: int, config: RunConfig) -> int:
    """Whole batches that make up at least so many steps."""
    from moie.runs.config import whole

    return -(-whole("steps", steps) // config.batch_steps)


def resume(
    path: str | os.PathLike[str],
    *,
    iterations: int | None = None,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    packaged_env: bool = False,
    quiet: bool = False,
) -> Run:
    """Go on with a run that was stopped or killed, exactly where it would have gone. `task` and
    `trust_task`: see `find_task`."""
    from moie.runs.config import whole
    from moie.runs.disk.directory import RunDirectory
    from moie.runs.machinery import machinery

    if iterations is not None:
        iterations = whole("iterations", iterations)
    find_task(RunDirectory.open(Path(path)).read_config().task, task, trust_task, path)
    with machinery(workers, worker_timeout, packaged_env, quiet) as parts:
        from moie.runs import lifecycle

        return Run(lifecycle.resume(Path(path), parts, iterations).path)


def find_task(name: str, given: str | None, trust_task: bool, path: str | os.PathLike[str]) -> None:
    """Make the task of a run or a policy file known here. One that a script or a notebook of the
    user's registered is not, in another process: then `given`, "MODULE:ID", says which module
    registers it. A module that only the file names is imported with the user's consent,
    `trust_task`, unless it is one of ours or loaded already."""
    from moie.environments import consent, tasks
    from moie.learn.config import require

    bare = tasks.bare(name)
    if given is not None:
        module, env_id = given.rpartition(":")[0], tasks.bare(given)
        require(bool(module) and env_id == bare, "task", given, f"MODULE:{bare}")
        tasks.resolve(given)
    consent.check_consent(name, trust_task, path)
    if given is None and name == bare:
        try:
            tasks.resolve(name)
        except tasks.Unknown as error:
            named = f"MODULE:{printable(bare)}"
            raise InputError(
                f"{path} was trained on {name!r}, which is not registered here; name the module "
                f"that registers it: --task {named}, in Python task={named!r} (a module that "
                "trains should do so under if __name__ == '__main__' only)"
            ) from error


def evaluate(
    path: str | os.PathLike[str],
    *,
    episodes: int = 20,
    seed: int = 1_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
) -> Measured:
    """Measure a run's policy, or a policy file's: `print` it, or look at `sampled.mean`,
    `mean.returns` and so on. `task` and `trust_task`: see `find_task`."""
    from moie.runs.config import whole
    from moie.runs.machinery import n_workers
    from moie.runs.measured import evaluate as measure

    episodes, seed = whole("episodes", episodes), whole("seed", seed, 0)
    count, policy = n_workers(workers), load(path)
    find_task(policy.task, task, trust_task, path)
    with stoppable() as check:
        return measure(policy, episodes, seed, count, check=check)


def _settings(episodes: int, seed: int, loss: float, workers: int | None, **options: Any) -> Any:
    from moie.explanation.write import Settings
    from moie.learn.config import require
    from moie.runs.config import whole
    from moie.runs.machinery import n_workers

    episodes, seed = whole("episodes", episodes, 2), whole("seed", seed, 0)
    require(0 <= loss < 1, "loss", loss, "zero or more, below 1")
    return Settings(episodes, seed, loss, n_workers(workers), **options)


def explain(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    episodes: int = 10,
    seed: int = 2_000_000,
    loss: float = 0.05,
    actions: str = "mean",
    pruning: bool = True,
    pictures: bool = True,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    quiet: bool = False,
) -> Path:
    """Write the explanation of a run's policy, or of a policy file's; the path of its report.
    `task` and `trust_task`: see `find_task`."""
    from moie.explanation.write import explain_run
    from moie.learn.config import require
    from moie.present.stages import Stages

    require(actions in ("mean", "sampled"), "actions", actions, "mean or sampled")
    options = {"actions": actions, "with_pruning": pruning, "with_pictures": pictures}
    settings = _settings(episodes, seed, loss, workers, **options)
    folder = None if out is None else Path(out)
    find_task(load(path).task, task, trust_task, path)
    with stoppable() as check:
        return explain_run(Path(path), folder, settings, Stages(quiet), check)


def prune(
    path: str | os.PathLike[str],
    *,
    loss: float = 0.05,
    out: str | os.PathLike[str] | None = None,
    episodes: int = 10,
    seed: int = 2_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    quiet: bool = False,
) -> tuple[dict[str, Any], Path]:
    """Remove the experts that a policy does not need: what was measured, and the smaller policy's
    file. `task` and `trust_task`: see `find_task`."""
    from moie.explanation.write import prune_run
    from moie.present.stages import Stages

    settings = _settings(episodes, seed, loss, workers)
    file = None if out is None else Path(out)
    find_task(load(path).task, task, trust_task, path)
    with stoppable() as check:
        return prune_run(Path(path), file, settings, Stages(quiet), check)

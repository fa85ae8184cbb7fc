"""A run on disk."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from moie.api import exporting, policies, workshop
from moie.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    from moie.api.training import resume as _resume
    from moie.policy.base import Policy
else:

    def _resume(path: Path, **options: Any) -> Run:
        from moie.api.training import resume

        return resume(path, **options)


def _method(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Run, P], R]:
    """A function of a run's path, with all its options, as a method of the run."""

    @functools.wraps(function)
    def method(run: Run, *given: P.args, **options: P.kwargs) -> R:
        return function(run.path, *given, **options)

    return method


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk. It is also a path: whatever takes a run directory takes a `Run`."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        from moie.accelerated import folder
        from moie.runs.disk.directory import RunDirectory

        run = RunDirectory(self.path)
        try:
            if folder.is_swarm(self.path):
                seeds = ", ".join(map(str, folder.read(self.path).seeds))
                return f"<swarm {self.path}: seeds {seeds}>"
            config = run.read_config()
            done = f"{run.iterations_saved()} of {config.iterations} iterations"
            said = f"{config.task}, {config.learner.algorithm}, seed {config.seed}, {done}"
        except (InputError, OSError):
            said = "not a run that can be read"
        return f"<run {self.path}: {said}>"

    @property
    def policy(self) -> Policy:
        """The policy as it stands."""
        return policies.load(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row per iteration; a warning names lines that cannot be read."""
        from moie.runs.disk.directory import RunDirectory
        from moie.runs.disk.metrics import read

        file = RunDirectory.open(self.path).metrics_file
        metrics = read(file)
        if metrics.problems:
            warnings.warn(f"{file}: {'; '.join(metrics.problems)}", stacklevel=2)
        return metrics.rows

    resume = _method(_resume)
    """Continue the run where it stopped. See `moie.resume`."""
    show = _method(policies.show)
    """The policy as a program of IF blocks: `print` it."""
    evaluate = _method(policies.evaluate)
    """Measure the policy. See `moie.evaluate`."""
    explain = _method(policies.explain)
    """Write a report about the policy and return its path. See `moie.explain`."""
    prune = _method(policies.prune)
    """Remove the experts that the policy does not need. See `moie.prune`."""
    edit = _method(policies.edit)
    """Change the policy by hand and measure what that costs. See `moie.edit`."""
    studio = _method(workshop.studio)
    """Open a page where the policy acts live and can be changed by hand. See `moie.studio`."""
    export = _method(exporting.export)
    """Write the policy in another language. See `moie.export`."""

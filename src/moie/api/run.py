"""A run on disk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moie.api import policies
from moie.errors import InputError

if TYPE_CHECKING:
    from typing import Unpack

    from moie.api.options import EvaluateOptions, ExplainOptions, PruneOptions, ResumeOptions
    from moie.explanation.facts.schema import Pruning
    from moie.policy.base import Policy
    from moie.runs.truth import Measured


@dataclass(frozen=True, repr=False)
class Run:
    """A run on disk. It is also a path: whatever takes a run directory takes a `Run`."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        from moie.runs.disk.directory import RunDirectory

        run = RunDirectory(self.path)
        try:
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

    def resume(self, **options: Unpack[ResumeOptions]) -> Run:
        """Continue the run where it stopped. See `moie.resume`."""
        from moie.api.training import resume

        return resume(self.path, **options)

    def show(self) -> str:
        """The policy as a program of IF blocks: `print` it."""
        return policies.show(self.path)

    def evaluate(self, **options: Unpack[EvaluateOptions]) -> Measured:
        """Measure the policy. See `moie.evaluate`."""
        return policies.evaluate(self.path, **options)

    def explain(self, **options: Unpack[ExplainOptions]) -> Path:
        """Write a report about the policy and return its path. See `moie.explain`."""
        return policies.explain(self.path, **options)

    def prune(self, **options: Unpack[PruneOptions]) -> tuple[Pruning, Path]:
        """Remove the experts that the policy does not need. See `moie.prune`."""
        return policies.prune(self.path, **options)

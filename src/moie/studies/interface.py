"""Studies and comparisons in Python. Imports stay inside the functions, as in `moie.api`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moie.extras import need
from moie.stopping import stoppable

if TYPE_CHECKING:
    from moie.studies.declaration import Planned, Study
    from moie.studies.status import RunStatus


@dataclass(frozen=True)
class StudyRuns:
    """A study on disk: where it lies, which of its runs are meant, and how they are doing."""

    path: Path
    name: str
    statuses: list[RunStatus]
    misfits: list[str] = field(default_factory=list)
    """Runs that the study would refuse, and why."""
    damaged: list[str] = field(default_factory=list)
    """What is wrong with the metrics of runs."""

    @property
    def unfinished(self) -> list[RunStatus]:
        """Runs that are not done."""
        return [status for status in self.statuses if status.state != "done"]

    @property
    def failed(self) -> list[RunStatus]:
        """Runs that were given up."""
        return [status for status in self.statuses if status.state == "failed"]

    def compare(self, *more: str | os.PathLike[str], **options: Any) -> Path:
        """Write the comparison of all runs; the path of its page. See `compare`."""
        return compare(self.path, *more, **options)


def _study(
    study: str | os.PathLike[str] | Study,
    out: str | os.PathLike[str] | None,
    iterations: int | None,
    part: dict[str, Any],
) -> tuple[Path, Study, list[Planned], list[Planned]]:
    """Folder, declaration, all its runs, and those that are meant."""
    from moie.studies.declaration import Study, plan
    from moie.studies.subset import part_of, with_iterations
    from moie.studies.toml_file import load as load_study

    if isinstance(study, Study):
        declared, planned = study, plan(study)
    else:
        declared, planned = load_study(os.fspath(study))
    folder = Path("runs") / declared.name if out is None else Path(out)
    meant = with_iterations(part_of(planned, **part), iterations)
    return folder, declared, planned, meant


def study(
    study: str | os.PathLike[str] | Study,
    *,
    out: str | os.PathLike[str] | None = None,
    address: str | None = None,
    cpus: int | None = None,
    cpus_per_run: int = 1,
    iterations: int | None = None,
    worker_timeout: float = 300.0,
    quiet: bool = False,
    **part: Any,
) -> StudyRuns:
    """Make all runs of a study, or go on with them.

    Args:
        study: the name of a study that comes with moie, a TOML file, or a `moie.studies` Study.
        out: the study's folder; runs/NAME without one.
        address: of the Ray cluster to join; one is started here, and stopped, without.
        cpus: of the cluster that is started here; as many as there are cores without.
        cpus_per_run: CPUs that a run gets.
        iterations: go up to so many in each run, for now.
        worker_timeout: seconds without a sign of life after which a simulating process is replaced.
        quiet: show no progress.
        part: only the runs with these `tasks`, `algorithms`, `experts` or `seeds`.
    """
    need("pandas", "pyarrow")
    from moie.studies.cluster.ray_cluster import Resources
    from moie.studies.conduct import prepare, run_study
    from moie.studies.progress import StudyProgress

    resources = Resources(address, cpus, cpus_per_run, worker_timeout)
    folder, declared, planned, meant = _study(study, out, iterations, part)
    with stoppable() as check:
        prepare(folder, declared, planned, meant, resources)
        progress = StudyProgress(declared.name, quiet)
        return StudyRuns(
            folder, declared.name, run_study(folder, meant, resources, progress, check)
        )


def study_status(
    study: str | os.PathLike[str] | Study,
    *,
    out: str | os.PathLike[str] | None = None,
    iterations: int | None = None,
    **part: Any,
) -> StudyRuns:
    """How far a study is, wherever it runs."""
    from moie.studies.folder import misfits
    from moie.studies.status import damage, look

    folder, declared, _, meant = _study(study, out, iterations, part)
    statuses = [look(folder, one) for one in meant]
    damaged = [text for one in meant for text in damage(folder, one)]
    return StudyRuns(folder, declared.name, statuses, misfits(folder, meant).found, damaged)


def compare(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    quiet: bool = False,
) -> Path:
    """Compare the runs of a folder, or of a file of curves; the path of the page that shows it.

    Args:
        path: a study's folder, any folder of runs, or a .parquet file of curves or evaluations.
        more: others, whose runs are compared together with those of the first.
        out: the folder to write; PATH/comparison without one, where there is one path only. An
            older comparison is replaced.
        steps: compare after so many environment steps; where the shortest complete runs of a task
            end, without.
        quiet: show no progress.
    """
    need("pandas", "pyarrow", "scipy")
    from moie.comparison.write import compare as compare_runs
    from moie.learn.config import require
    from moie.present.stages import Stages

    good = steps is None or (isinstance(steps, int) and steps >= 1)
    require(good, "steps", steps, "at least 1")
    with stoppable() as check:
        folder = None if out is None else Path(out)
        paths = [Path(one) for one in (path, *more)]
        return compare_runs(paths, folder, steps=steps, progress=Stages(quiet), check=check)

"""Studies and comparisons in Python. Imports stay inside the functions, as in `moie.api`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from moie.extras import need
from moie.stopping import stoppable

if TYPE_CHECKING:
    from moie.studies.declaration import Planned, Study, Values
    from moie.studies.engines import Engine
    from moie.studies.status import RunStatus


@dataclass(frozen=True, repr=False)
class StudyRuns:
    """A study on disk: its folder, and the state of its runs, or of the chosen ones."""

    path: Path
    name: str
    statuses: list[RunStatus]
    misfits: list[str] = field(default_factory=list)  # runs that the study would refuse, and why
    damaged: list[str] = field(default_factory=list)  # damage to the metrics of runs

    def __repr__(self) -> str:
        counts = Counter(status.state for status in self.statuses)
        said = [f"{counts.pop('done', 0)} of {len(self.statuses)} runs done"]
        said += [f"{count} {state}" for state, count in sorted(counts.items())]
        return f"<study {self.name} in {self.path}: {', '.join(said)}>"

    @property
    def unfinished(self) -> list[RunStatus]:
        """Runs that are not done."""
        return [status for status in self.statuses if status.state != "done"]

    @property
    def failed(self) -> list[RunStatus]:
        """Runs that were given up."""
        return [status for status in self.unfinished if status.state == "failed"]

    def compare(
        self,
        *more: str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        steps: int | None = None,
        algorithms: str | Sequence[str] | None = None,
        quiet: bool = False,
    ) -> Path:
        """Compare all runs and return the path of the page that shows it. See `moie.compare`."""
        return compare(self.path, *more, out=out, steps=steps, algorithms=algorithms, quiet=quiet)


def _study(
    study: str | os.PathLike[str] | Study,
    out: str | os.PathLike[str] | None,
    iterations: int | None,
    engine: Engine,
    **dimensions: Values | None,
) -> tuple[Path, Study, list[Planned], list[Planned]]:
    """Folder, declaration, all its runs, and the chosen ones."""
    from moie.studies.declaration import Study, part, plan
    from moie.studies.engines import with_engine
    from moie.studies.toml_file import load as load_study

    if isinstance(study, Study):
        declared, planned = study, plan(study)
    else:
        declared, planned = load_study(os.fspath(study))
    folder = Path("runs") / declared.name if out is None else Path(out)
    planned = with_engine(planned, engine)
    meant = part(planned, dimensions)
    if iterations is not None:
        meant = [replace(p, config=replace(p.config, iterations=iterations)) for p in meant]
    return folder, declared, planned, meant


def study(
    study: str | os.PathLike[str] | Study,
    *,
    out: str | os.PathLike[str] | None = None,
    engine: Engine = "ray",
    address: str | None = None,
    cpus: int | None = None,
    cpus_per_run: int = 1,
    iterations: int | None = None,
    tasks: Values | None = None,
    algorithms: Values | None = None,
    experts: Values | None = None,
    seeds: Values | None = None,
    worker_timeout: float = 300.0,
    quiet: bool = False,
) -> StudyRuns:
    """Start all runs of a study, or continue them.

    Args:
        study: the name of a study that comes with moie, a TOML file, or a `moie.Study`.
        out: the study's folder; default: runs/NAME.
        engine: "ray": every run by itself, on the processors; "swarm": all seeds of a learner on a
            MuJoCo task at once, on an accelerator if there is one, and the other runs as with
            "ray".
        address: address of the Ray cluster to join; default: start one on this machine, and stop
            it at the end.
        cpus: CPUs of the cluster that is started here, and processes that evaluate the policies of
            a swarm; default: number of cores.
        cpus_per_run: CPUs for each run.
        iterations: train each run up to this many iterations for now.
        tasks, algorithms, experts, seeds: only the study's runs with these.
        worker_timeout: seconds after which a simulation process that does not respond is replaced.
        quiet: show no progress.
    """
    need("pandas", "pyarrow")
    from moie.studies.cluster.ray_cluster import Resources
    from moie.studies.conduct import prepare, run_study
    from moie.studies.progress import StudyProgress

    resources = Resources(address, cpus, cpus_per_run, worker_timeout)
    chosen = {"tasks": tasks, "algorithms": algorithms, "experts": experts, "seeds": seeds}
    folder, declared, planned, meant = _study(study, out, iterations, engine, **chosen)
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
    engine: Engine = "ray",
    iterations: int | None = None,
    tasks: Values | None = None,
    algorithms: Values | None = None,
    experts: Values | None = None,
    seeds: Values | None = None,
) -> StudyRuns:
    """How far a study is, wherever it runs. The arguments are those of `moie.study`."""
    from moie.studies.status import damage, look, misfits

    chosen = {"tasks": tasks, "algorithms": algorithms, "experts": experts, "seeds": seeds}
    folder, declared, _, meant = _study(study, out, iterations, engine, **chosen)
    statuses = [look(folder, one) for one in meant]
    damaged = [text for one in meant for text in damage(folder, one)]
    return StudyRuns(folder, declared.name, statuses, misfits(folder, meant).lines, damaged)


def compare(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    algorithms: str | Sequence[str] | None = None,
    quiet: bool = False,
) -> Path:
    """Compare the runs of a folder, or of a file of curves, and return the path of the page.

    Args:
        path: a study's folder, any folder of runs, or a .parquet file of curves or evaluations.
        more: further paths, whose runs are compared together with those of the first.
        out: the folder to write; default, for a single path: PATH/comparison. An older comparison
            is replaced.
        steps: compare after this many environment steps; default: where the shortest complete runs
            of a task end.
        algorithms: compare only runs of these; default: all.
        quiet: show no progress.
    """
    need("pandas", "pyarrow", "scipy")
    from moie.comparison.write import compare as compare_runs
    from moie.present.stages import Stages
    from moie.runs.config import whole

    steps = None if steps is None else whole("steps", steps)
    algorithms = [algorithms] if isinstance(algorithms, str) else algorithms
    with stoppable() as check:
        folder = None if out is None else Path(out)
        paths = [Path(one) for one in (path, *more)]
        return compare_runs(
            paths,
            folder,
            steps=steps,
            algorithms=algorithms,
            progress=Stages(quiet),
            check=check,
        )

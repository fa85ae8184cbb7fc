"""Cells of a study as swarms, one after the other. An error of one must not end the study."""

import functools
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from moie.accelerated.folder import is_swarm
from moie.errors import Stopped
from moie.files import remove_leftovers
from moie.learn.runtime import prepare
from moie.runs.disk.directory import RunDirectory
from moie.runs.machinery import Machinery, n_workers
from moie.runs.progress import Progress
from moie.studies.cluster.job import Outcome, attempted
from moie.studies.cluster.ray_cluster import Resources
from moie.studies.cluster.scheduler import log
from moie.studies.declaration import Planned
from moie.studies.engines import Cell, cells
from moie.studies.progress import StudyProgress
from moie.studies.status import diverged, forget_failures, look, write_failure


def is_finished(folder: Path, cell: Cell) -> bool:
    """Whether there is nothing to do: all seeds are done, or have diverged, which they would do
    again."""
    return all(
        look(folder, one).state == "done" or diverged(RunDirectory(folder / one.name))
        for one in cell.runs
    )


def go(
    folder: Path,
    planned: list[Planned],
    resources: Resources,
    progress: StudyProgress,
    check: Callable[[], None],
) -> None:
    """Train the cells that are not finished, in this process."""
    left = [cell for cell in cells(planned) if not is_finished(folder, cell)]
    if not left:
        return
    prepare(accelerator=True)
    machinery = Machinery(
        n_workers(resources.cpus),
        resources.worker_timeout,
        packaged_env=False,
        progress=Progress(progress.quiet),
        check=check,
    )
    try:
        for number, cell in enumerate(left, 1):
            check()
            progress.note(f"swarm {number} of {len(left)}: {cell.name}")
            _one(folder, cell, machinery, progress)
    except Stopped:
        raise Stopped("stopped; the same command goes on") from None


def _one(folder: Path, cell: Cell, machinery: Machinery, progress: StudyProgress) -> None:
    if any(look(folder, one).state == "running" for one in cell.runs):
        progress.note(f"busy: {cell.name}: another process is working on it")
        return
    forget_failures(folder, cell.runs)
    outcome = attempted(functools.partial(_train_or_resume, folder, cell, machinery))
    for one in cell.runs:
        _ended(folder, one, outcome)
    if outcome.end == "stopped":
        raise Stopped(outcome.error)
    n_done = sum(look(folder, one).state == "done" for one in cell.runs)
    said = f"{cell.name}, {n_done} of {len(cell.runs)} seeds"
    progress.note(f"{outcome.end}: {said}" + (f": {outcome.error}" if outcome.error else ""))


def _ended(folder: Path, one: Planned, outcome: Outcome) -> None:
    """Write down how a run of a cell ended."""
    status = look(folder, one)
    if status.state == "done":
        outcome = Outcome("done", seconds=outcome.seconds)
    elif error := diverged(RunDirectory(folder / one.name)):
        outcome = Outcome("failed", error, seconds=outcome.seconds)
    elif outcome.end == "failed" and status.state != "running":
        write_failure(folder, one.name, {"run": one.name, "attempts": 1, **asdict(outcome)})
    log(folder, status, outcome)


def _train_or_resume(folder: Path, cell: Cell, machinery: Machinery) -> None:
    import jax

    from moie.accelerated import lifecycle

    path, config = folder / cell.name, cell.runs[0].config
    try:
        if is_swarm(path):
            lifecycle.resume(path, machinery, config.iterations)
            return
        remove_leftovers(path)
        for one in cell.runs:  # of a swarm that was killed before it was complete
            RunDirectory(folder / one.name).remove()
        lifecycle.start(path, config, cell.seeds, None, machinery)
    finally:
        jax.clear_caches()  # the next cell has a program of its own

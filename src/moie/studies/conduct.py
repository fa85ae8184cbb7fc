"""`moie study`: check everything, make the runs, then collect their curves."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moie.accelerated.catalogue import check_task
from moie.comparison import collect, curves
from moie.comparison.checking import STUDY_FILE, STUDY_FORMAT
from moie.environments import tasks
from moie.errors import InputError
from moie.extras import need
from moie.files import as_json, write_bytes, writing
from moie.runs.config import flat, to_json
from moie.studies import swarms
from moie.studies.cluster import ray_cluster
from moie.studies.cluster.ray_cluster import Resources
from moie.studies.cluster.supervisor import Supervision
from moie.studies.declaration import Mistakes, Planned, Study
from moie.studies.progress import StudyProgress
from moie.studies.status import RunStatus, check_folder, look, misfits


def declaration(study: Study, planned: list[Planned]) -> dict[str, Any]:
    """The content of study.json: the study, all settings of its first run, and of each run those
    that differ."""
    settings = [flat(json.loads(json.dumps(to_json(one.config)))) for one in planned]
    first = settings[0]
    runs = [
        {"run": one.name, "settings": {n: v for n, v in own.items() if v != first[n]}}
        for one, own in zip(planned, settings, strict=True)
    ]
    texts = {"format": STUDY_FORMAT, "name": study.name, "description": study.description}
    return {**texts, "settings": first, "runs": runs}


def prepare(
    folder: Path, study: Study, planned: list[Planned], meant: list[Planned], resources: Resources
) -> None:
    """Check everything, then write study.json. A study that is refused changes nothing."""
    check_folder(folder, study.name)
    misfits(folder, meant).check(f"{folder} does not fit the study: it")
    left = [one for one in meant if look(folder, one).state != "done"]
    if left:
        _check_installed(study.name, left)
    if any(not one.config.environments for one in left):
        need("ray")
        ray_cluster.check(resources)
    content = declaration(study, planned)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / STUDY_FILE, as_json(content))


def _check_installed(name: str, planned: list[Planned]) -> None:
    """InputError unless the tasks of these runs can be simulated here."""
    mistakes = Mistakes()
    mistakes.sift("tasks", list(dict.fromkeys(one.config.task for one in planned)), tasks.resolve)
    in_swarms = [one.config.task for one in planned if one.config.environments]
    mistakes.sift("tasks", list(dict.fromkeys(in_swarms)), check_task)
    mistakes.check(f"study {name}")


def run_study(
    folder: Path,
    planned: list[Planned],
    resources: Resources,
    progress: StudyProgress,
    check: Callable[[], None],
) -> list[RunStatus]:
    """Make the runs that are not done, those in swarms first, and collect all curves however that
    ends."""
    others = [one for one in planned if not one.config.environments]
    if all(look(folder, one).state == "done" for one in planned):
        progress.note(f"all {len(planned)} runs are done")
    else:
        try:
            swarms.go(folder, planned, resources, progress, check)
            if any(look(folder, one).state != "done" for one in others):
                Supervision(folder, others, resources, progress, check).go()
        except Exception:
            with contextlib.suppress(InputError, OSError):  # the first error is raised below
                write_curves(folder)
            raise
    write_curves(folder)
    return [look(folder, one) for one in planned]


def write_curves(folder: Path) -> None:
    """Write the curves of all present runs into one file."""
    if collect.run_directories(folder):
        curves.write(collect.read_runs(folder), folder / collect.CURVES_FILE)

"""`moie study`: everything is checked first, then the runs are made, then their curves gathered."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from moie.errors import InputError
from moie.learn.config import require
from moie.rollout import tasks
from moie.runs.config import RunConfig, differences, flat, to_json
from moie.runs.directory import RunDirectory
from moie.runs.files import as_json, write_bytes, writing
from moie.studies import curves, gathering
from moie.studies.cluster import Resources, check_ray
from moie.studies.declaration import OWN, Mistakes, Planned, Study, Values, listed
from moie.studies.progress import StudyProgress
from moie.studies.status import RunStatus, failure_file
from moie.studies.supervision import Supervision


def part_of(planned: list[Planned], **chosen: Values | None) -> list[Planned]:
    """The runs with the chosen values; a value that no run has is a mistake."""
    for dimension, given in chosen.items():
        expected = f"one of {', '.join(OWN.values())}"
        require(dimension in OWN.values(), "part of a study", dimension, expected)
        if given is None:
            continue
        values = listed(given)
        if dimension == "tasks":
            values = [tasks.resolve(task) for task in values]
        present = {_value(one.config, dimension) for one in planned}
        for value in values:
            expected = ", ".join(str(v) for v in sorted(present, key=str) if v is not None)
            require(value in present, dimension, value, f"some of those in the study: {expected}")
        # learners without experts have no number of them to choose
        planned = [p for p in planned if _value(p.config, dimension) in (*values, None)]
    return planned


def _value(config: RunConfig, dimension: str) -> Any:
    learner = config.learner
    if dimension == OWN["experts"]:
        return learner.policy.experts if learner.has_experts else None
    values = {"tasks": config.task, "algorithms": learner.algorithm, "seeds": config.seed}
    return values[dimension]


def with_iterations(planned: list[Planned], iterations: int | None) -> list[Planned]:
    """The same runs, up to another number of iterations."""
    if iterations is None:
        return planned
    return [replace(p, config=replace(p.config, iterations=iterations)) for p in planned]


def check_runs(folder: Path, planned: list[Planned]) -> None:
    """InputError if runs that are there already were made with other settings: all of them."""
    mistakes = Mistakes()
    for one in planned:
        path = folder / one.name
        if not (path / "run.json").exists():
            if path.exists() and not (path.is_dir() and not any(path.iterdir())):
                mistakes.add(one.name, "exists and is not a run")
            continue
        try:
            there = RunDirectory(path).read_config()
        except InputError as error:
            mistakes.add(one.name, error)
            continue
        for name, old, new in differences(there, one.config):
            mistakes.add(one.name, f"was made with {name} = {old}, the study wants {new}")
    mistakes.check(f"{folder} does not fit the study: it")


def declaration(study: Study, planned: list[Planned]) -> dict[str, Any]:
    """The settings of the first run, and of every run what is different from them."""
    settings = [flat(json.loads(json.dumps(to_json(one.config)))) for one in planned]
    first = settings[0]
    runs = [
        {"run": one.name, "settings": {n: v for n, v in own.items() if v != first[n]}}
        for one, own in zip(planned, settings, strict=True)
    ]
    said = {"name": study.name, "description": study.description}
    return {"format": curves.STUDY_FORMAT, **said, "settings": first, "runs": runs}


def write_declaration(folder: Path, study: Study, planned: list[Planned]) -> None:
    """study.json: all runs that the study wants, with their exact configurations."""
    content = declaration(study, planned)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / gathering.STUDY_FILE, as_json(content))


def run_study(
    folder: Path,
    planned: list[Planned],
    resources: Resources,
    progress: StudyProgress,
    check: Callable[[], None],
) -> list[RunStatus]:
    """Make the runs that are not done, and gather all curves however that ends."""
    for one in planned:
        failure_file(folder, one.name).unlink(missing_ok=True)
    supervision = Supervision(folder, planned, resources, progress, check)
    if all(status.state == "done" for status in supervision.statuses()):
        progress.note(f"all {len(planned)} runs are done")
    else:
        check_ray()
        try:
            supervision.go()
        except BaseException:
            with contextlib.suppress(InputError):  # what is raised already is the news
                write_curves(folder)
            raise
    write_curves(folder)
    return supervision.statuses()


def write_curves(folder: Path) -> None:
    """The curves of all runs that there are, in one file."""
    if gathering.run_directories(folder):
        curves.write(gathering.gather(folder), folder / gathering.CURVES_FILE)

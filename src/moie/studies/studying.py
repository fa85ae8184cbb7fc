"""`moie study`: everything is checked first, then the runs are made, then their curves gathered."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from moie.errors import InputError
from moie.learn.config import require
from moie.runs.config import RunConfig, flat, to_json
from moie.runs.directory import RunDirectory
from moie.runs.files import as_json, write_bytes, writing
from moie.studies import curves
from moie.studies.cluster import Resources, check_ray
from moie.studies.declaration import OWN, Mistakes, Planned, Study
from moie.studies.progress import StudyProgress
from moie.studies.status import RunStatus
from moie.studies.supervision import Supervision

FORMAT = "moie-study"


def part_of(planned: list[Planned], **chosen: Sequence[Any] | None) -> list[Planned]:
    """The runs with the chosen values; a value that no run has is a mistake."""
    for dimension, values in chosen.items():
        if values is None:
            continue
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
            if path.exists() and any(path.iterdir()):
                mistakes.add(one.name, "exists and is not a run")
            continue
        try:
            there = RunDirectory(path).read_config()
        except InputError as error:
            mistakes.add(one.name, error)
            continue
        for name, old, new in _differences(there, one.config):
            mistakes.add(one.name, f"was made with {name} = {old}, the study wants {new}")
    mistakes.check(f"{folder} does not fit the study: it")


def _differences(old: RunConfig, new: RunConfig) -> list[tuple[str, Any, Any]]:
    """Settings that differ, other than the number of iterations."""
    before, after = flat(to_json(old)), flat(to_json(new))
    names = [name for name in before if name != "iterations" and before[name] != after[name]]
    return [(name, before[name], after[name]) for name in names]


def write_declaration(folder: Path, study: Study, planned: list[Planned]) -> None:
    """study.json: all runs that the study wants, with their exact configurations."""
    runs = [{"run": one.name, "config": to_json(one.config)} for one in planned]
    content = {"format": FORMAT, "name": study.name, "description": study.description}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / curves.STUDY_FILE, as_json(content | {"runs": runs}))


def run_study(
    folder: Path,
    planned: list[Planned],
    resources: Resources,
    progress: StudyProgress,
    check: Callable[[], None],
) -> list[RunStatus]:
    """Make the runs that are not done, and gather all curves however that ends."""
    supervision = Supervision(folder, planned, resources, progress, check)
    if all(status.state == "done" for status in supervision.statuses()):
        progress.note(f"all {len(planned)} runs are done")
    else:
        check_ray()
        try:
            supervision.go()
        finally:
            write_curves(folder)
    return supervision.statuses()


def write_curves(folder: Path) -> None:
    """The curves of all runs that there are, in one file."""
    if curves.run_directories(folder):
        curves.write(curves.gather(folder), folder / curves.CURVES_FILE)

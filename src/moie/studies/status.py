"""A study's folder: whether it fits the study, and how far its runs are, from files alone."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from moie.accelerated.folder import NAME, is_swarm
from moie.accelerated.folder import read as read_swarm
from moie.comparison.checking import STUDY_FILE, STUDY_FORMAT
from moie.errors import InputError
from moie.files import DAMAGE, as_json, parse_json, read_bytes, write_bytes, writing
from moie.runs.config import differences
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import Row, read, read_last
from moie.studies.declaration import Mistakes, Planned
from moie.studies.engines import Cell, cells

State = Literal["waiting", "running", "stopped", "failed", "done"]
PACE_ROWS = 20


@dataclass(frozen=True)
class RunStatus:
    """The state of a run. "stopped": begun, and nobody works on it."""

    name: str
    state: State
    iteration: int = 0  # iterations that are complete
    wanted: int = 0
    value: float | None = None  # return of the last evaluation with sampled actions
    pace: float | None = None  # seconds per iteration
    error: str = ""

    @property
    def seconds_left(self) -> float | None:
        return None if self.pace is None else self.pace * (self.wanted - self.iteration)


def check_folder(folder: Path, name: str) -> None:
    """InputError if the folder is a run, or belongs to another study or program."""
    if (folder / "run.json").exists():
        raise InputError(f"{folder} is a run, not the folder of a study; choose another --out")
    file = folder / STUDY_FILE
    if not file.exists():
        return
    content = None
    with contextlib.suppress(*DAMAGE):
        content = parse_json(read_bytes(file))
    if not isinstance(content, dict) or content.get("format") != STUDY_FORMAT:
        raise InputError(f"{file} was not written by moie study; choose another --out")
    if content.get("name") != name:
        raise InputError(
            f"{folder} is the folder of the study {content.get('name')!r}, not of {name!r}; choose "
            "another --out"
        )


def misfits(folder: Path, planned: list[Planned]) -> Mistakes:
    """Runs that exist already, but were made with other settings."""
    mistakes = Mistakes()
    for one in planned:
        path = folder / one.name
        if not (path / "run.json").exists():
            if path.exists() and not (path.is_dir() and not any(path.iterdir())):
                mistakes.add(one.name, "exists and is not a run")
            continue
        with mistakes.caught(one.name):
            for name, old, new in differences(RunDirectory(path).read_config(), one.config):
                said = f"was made with {name} = {old}, the study wants {new}"
                if name == "environments" and 0 in (old, new):
                    said += f": it was made with{'' if old else 'out'} --engine swarm"
                mistakes.add(one.name, said)
    for cell in cells(planned):
        if not any(line.startswith(f"{cell.name}/") for line in mistakes.lines):
            with mistakes.caught(cell.name):
                _check_swarm(folder, cell)
    return mistakes


def _check_swarm(folder: Path, cell: Cell) -> None:
    """InputError where the runs of a cell cannot go on as a swarm."""
    path = folder / cell.name
    if not is_swarm(path):
        if any(RunDirectory(folder / one.name).iterations_saved() for one in cell.runs):
            raise InputError(f"has runs, but no {NAME}; bring it back from a copy")
        return
    seeds = read_swarm(path).seeds
    more = [str(seed) for seed in cell.seeds if seed not in seeds]
    if more:
        raise InputError(
            f"is a swarm of seeds {', '.join(map(str, seeds))}, which takes no others: make "
            f"{', '.join(more)} with another --out, and compare both"
        )


def failure_file(folder: Path, name: str) -> Path:
    """The file with the error of a run that was given up."""
    return folder / "failures" / f"{name.replace('/', '--')}.json"


def write_failure(folder: Path, name: str, content: dict[str, Any]) -> None:
    file = failure_file(folder, name)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, as_json(content))


def forget_failures(folder: Path, planned: Iterable[Planned]) -> None:
    """Let runs that were given up be tried again."""
    for one in planned:
        file = failure_file(folder, one.name)
        with writing(file):
            file.unlink(missing_ok=True)


def look(folder: Path, planned: Planned) -> RunStatus:
    """The state of one run."""
    run, wanted = RunDirectory(folder / planned.name), planned.config.iterations
    rows: list[Row] = []
    with contextlib.suppress(InputError):  # `damage` reports it
        rows = read_last(run.metrics_file)
    divergence = diverged(run)
    error = divergence or _error(failure_file(folder, planned.name))
    state: State = "waiting"
    saved = run.iterations_saved()
    if (rows and rows[-1]["iteration"] >= wanted) or saved > wanted:
        state = "done"
    elif divergence:
        state = "failed"  # the other seeds of its swarm may go on
    elif run.is_busy():
        state = "running"
    elif error:
        state = "failed"
    elif run.config_file.exists():
        state = "stopped"
    # The last row of a run only measures; others may still wait for an evaluation.
    counted = rows[-1]["iteration"] + ("seconds_total" in rows[-1]) if rows else 0
    iteration = min(max(counted, saved), wanted)
    values = [row["return_sampled"] for row in rows if row.get("return_sampled") is not None]
    value = values[-1] if values else None
    return RunStatus(planned.name, state, iteration, wanted, value, _pace(rows), error)


def damage(folder: Path, planned: Planned) -> list[str]:
    """Everything that is wrong with the metrics of a run."""
    file = RunDirectory(folder / planned.name).metrics_file
    try:
        return [f"{planned.name}: {file.name}: {problem}" for problem in read(file).problems]
    except InputError as error:
        return [f"{planned.name}: {error}"]


def diverged(run: RunDirectory) -> str:
    """Why a run of a swarm learns no more; empty if it does."""
    return _error(run.fault_file, "diverged")


def _error(file: Path, name: str = "error") -> str:
    try:
        return str(parse_json(read_bytes(file))[name])
    except DAMAGE:
        return ""


def _pace(rows: list[Row]) -> float | None:
    """Seconds per iteration over the last few."""
    timed = [row for row in rows if row.get("seconds_total") is not None][-PACE_ROWS:]
    if len(timed) < 2:
        return None
    seconds = timed[-1]["seconds_total"] - timed[0]["seconds_total"]
    return seconds / (timed[-1]["iteration"] - timed[0]["iteration"])


def seconds_left(statuses: Sequence[RunStatus], slots: int) -> float | None:
    """Time until no run is left to make, so many at a time; None while no run has a pace."""
    usual = _usual(statuses)
    if not usual:
        return None
    left = [
        (status.wanted - status.iteration)
        * (status.pace or next(usual[like] for like in _likes(status) if like in usual))
        for status in statuses
        if status.state not in ("done", "failed")
    ]
    return max(sum(left) / max(slots, 1), max(left, default=0.0))


def _likes(status: RunStatus) -> list[str]:
    """Groups of similar runs, the closest first: same task and learner, same task, all."""
    task, _, rest = status.name.partition("/")
    return [f"{task}/{rest.partition('/')[0]}", task, ""]


def _usual(statuses: Iterable[RunStatus]) -> dict[str, float]:
    """Mean pace of each group of similar runs."""
    paces: dict[str, list[float]] = defaultdict(list)
    for status in statuses:
        if status.pace is not None:
            for like in _likes(status):
                paces[like].append(status.pace)
    return {like: sum(some) / len(some) for like, some in paces.items()}

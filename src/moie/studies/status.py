"""How far the runs of a study are. It is read from their directories alone, so that it can be told
from anywhere that sees the files, whoever works on them."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from moie.errors import InputError
from moie.files import DAMAGE, as_json, parse_json, read_bytes, write_bytes, writing
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import read, read_last
from moie.studies.declaration import Planned

State = Literal["waiting", "running", "stopped", "failed", "done"]
PACE_ROWS = 20


@dataclass(frozen=True)
class RunStatus:
    """Of one run. "stopped": begun, and nobody works on it."""

    name: str
    state: State
    iteration: int = 0
    """Iterations that are complete."""
    wanted: int = 0
    value: float | None = None
    """Return of the last evaluation with sampled actions."""
    pace: float | None = None
    """Seconds an iteration."""
    error: str = ""

    @property
    def seconds_left(self) -> float | None:
        return None if self.pace is None else self.pace * (self.wanted - self.iteration)


def failure_file(folder: Path, name: str) -> Path:
    """Where the error of a run that was given up is kept."""
    return folder / "failures" / f"{name.replace('/', '--')}.json"


def write_failure(folder: Path, name: str, content: dict[str, Any]) -> None:
    file = failure_file(folder, name)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, as_json(content))


def forget_failures(folder: Path, planned: Iterable[Planned]) -> None:
    """Runs that were given up may be tried again."""
    for one in planned:
        file = failure_file(folder, one.name)
        with writing(file):
            file.unlink(missing_ok=True)


def look(folder: Path, planned: Planned) -> RunStatus:
    """At one run."""
    run, wanted = RunDirectory(folder / planned.name), planned.config.iterations
    rows: list[dict[str, Any]] = []
    with contextlib.suppress(InputError):  # `damage` tells
        rows = read_last(run.metrics_file)
    error = _error(failure_file(folder, planned.name))
    state: State = "waiting"
    saved = run.iterations_saved()
    if (rows and rows[-1]["iteration"] >= wanted) or saved > wanted:
        state = "done"
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
    """What is wrong with the metrics of a run."""
    file = RunDirectory(folder / planned.name).metrics_file
    try:
        return [f"{planned.name}: {file.name}: {problem}" for problem in read(file).problems]
    except InputError as error:
        return [f"{planned.name}: {error}"]


def _error(file: Path) -> str:
    try:
        return str(parse_json(read_bytes(file))["error"])
    except DAMAGE:
        return ""


def _pace(rows: list[dict[str, Any]]) -> float | None:
    """Over the last few iterations."""
    timed = [row for row in rows if row.get("seconds_total") is not None][-PACE_ROWS:]
    if len(timed) < 2:
        return None
    seconds = timed[-1]["seconds_total"] - timed[0]["seconds_total"]
    return seconds / (timed[-1]["iteration"] - timed[0]["iteration"])


def seconds_left(statuses: Sequence[RunStatus], slots: int) -> float | None:
    """For all that is not done nor failed, so many at a time; None while no run has a pace."""
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
    """Runs like it: of the same task and learner, of the task, all."""
    task, _, rest = status.name.partition("/")
    return [f"{task}/{rest.partition('/')[0]}", task, ""]


def _usual(statuses: Iterable[RunStatus]) -> dict[str, float]:
    """Mean pace of runs that are alike."""
    paces: dict[str, list[float]] = defaultdict(list)
    for status in statuses:
        for like in _likes(status) if status.pace is not None else []:
            paces[like].append(status.pace or 0.0)
    return {like: sum(some) / len(some) for like, some in paces.items()}

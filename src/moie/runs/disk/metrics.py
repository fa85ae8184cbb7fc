"""metrics.jsonl, read line by line so that damage stays local, and the same for TensorBoard."""

import bisect
import contextlib
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from moie.errors import shortened
from moie.files import (
    DAMAGE,
    finite,
    parse_json,
    read_bytes,
    reading,
    reason,
    write_bytes,
    writing,
)

Row = dict[str, Any]
"""Numbers by name, null where one is not finite. Their names depend on the algorithm."""
MOST_NAMED = 3
"""Damaged lines, and gaps, that are named one by one."""
GROUPS = {
    "return": ("return", "length", "distance", "discounted"),
    "trust_region": ("kl", "weight", "mean", "covariance", "entropy"),
    "time": ("seconds", "steps"),
}
"""TensorBoard's groups of numbers, by the first word of their names."""


@dataclass(frozen=True)
class Metrics:
    """The records of a run, without a last line that a killed process left unfinished."""

    lines: list[bytes]
    by_line: dict[int, Row]
    """Rows by the number of their line, from 0; iterations rise."""
    damaged: dict[int, str]
    """Why the other lines cannot be used."""

    @property
    def rows(self) -> list[Row]:
        """All rows that can be read."""
        return list(self.by_line.values())

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong with the file."""
        lines = [f"line {at + 1} cannot be read: {why}" for at, why in self.damaged.items()]
        numbers = [-1, *(row["iteration"] for row in self.rows)]
        gaps = [(a + 1, b - 1) for a, b in pairwise(numbers) if b > a + 1]
        missing = [
            f"iteration {a} is missing" if a == b else f"iterations {a} to {b} are missing"
            for a, b in gaps
        ]
        return [*_first(lines, "lines that cannot be read"), *_first(missing, "gaps")]

    def before(self, iteration: int) -> list[bytes]:
        """The lines before the first row of this iteration or a later one, as they are."""
        later = (at for at, row in self.by_line.items() if row["iteration"] >= iteration)
        return self.lines[: next(later, len(self.lines))]


def _first(texts: list[str], what: str) -> list[str]:
    more = len(texts) - MOST_NAMED
    return texts if more <= 0 else [*texts[:MOST_NAMED], f"{more} more {what}"]


def read(path: Path) -> Metrics:
    """All of a run's metrics; none where there is no file."""
    with reading(f"{path} cannot be read"):
        content = read_bytes(path) if path.exists() else b""
    return _parsed(content.split(b"\n"))


def read_last(path: Path, size: int = 65_536) -> list[Row]:
    """The rows in the last so many bytes: enough to see how a run is doing."""
    if not path.is_file():
        return []
    with reading(f"{path} cannot be read"), open(path, "rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(start)
        lines = file.read().split(b"\n")
    return _parsed(lines[1:] if start else lines).rows


def _parsed(pieces: list[bytes]) -> Metrics:
    """`pieces`: what line breaks separate; the last one is empty where the file is whole."""
    rows: dict[int, Row] = {}
    damaged: dict[int, str] = {}
    for at, line in enumerate(pieces):
        try:
            if line.strip():
                rows[at] = _row(line)
        except DAMAGE as error:
            damaged[at] = reason(error)
    torn = len(pieces) - 1
    if damaged.pop(torn, None) or not pieces[torn].strip():
        pieces = pieces[:torn]
    for at in _out_of_order(list(rows), [row["iteration"] for row in rows.values()]):
        damaged[at] = f"iteration {rows.pop(at)['iteration']} is out of order"
    return Metrics(pieces, rows, dict(sorted(damaged.items())))


def _row(line: bytes) -> Row:
    """A line's numbers by name; ValueError for a line that `Records` would not write."""
    row = parse_json(line)
    if not isinstance(row, dict):
        raise ValueError(f"it is {shortened(row)}, expected an object")
    for name, value in row.items():
        if not name.isidentifier():
            raise ValueError(f"it has {shortened(name)}, expected the name of a number")
        if value is not None and not _is_number(value):
            raise ValueError(f"{name[:100]} is {shortened(value)}, expected a number")
    for name, limit in (("iteration", 2**31), ("steps", 2**63)):
        value = row[name]
        if type(value) is not int or not 0 <= value < limit:
            raise ValueError(f"{name} is {shortened(value)}, expected a whole number")
    return row


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < 2**63


def _out_of_order(lines: Sequence[int], iterations: Sequence[int]) -> list[int]:
    """The fewest lines without which the iterations rise."""
    ends: list[int] = []  # smallest last iteration of a rising sequence, by its length
    heads: list[int] = []  # where that one is
    before: list[int] = []
    for place, iteration in enumerate(iterations):
        length = bisect.bisect_left(ends, iteration)
        before.append(heads[length - 1] if length else -1)
        ends[length : length + 1] = [iteration]
        heads[length : length + 1] = [place]
    kept, place = set(), heads[-1] if heads else -1
    while place >= 0:
        kept.add(place)
        place = before[place]
    return [line for place, line in enumerate(lines) if place not in kept]


def learned_steps(rows: Sequence[Row], batch_steps: int) -> list[int]:
    """For each row, the steps from which the evaluated policy had learned: it is the policy that
    sampled the row's batch. The last row of a run has no batch."""
    steps = {row["iteration"]: row["steps"] for row in rows}

    def before(row: Row) -> int:
        if row["iteration"] == 0:
            return 0
        without = row["steps"] - batch_steps if "kl" in row else row["steps"]
        return steps.get(row["iteration"] - 1, max(0, without))

    return [before(row) for row in rows]


class Board:
    """TensorBoard's event file, written in this thread: a full disk ends the thread that
    tensorboardX writes in, and then everybody waits for it."""

    FLUSH_EVERY = 10.0  # seconds

    def __init__(self, folder: Path, first: int):
        """`first`: TensorBoard forgets what older files of the run say from this iteration on."""
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto import event_pb2, summary_pb2

        folder.mkdir(exist_ok=True)
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._writer = EventsWriter(str(folder / "events"))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._writer.write_event(self._event(wall_time=time.time(), step=first, session_log=start))
        self._flushed = time.monotonic()

    def write(self, row: Row) -> None:
        """Write all numbers of a row of the metrics, in groups."""
        values = []
        for name, value in row.items():
            if isinstance(value, int | float) and name != "iteration":
                word = name.split("_")[0]
                group = next((g for g, words in GROUPS.items() if word in words), "learning")
                values.append(self._summary.Value(tag=f"{group}/{name}", simple_value=value))
        summary, step = self._summary(value=values), row["iteration"]
        self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        if time.monotonic() - self._flushed > self.FLUSH_EVERY:
            self._writer.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._writer.close()


class Records:
    """The open metrics of a run."""

    def __init__(self, path: Path, tensorboard: Path, iteration: int):
        """Go on with an iteration; rows from there on are removed, as they are made again. Lines
        before them stay as they are, readable or not."""
        self._path, self._folder = path, tensorboard
        write_bytes(path, b"".join(line + b"\n" for line in read(path).before(iteration)))
        with writing(tensorboard):
            self._board = Board(tensorboard, iteration)
        self._file = open(path, "a")  # noqa: SIM115  closed by close()

    def write(self, row: Row) -> None:
        """Write a row; numbers that are not finite become null."""
        row = finite(row)
        with writing(self._path):
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        with writing(self._folder):
            self._board.write(row)

    def close(self) -> None:
        """Close the files. What a full disk did not take is lost here; that was reported before."""
        for part in (self._file, self._board):
            with contextlib.suppress(OSError):
                part.close()

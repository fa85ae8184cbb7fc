"""Reads metrics.jsonl line by line, so that damage to one line costs no other."""

import bisect
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from moie.errors import shortened
from moie.files import DAMAGE, parse_json, read_bytes, reading, reason

Row = dict[str, Any]
MOST_NAMED = 3
"""Damaged lines, and gaps, that are named one by one."""


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
    """The fewest lines without which the iterations rise: one wrong number must not cost all that
    follow."""
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

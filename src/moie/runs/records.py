"""What a run writes down each iteration: metrics.jsonl, and the same for TensorBoard."""

import contextlib
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from moie.rollout.episode import Episode
from moie.runs.files import write_bytes, writing

TENSORBOARD_GROUPS = {
    "return": "return",
    "length": "return",
    "distance": "return",
    "discounted": "return",
    "kl": "trust region",
    "weight": "trust region",
    "mean": "trust region",
    "covariance": "trust region",
    "entropy": "trust region",
    "seconds": "time",
    "steps": "time",
}


def read(path: Path) -> list[dict[str, Any]]:
    """All whole rows; a row that a killed process left unfinished is passed over."""
    return _rows(path.read_bytes().splitlines() if path.exists() else [])


def read_last(path: Path, size: int = 65_536) -> list[dict[str, Any]]:
    """The whole rows in the last so many bytes: enough to see how a run is doing."""
    if not path.exists():
        return []
    with open(path, "rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - size)
        file.seek(start)
        lines = file.read().splitlines()
    return _rows(lines[1:] if start else lines)


def _rows(lines: list[bytes]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict) or not isinstance(row.get("iteration"), int):
            break
        rows.append(row)
    return rows


def summary(episodes: list[Episode], discount: float, suffix: str) -> dict[str, float]:
    """Mean return, length and (for locomotion) distance of some episodes, under a suffix."""
    if not episodes:
        return {}
    found = {
        f"return_{suffix}": float(np.mean([e.rewards.sum() for e in episodes])),
        f"discounted_{suffix}": float(np.mean([e.discounted(discount) for e in episodes])),
        f"length_{suffix}": float(np.mean([e.length for e in episodes])),
    }
    distances = [e.distance for e in episodes if e.distance is not None]
    if distances:
        found[f"distance_{suffix}"] = float(np.mean(distances))
    return found


class Board:
    """TensorBoard's event file. It is written in this thread: tensorboardX's own writer is a
    thread, which a full disk ends, and then everybody waits for it."""

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

    def write(self, row: dict[str, Any]) -> None:
        """All numbers of a row of the metrics, in groups."""
        values = []
        for name, value in row.items():
            if isinstance(value, int | float) and name != "iteration":
                group = TENSORBOARD_GROUPS.get(name.split("_")[0], "learning")
                tag = f"{group}/{name}".replace(" ", "_")
                values.append(self._summary.Value(tag=tag, simple_value=value))
        summary = self._summary(value=values)
        self._writer.write_event(
            self._event(wall_time=time.time(), step=row["iteration"], summary=summary)
        )
        if time.monotonic() - self._flushed > self.FLUSH_EVERY:
            self._writer.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._writer.close()


class Records:
    """The open metrics of a run."""

    def __init__(self, path: Path, tensorboard: Path, iteration: int):
        """Go on after `iteration` rows; rows of an iteration that was not completed go."""
        self._path, self._folder = path, tensorboard
        kept = [row for row in read(path) if row["iteration"] < iteration]
        write_bytes(path, "".join(json.dumps(row) + "\n" for row in kept).encode())
        with writing(tensorboard):
            self._board = Board(tensorboard, iteration)
        self._file = open(path, "a")  # noqa: SIM115  closed by close()

    def write(self, row: dict[str, Any]) -> None:
        """One row; numbers that are not finite become null."""
        row = {
            name: None if isinstance(v, float) and not math.isfinite(v) else v
            for name, v in row.items()
        }
        with writing(self._path):
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        with writing(self._folder):
            self._board.write(row)

    def close(self) -> None:
        """What a full disk did not take is lost here; it was said before."""
        for part in (self._file, self._board):
            with contextlib.suppress(OSError):
                part.close()

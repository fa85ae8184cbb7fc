"""Records of each iteration: metrics.jsonl (read by `metrics`), and the same for TensorBoard."""

import contextlib
import json
import os
import time
from pathlib import Path

from moie.files import finite, write_bytes, writing
from moie.runs.disk import metrics

GROUPS = {
    "return": ("return", "length", "distance", "discounted"),
    "trust_region": ("kl", "weight", "mean", "covariance", "entropy"),
    "time": ("seconds", "steps"),
}
"""TensorBoard's groups of numbers, by the first word of their names."""


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

    def write(self, row: metrics.Row) -> None:
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
        write_bytes(path, b"".join(line + b"\n" for line in metrics.read(path).before(iteration)))
        with writing(tensorboard):
            self._board = Board(tensorboard, iteration)
        self._file = open(path, "a")  # noqa: SIM115  closed by close()

    def write(self, row: metrics.Row) -> None:
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

"""What a run writes down each iteration: metrics.jsonl, and the same for TensorBoard."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from moie.rollout.episode import Episode
from moie.runs.files import full_disk_is_an_input_error, write_bytes

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
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
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


class Records:
    """The open metrics of a run."""

    def __init__(self, path: Path, tensorboard: Path, iteration: int):
        """Go on after `iteration` rows; rows of an iteration that was not completed go."""
        self._path = path
        kept = [row for row in read(path) if row["iteration"] < iteration]
        write_bytes(path, "".join(json.dumps(row) + "\n" for row in kept).encode())
        from tensorboardX import SummaryWriter

        self._board = SummaryWriter(str(tensorboard), purge_step=iteration, flush_secs=10)
        self._file = open(path, "a")  # noqa: SIM115  closed by close()

    def write(self, row: dict[str, Any]) -> None:
        """One row; numbers that are not finite become null."""
        row = {
            name: None if isinstance(v, float) and not math.isfinite(v) else v
            for name, v in row.items()
        }
        with full_disk_is_an_input_error(self._path):
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
        for name, value in row.items():
            if isinstance(value, int | float) and name != "iteration":
                group = TENSORBOARD_GROUPS.get(name.split("_")[0], "learning")
                self._board.add_scalar(f"{group}/{name}", value, row["iteration"])

    def close(self) -> None:
        self._file.close()
        self._board.close()

"""Make the first iterations of published runs again, and compare their evaluations bit for bit.

    python benchmarks/again.py docs/results/paper-small/evaluations.parquet Pendulum-v1/ppo/s0

Without names of runs it lists those of the file. A run is started from its recorded settings and
stopped after `--iterations`; every number of its evaluations up to there, times aside, has to be
the published one. Exit code 1 where one is not.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moie.api.training import train_config
from moie.comparison import collect, curves
from moie.comparison.checking import RunFacts
from moie.comparison.curves import KEYS, Curves
from moie.runs.config import from_json

Row = dict[str, Any]


def measured(rows: pd.DataFrame) -> list[str]:
    """Columns that a repeated run has to have the same numbers in."""
    return [name for name in rows if name not in KEYS and not name.startswith("seconds")]


def first_points(of: Curves, name: str, steps: int) -> pd.DataFrame:
    """The evaluations of a run up to some steps, by steps."""
    rows = of.evaluations()[name]
    return rows[rows["learned_steps"] <= steps].set_index("learned_steps")


def differences(published: pd.DataFrame, again: pd.DataFrame) -> list[str]:
    """What is not the same, in words. What the version that made the published run did not record
    yet does not count."""
    if not published.index.equals(again.index):
        return [f"evaluated at {list(again.index)} steps, not at {list(published.index)}"]
    found = []
    names = sorted(set(measured(published)) & set(measured(again)))
    for at, old, new in zip(published.index, *map(numbers(names), (published, again)), strict=True):
        for name, before, after in zip(names, old, new, strict=True):
            if before != after and not np.isnan(before):
                found.append(f"{name} at {at:,} steps is {after}, not {before}")
    return found


def numbers(names: list[str]) -> Callable[[pd.DataFrame], list[list[float]]]:
    """Takes these columns of a table, row by row."""
    return lambda rows: rows[names].to_numpy(dtype=np.float64, na_value=np.nan).tolist()


def elsewhere(published: RunFacts, made: RunFacts) -> str:
    """In what the published run was made differently: machine and packages."""
    old, new = (one["versions"] | one["host"] for one in (published, made))
    other = [
        f"{name} {old.get(name, 'not recorded')} (here {new.get(name, 'not recorded')})"
        for name in sorted(set(old) | set(new))
        if old.get(name) != new.get(name)
    ]
    return f"; made with {', '.join(other)}" if other else ""


def stop_after(iterations: int) -> Callable[[Row], bool]:
    """A callback that ends a run with the evaluation of the policy after so many iterations."""
    return lambda row: row["iteration"] < iterations


def again(published: Curves, name: str, iterations: int) -> tuple[bool, str]:
    """Whether a run has the published evaluations, and that in words."""
    config = from_json(published.runs[name]["config"])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        train_config(config, out, workers=1, quiet=True, callbacks=[stop_after(iterations)])
        made = collect.read_runs(out)
    ((new_name, about),) = made.runs.items()
    steps = iterations * config.batch_steps
    old, new = first_points(published, name, steps), first_points(made, new_name, steps)
    found = differences(old, new)
    said = f"{len(old)} evaluations, the same bit for bit"
    if found:
        said = f"{len(found)} numbers differ: {'; '.join(found[:3])}{'; ...' * (len(found) > 3)}"
    return not found and len(old) > 1, said + elsewhere(published.runs[name], about)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="evaluations.parquet of a comparison")
    parser.add_argument("runs", nargs="*", help="names of runs in it")
    parser.add_argument("--iterations", type=int, default=20)
    given = parser.parse_args()
    published, all_same = curves.read(given.file), True
    if not given.runs:
        print("\n".join(published.runs))
    if unknown := [name for name in given.runs if name not in published.runs]:
        parser.error(f"{given.file} has no run {', '.join(unknown)}")
    for name in given.runs:
        is_same, said = again(published, name, given.iterations)
        print(f"{name}, {given.iterations} iterations: {said}", flush=True)
        all_same &= is_same
    return int(not all_same)


if __name__ == "__main__":
    sys.exit(main())

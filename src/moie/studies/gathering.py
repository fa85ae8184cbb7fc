"""The curves of all runs in a folder."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from moie.errors import InputError
from moie.runs.config import to_json
from moie.runs.directory import RunDirectory, load_policy
from moie.runs.records import read as read_rows
from moie.studies import curves
from moie.studies.curves import ATTENTION, KEYS, Curves, as_frame, check_facts, check_study
from moie.studies.declaration import STUDY_FILE, STUDY_FORMAT

CURVES_FILE = "curves.parquet"


def read(path: Path) -> Curves:
    """The curves of a folder of runs, or of a file of curves."""
    if path.is_dir():
        return gather(path)
    if not path.exists():
        raise InputError(f"there is no folder of runs or file of curves at {path}")
    return curves.read(path)


def run_directories(folder: Path) -> list[Path]:
    """All runs at or below a folder, in order, each once; hidden folders are what a killed process
    left."""
    found, been = [], set()
    # other than `rglob` it can bear changes meanwhile
    for path, folders, files in os.walk(folder, followlinks=True):
        here = os.path.realpath(path)
        if here in been or "run.json" in files:
            folders.clear()
        if here not in been and "run.json" in files:
            found.append(Path(path))
        been.add(here)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return sorted(found)


def gather(folder: Path) -> Curves:
    """Read every run at or below a folder."""
    found = run_directories(folder)
    if not found:
        raise InputError(f"there are no runs in {folder}")
    tables, runs, unreadable = [], {}, []
    for path in found:
        name = path.relative_to(folder).as_posix()
        try:
            table, runs[name] = _one(RunDirectory.open(path), name)
            tables.append(table)
        except InputError as error:
            unreadable.append(str(error).replace(str(path), name))
    rows = pa.concat_tables(tables, promote_options="default") if tables else _empty()
    return Curves(as_frame(curves.typed(rows)), runs, read_study(folder), tuple(unreadable))


def _empty() -> pa.Table:
    return pa.schema(KEYS.items()).empty_table()


def _parameters(run: RunDirectory) -> int | None:
    if not run.policy_file.exists():
        return None
    with contextlib.suppress(InputError):  # a damaged policy takes no curve away
        return load_policy(run.policy_file).n_parameters
    return None


def _one(run: RunDirectory, name: str) -> tuple[pa.Table, dict[str, Any]]:
    """Its rows, and what is known about it."""
    config = run.read_config()
    facts = {"config": to_json(config), "versions": run.started_with(), "host": run.started_on()}
    try:
        facts = check_facts(json.loads(json.dumps(facts)))
    except InputError as error:
        raise InputError(f"{run.config_file} cannot be read: {error}") from error
    learner = config.learner
    keys = {
        "run": name,
        "task": config.task,
        "algorithm": learner.algorithm,
        "experts": learner.policy.experts if learner.has_experts else None,
        "seed": config.seed,
        "parameters": _parameters(run),
    }
    return _rows(run.metrics_file, keys), facts


def _rows(file: Path, keys: dict[str, Any]) -> pa.Table:
    """The rows of a run's metrics, with keys."""
    rows = pd.DataFrame(read_rows(file))
    if rows.empty:
        return _empty()
    try:
        # An evaluation is of the policy that sampled the iteration's batch, not of the one after.
        rows["learned_steps"] = rows["steps"].shift(1, fill_value=0)
        if "attention" in rows:  # of the policy after the iteration
            rows[ATTENTION] = rows["attention"].shift(1)
        return curves.typed(pa.Table.from_pandas(rows.assign(**keys), preserve_index=False))
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{file} cannot be read: {error!r}") from error


def read_study(folder: Path) -> dict[str, Any] | None:
    """The declaration that a study left in its folder."""
    file = folder / STUDY_FILE
    try:
        content = json.loads(file.read_text()) if file.exists() else None
        if not isinstance(content, dict) or content.get("format") != STUDY_FORMAT:
            return None  # other programs have studies, too
        return check_study(content)
    except (ValueError, InputError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error

"""All curves of many runs in one table, and its way to and from one Parquet file.

A row is a row of a run's metrics.jsonl: one an iteration, and a last one that only measures the
final policy. The file's schema is described in docs/studies.md; what is not a curve
(configurations, versions, hosts, the study's declaration) is JSON in the schema's metadata, under
the key "moie".
"""

import contextlib
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from moie.errors import InputError
from moie.runs.config import to_json
from moie.runs.directory import RunDirectory, load_policy
from moie.runs.files import write_bytes
from moie.runs.records import read as read_rows

FORMAT, VERSION = "moie-curves", 1
STUDY_FILE, CURVES_FILE = "study.json", "curves.parquet"
STUDY_FORMAT = "moie-study"
KEYS = {
    "run": pa.string(),
    "task": pa.string(),
    "algorithm": pa.string(),
    "experts": pa.int32(),
    "seed": pa.int64(),
    "parameters": pa.int32(),
    "iteration": pa.int32(),
    "steps": pa.int64(),
    "learned_steps": pa.int64(),
}
"""Columns that every file has; all others are numbers of the metrics, float64 or null."""


@dataclass(frozen=True)
class Curves:
    """What some runs have measured, and what is known about them."""

    rows: pd.DataFrame
    runs: dict[str, dict[str, Any]]
    """By name: `config`, `versions` and `host` as in run.json."""
    study: dict[str, Any] | None
    """The content of study.json, where the runs belong to one."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with runs that could not be read."""


def run_directories(folder: Path) -> list[Path]:
    """All runs at or below a folder, in order; hidden folders are what a killed process left."""
    found = []
    for path, folders, files in os.walk(folder):  # other than `rglob` it can bear changes meanwhile
        if "run.json" in files:
            found.append(Path(path))
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(found)


def _parameters(run: RunDirectory) -> int | None:
    if not run.policy_file.exists():
        return None
    with contextlib.suppress(InputError):  # a damaged policy takes no curve away
        return load_policy(run.policy_file).n_parameters
    return None


def _one(run: RunDirectory, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    config = run.read_config()
    learner = config.learner
    rows = pd.DataFrame(read_rows(run.metrics_file), columns=None)
    if rows.empty:
        rows = pd.DataFrame({"iteration": [], "steps": []})
    # An evaluation is of the policy that sampled the iteration's batch, not of the one after it.
    rows["learned_steps"] = rows["steps"].shift(1, fill_value=0)
    keys = {
        "run": name,
        "task": config.task,
        "algorithm": learner.algorithm,
        "experts": learner.policy.experts if learner.has_experts else None,
        "seed": config.seed,
        "parameters": _parameters(run),
    }
    facts = {"config": to_json(config), "versions": run.started_with(), "host": run.started_on()}
    return rows.assign(**keys), json.loads(json.dumps(facts))


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
            unreadable.append(str(error))
    return Curves(_as_frame(tables), runs, read_study(folder), tuple(unreadable))


def read_study(folder: Path) -> dict[str, Any] | None:
    """The declaration that a study left in its folder."""
    file = folder / STUDY_FILE
    try:
        content = json.loads(file.read_text()) if file.exists() else None
    except ValueError as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    is_ours = isinstance(content, dict) and content.get("format") == STUDY_FORMAT
    return content if is_ours else None  # other programs have studies, too


def _as_frame(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    rows = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(KEYS))
    columns = list(KEYS) + sorted(set(rows.columns) - set(KEYS))
    return _to_arrow(rows[columns]).to_pandas(types_mapper=pd.ArrowDtype)


def _to_arrow(rows: pd.DataFrame) -> pa.Table:
    kinds = {name: KEYS.get(name, pa.float64()) for name in rows.columns}
    return pa.Table.from_pandas(rows, schema=pa.schema(kinds.items()), preserve_index=False)


def to_bytes(curves: Curves) -> bytes:
    """The content of a Parquet file."""
    known = {"format": FORMAT, "version": VERSION, "study": curves.study, "runs": curves.runs}
    table = _to_arrow(curves.rows).replace_schema_metadata({"moie": json.dumps(known)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=["run", "task", "algorithm"])
    return buffer.getvalue()


def write(curves: Curves, path: Path) -> None:
    """One file, whole or not there."""
    write_bytes(path, to_bytes(curves))


def read(path: Path) -> Curves:
    """The curves of a folder of runs, or of a file that `write` made."""
    if path.is_dir():
        return gather(path)
    if not path.exists():
        raise InputError(f"there is no folder of runs or file of curves at {path}")
    try:
        table = pq.read_table(path)
        known = json.loads((table.schema.metadata or {})[b"moie"])
        if known["format"] != FORMAT or known["version"] > VERSION:
            raise ValueError(f"its format is {known['format']} {known['version']}")
        rows = table.replace_schema_metadata().to_pandas(types_mapper=pd.ArrowDtype)
        return Curves(rows, known["runs"], known["study"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a file of curves that moie wrote: {error}") from error

"""All curves of many runs in one table, and its way to and from one Parquet file.

A row is a row of a run's metrics.jsonl: one an iteration, and a last one that only measures the
final policy. The file's schema is described in docs/studies.md; what is not a curve
(configurations, versions, hosts, the study's declaration) is JSON in the schema's metadata, under
the key "moie".
"""

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from moie.errors import InputError
from moie.runs.config import from_json, to_json
from moie.runs.files import write_bytes

FORMAT, VERSION = "moie-curves", 1
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
ATTENTION = "evaluated_attention"
"""Column: the attention of the policy that a row's evaluation is of, which is the one before the
iteration."""


@dataclass(frozen=True)
class Overlap:
    """A run that two sources have had, and not alike: which of them counts."""

    run: str
    """The name of the one that counts."""
    source: str
    """Where that one was."""
    other: str
    """Where the one was that does not count."""
    reached: int
    """Steps at the last evaluation of the one that counts; -1 without any."""
    other_reached: int
    """The same of the other one: fewer, or as many where their numbers differ."""


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
    overlaps: tuple[Overlap, ...] = ()
    """Of sources that were merged."""
    damaged: tuple[str, ...] = ()
    """What is wrong with the metrics of runs whose other rows are here."""


def is_evaluation(rows: pd.DataFrame) -> pd.Series:
    """Which rows measure a policy. One whose return is not finite has none, but a length."""
    found = pd.Series(False, index=rows.index)
    for name in ("return_sampled", "length_sampled"):
        if name in rows:
            found |= rows[name].notna()
    return found


def typed(table: pa.Table) -> pa.Table:
    """The same rows: first the columns that every file has, then the others, with their types."""
    missing = [name for name in KEYS if name not in table.column_names]
    if missing:
        raise ValueError(f"there is no {' and no '.join(missing)}")
    names = [*KEYS, *sorted(set(table.column_names) - set(KEYS))]
    kinds = pa.schema([(name, KEYS.get(name, pa.float64())) for name in names])
    return table.select(names).cast(kinds)


def as_frame(table: pa.Table) -> pd.DataFrame:
    """With types that know null."""
    return table.replace_schema_metadata().to_pandas(types_mapper=pd.ArrowDtype)


def completed(config: Any) -> dict[str, Any]:
    """A configuration as JSON has it, with the defaults of settings that are newer; InputError
    where it is none."""
    return json.loads(json.dumps(to_json(from_json(config))))


def check_facts(facts: Any) -> dict[str, Any]:
    """What is known about a run, or InputError where it is not what run.json has."""
    if not isinstance(facts, dict):
        raise InputError(f"what is known about the run is {facts!r}, expected an object")
    facts = facts | {"config": completed(facts.get("config"))}
    for name in ("versions", "host"):
        found = facts.get(name, {})
        if not isinstance(found, dict):
            raise InputError(f"{name} is {found!r}, expected an object")
    return facts


def check_study(content: dict[str, Any]) -> dict[str, Any]:
    """A study's declaration, or InputError where its runs are none."""
    try:
        for one in content["runs"]:
            from_json(content["settings"] | one["settings"])
            if not isinstance(one["run"], str):
                raise TypeError(f"a run's name is {one['run']!r}")
    except (KeyError, TypeError) as error:
        raise InputError(f"the study's declaration is damaged: {error!r}") from error
    return content


def to_bytes(curves: Curves) -> bytes:
    """The content of a Parquet file."""
    known = {"format": FORMAT, "version": VERSION, "study": curves.study, "runs": curves.runs}
    known["unreadable"] = list(curves.unreadable)
    known["damaged"] = list(curves.damaged)
    known["overlaps"] = [asdict(one) for one in curves.overlaps]
    table = typed(pa.Table.from_pandas(curves.rows, preserve_index=False))
    table = table.replace_schema_metadata({"moie": json.dumps(known)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=["run", "task", "algorithm"])
    return buffer.getvalue()


def write(curves: Curves, path: Path) -> None:
    """One file, whole or not there."""
    write_bytes(path, to_bytes(curves))


def read(path: Path) -> Curves:
    """The content of a file that `write` made."""
    try:
        table = pq.read_table(path)
        known = json.loads((table.schema.metadata or {})[b"moie"])
        if known["format"] != FORMAT or known["version"] > VERSION:
            raise ValueError(f"its format is {known['format']} {known['version']}")
        study = known["study"] and check_study(known["study"])
        overlaps = tuple(Overlap(**one) for one in known.get("overlaps", []))
        unreadable, lines = (tuple(known.get(name, [])) for name in ("unreadable", "damaged"))
        found = Curves(as_frame(typed(table)), known["runs"], study, unreadable, overlaps, lines)
        return _without_damaged(found)
    except (InputError, OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a file of curves that moie wrote: {error}") from error


def _without_damaged(found: Curves) -> Curves:
    """Runs of which something is wrong or unknown are named, and take no other away."""
    runs, unreadable = {}, list(found.unreadable)
    for name, facts in found.runs.items():
        try:
            runs[name] = check_facts(facts)
        except InputError as error:
            unreadable.append(f"{name}: {error}")
    for name in sorted(set(found.rows["run"]) - set(found.runs)):
        unreadable.append(f"{name}: there are rows of it, but not its configuration")
    rows = found.rows[found.rows["run"].isin(list(runs))]
    overlaps = tuple(one for one in found.overlaps if one.run in runs)
    return Curves(rows, runs, found.study, tuple(unreadable), overlaps, found.damaged)


def damaged(path: Path) -> list[str]:
    """Names of the runs in a file that `read` leaves out."""
    table, found = pq.read_table(path, columns=["run"]), read(path)
    known = json.loads(table.schema.metadata[b"moie"])
    return sorted({*known["runs"], *table["run"].to_pylist()} - set(found.runs))

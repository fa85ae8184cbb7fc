"""All curves of many runs in one table, and its way to and from one Parquet file.

A row is a row of a run's metrics.jsonl: one for each iteration, and a last one that only
measures the final policy. The file's schema is described in docs/studies.md; what is not a curve
(configurations, versions, hosts, the study's declaration) is JSON in the schema's metadata, under
the key "moie".
"""

import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from moie.comparison.checking import RunFacts, StudyFacts, check_facts, check_study, check_texts
from moie.errors import InputError, shortened
from moie.files import parse_json, read_bytes, reading, write_bytes
from moie.runs.config import flat

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
EMPTY = pa.schema(KEYS.items()).empty_table()
MOST_ROWS, LARGEST = 10**7, 2**28
"""Rows of a file, and bytes of any part of its header: far more than studies have."""
COUNTS = ("iteration", "steps", "learned_steps")
REPEATED = ("task", "algorithm", "seed")  # columns that repeat a setting of the run
ATTENTION = "evaluated_attention"
"""Column with the attention of the policy that a row evaluates: the one before the iteration."""


@dataclass(frozen=True)
class Overlap:
    """A run that two sources had with different content, and which of them counts."""

    run: str  # the name of the one that counts
    source: str  # the source of the one that counts
    other: str  # the source of the one that does not
    reached: int  # steps at the last evaluation of the one that counts; -1 without any
    other_reached: int  # the same for the other one: fewer, or as many where their numbers differ


@dataclass(frozen=True)
class Curves:
    """The measurements of some runs, and the facts about them."""

    rows: pd.DataFrame
    runs: dict[str, RunFacts]  # facts about each run, by its name
    study: StudyFacts | None  # the study that the runs belong to, if any
    unreadable: tuple[str, ...] = ()  # faults of runs that could not be read
    overlaps: tuple[Overlap, ...] = ()  # runs that more than one of the merged sources had
    damaged: tuple[str, ...] = ()  # faults in the metrics of runs whose other rows are here
    left_out: tuple[str, ...] = ()  # names of runs in a file with which something is wrong

    def evaluations(self) -> dict[str, pd.DataFrame]:
        """The rows of each run that measure a policy, in the order of steps."""
        rows = self.rows[is_evaluation(self.rows)].sort_values(["run", "learned_steps"])
        tables = dict(tuple(rows.groupby("run")))
        return {name: tables.get(name, rows.iloc[:0]) for name in self.runs}


def is_evaluation(rows: pd.DataFrame) -> pd.Series:
    """Which rows measure a policy. Where its return is not finite, the length is still there."""
    measured = [name for name in ("return_sampled", "length_sampled") if name in rows]
    return rows[measured].notna().any(axis=1)


def typed(table: pa.Table) -> pa.Table:
    """The same rows: first the columns that every file has, then the others, each with its type."""
    missing = [name for name in KEYS if name not in table.column_names]
    if missing:
        raise ValueError(f"there is no {' and no '.join(missing)}")
    names = [*KEYS, *sorted(set(table.column_names) - set(KEYS))]
    kinds = pa.schema([(name, KEYS.get(name, pa.float64())) for name in names])
    return table.select(names).cast(kinds)


def concatenated(tables: Iterable[pa.Table]) -> pd.DataFrame:
    """The rows of all tables, whose columns may differ."""
    plain = [EMPTY, *(typed(table).replace_schema_metadata() for table in tables)]
    return as_frame(typed(pa.concat_tables(plain, promote_options="default")))


def as_frame(table: pa.Table) -> pd.DataFrame:
    """A frame whose types know null."""
    return table.replace_schema_metadata().to_pandas(types_mapper=pd.ArrowDtype)


def to_bytes(curves: Curves) -> bytes:
    """The content of a Parquet file."""
    known = {
        "format": FORMAT,
        "version": VERSION,
        "study": curves.study,
        "runs": curves.runs,
        "unreadable": curves.unreadable,
        "damaged": curves.damaged,
        "overlaps": [asdict(one) for one in curves.overlaps],
    }
    table = typed(pa.Table.from_pandas(curves.rows, preserve_index=False))
    table = table.replace_schema_metadata({"moie": json.dumps(known)})
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        use_dictionary=["run", "task", "algorithm"],
        write_page_checksum=True,
    )
    return buffer.getvalue()


def write(curves: Curves, path: Path) -> None:
    """One file, whole or not there."""
    write_bytes(path, to_bytes(curves))


def read(path: Path) -> Curves:
    """The content of a file that `write` made. Runs with which something is wrong are named and
    left out."""
    with reading(f"{path} is not a file of curves that moie wrote"):
        try:
            return _read(path)
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error


def _read(path: Path) -> Curves:
    table, known = _content(path)
    study = None if known["study"] is None else check_study(known["study"])
    rows = as_frame(typed(table))
    runs, unreadable = _good_runs(rows, known["runs"])
    overlaps = [_overlap(one) for one in known.get("overlaps", [])]
    return Curves(
        rows=rows[rows["run"].isin(list(runs))],
        runs=runs,
        study=study,
        unreadable=(*check_texts(known.get("unreadable", [])), *unreadable),
        overlaps=tuple(one for one in overlaps if one.run in runs),
        damaged=tuple(check_texts(known.get("damaged", []))),
        left_out=tuple(sorted({*known["runs"], *map(str, rows["run"].unique())} - set(runs))),
    )


def _content(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The table, and the metadata under our key."""
    file = pq.ParquetFile(
        pa.BufferReader(read_bytes(path)),
        page_checksum_verification=True,
        thrift_string_size_limit=LARGEST,
        thrift_container_size_limit=LARGEST,
    )
    if not 0 <= file.metadata.num_rows <= MOST_ROWS:
        raise ValueError(f"it has {file.metadata.num_rows} rows, expected at most {MOST_ROWS}")
    known = parse_json((file.schema_arrow.metadata or {})[b"moie"])
    if known["format"] != FORMAT or known["version"] > VERSION:
        raise ValueError(
            f"its format is {shortened(known['format'])} {shortened(known['version'])}"
        )
    return file.read(), known


def _overlap(content: Any) -> Overlap:
    overlap = Overlap(**content)
    for item in fields(Overlap):
        value = getattr(overlap, item.name)
        if type(value) is not item.type:
            raise ValueError(f"{item.name} of an overlap is {shortened(value)}")
    return overlap


def _good_runs(rows: pd.DataFrame, content: Any) -> tuple[dict[str, RunFacts], list[str]]:
    """Facts about the runs with which nothing is wrong, and what is wrong with the others."""
    runs, wrong = {}, []
    for name, facts in content.items():
        try:
            with reading(name):
                runs[name] = check_facts(facts)
        except InputError as error:
            wrong.append(str(error))
    for name in sorted(set(rows["run"].dropna()) - set(content)):
        wrong.append(f"{name}: there are rows of it, but not its configuration")
    if rows["run"].isna().any():
        wrong.append("there are rows that name no run")
    for name, fault in faults(rows, runs).items():
        wrong.append(f"{name}: {fault}")
        del runs[name]
    return runs, wrong


def faults(rows: pd.DataFrame, runs: dict[str, RunFacts]) -> dict[str, str]:
    """Names of the runs whose rows cannot be theirs, and why."""
    rows = rows[rows["run"].isin(list(runs))]
    checks = [(rows[name].isna(), f"{name} is missing in a row") for name in COUNTS]
    checks += [(rows[name] < 0, f"{name} is below zero in a row") for name in COUNTS]
    checks += [(rows["parameters"] < 1, "parameters are below one in a row")]
    settings = {run: flat(facts["config"]) for run, facts in runs.items()}
    for name in REPEATED:
        expected = rows["run"].map({run: own[name] for run, own in settings.items()})
        other = rows[name].isna() | (rows[name].astype(object) != expected.astype(object))
        checks.append((other, f"{name} is not that of its configuration in a row"))
    measured = rows[is_evaluation(rows)]
    twice = measured.duplicated(["run", "learned_steps"])
    checks.append((twice, "two evaluations are of the same steps"))
    faulty: dict[str, str] = {}
    for where, fault in checks:
        some = rows["run"].loc[where.index[where.fillna(False).astype(bool)]]
        faulty |= {name: fault for name in some.unique() if name not in faulty}
    return faulty

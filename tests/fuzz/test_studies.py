"""Damaged studies and files of curves: a result, or one InputError, and never for long."""

import json
import random
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moie.comparison import statistics, write
from moie.comparison.facts import aggregates
from moie.comparison.figures import charts
from moie.comparison.write import compare
from moie.errors import InputError
from moie.studies.toml_file import SHIPPED, load
from tests.comparison import synthetic
from tests.comparison.synthetic import rewritten
from tests.fuzzing import NASTY, at_most, mutated, mutated_json
from tests.simulators import needs

SECONDS = 2.0
EXAMPLE = """
tasks = ["pendulum", "tests.probes:Walk-v0"]
algorithms = ["moie", "ppo", "crisp"]
experts = [5, 10]
seeds = 5
[settings]
iterations = 200
temperature = [0.5, 1.0]
hidden = [[32], [64, 64]]
[[grid]]
seeds = [3, 14]
[[grid]]
tasks = "ant"
settings = {learn_metric = false}
"""


# --- studies -------------------------------------------------------------------------------------


def as_toml(value: Any) -> str:
    """A value; whole numbers too long for Python to write stand as hexadecimal ones."""
    if isinstance(value, dict):
        inner = (f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool) and value > 10**100:
        return "0x" + 5000 * "f"
    said = {None: "1979-05-27T07:32:00Z", "NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    return said.get(value) or said.get(json.dumps(value)) or json.dumps(value)


def damaged_study(text: str, seed: int) -> bytes:
    """Every second time in its bytes, otherwise in its values."""
    if seed % 2:
        return mutated(text.encode(), seed)
    try:
        content = json.loads(mutated_json(json.dumps(tomllib.loads(text)).encode(), seed))
        found = content if isinstance(content, dict) else {"tasks": content}
        lines = [f"{json.dumps(key)} = {as_toml(value)}" for key, value in found.items()]
    except (ValueError, RecursionError):  # no JSON any more, or nested too deeply to be written
        return mutated(text.encode(), seed)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def read_studies(seeds: range, folder: Path) -> dict[str, int]:
    """How many damaged studies were studies all the same, and how many were refused."""
    texts = [EXAMPLE, *((SHIPPED / f"{name}.toml").read_text() for name in ("crisp", "smoke"))]
    file, counts = folder / "mine.toml", {"read": 0, "refused": 0}
    for seed in seeds:
        file.write_bytes(damaged_study(texts[seed % len(texts)], seed))
        try:
            with at_most(SECONDS):
                _, planned = load(str(file))
            assert planned
            counts["read"] += 1
        except InputError:
            counts["refused"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    return counts


@needs("bullet")
def test_a_damaged_study_is_read_or_refused(tmp_path: Path) -> None:
    counts = read_studies(range(120), tmp_path)
    assert min(counts.values()) >= 10


@needs("bullet")
@pytest.mark.slow
def test_many_damaged_studies_are_read_or_refused(tmp_path: Path) -> None:
    print(read_studies(range(1000, 6000), tmp_path))


# --- files of curves -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content() -> bytes:
    return synthetic.file()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics of fewer samples, and no figures."""
    monkeypatch.setattr(statistics, "resampled", partial(statistics.resampled, samples=20))
    monkeypatch.setattr(statistics, "simulated_coverage", lambda *_: 0.9)
    monkeypatch.setattr(aggregates, "MOST_THRESHOLDS", 5)
    monkeypatch.setattr(charts, "FIGURES", {})


def damaged_table(table: pa.Table, chance: random.Random) -> pa.Table:
    """One cell, or a column as a whole."""
    at = chance.randrange(table.num_columns)
    name, values = table.column_names[at], table.column(at).to_pylist()
    change = chance.choice(("cell", "cell", "cell", "drop", "type", "double", "rename"))
    if change == "drop":
        return table.remove_column(at)
    if change == "double":
        return table.append_column(name, table.column(at))
    if change == "rename":
        return table.rename_columns([*table.column_names[:at], "x", *table.column_names[at + 1 :]])
    if change == "type":
        kind = chance.choice((pa.null(), pa.string(), pa.bool_(), pa.list_(pa.int8())))
        return table.set_column(at, name, pa.nulls(table.num_rows, kind))
    kinds = (str,) if pa.types.is_string(table.schema.types[at]) else (int, float)
    nasty = [one for one in NASTY if one is None or type(one) in kinds]
    values[chance.randrange(len(values))] = chance.choice(nasty)
    try:
        return table.set_column(at, name, pa.array(values, table.schema.types[at]))
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError):
        return damaged_table(table, chance)


def damaged_curves(content: bytes, seed: int) -> bytes:
    """In turn its bytes, its metadata and its rows."""
    chance = random.Random(seed)
    table = pq.read_table(pa.BufferReader(content))
    metadata = table.schema.metadata[b"moie"]
    if seed % 3 == 0:
        return mutated(content, seed)
    if seed % 3 == 1:
        return rewritten(content, mutated_json(metadata, seed), table)
    for _ in range(chance.choice((1, 1, 2, 3))):
        table = damaged_table(table, chance)
    return rewritten(content, metadata, table)


def compare_all(
    content: bytes, seeds: range, folder: Path, seconds: float = SECONDS
) -> dict[str, int]:
    """How many damaged files were compared all the same, and how many were refused."""
    file, counts = folder / "curves.parquet", {"compared": 0, "refused": 0}
    for seed in seeds:
        file.write_bytes(damaged_curves(content, seed))
        try:
            with at_most(seconds):
                page = compare(file)
            facts = json.loads((page.parent / write.FACTS).read_text())
            assert facts["n_runs"] > 0
            counts["compared"] += 1
        except InputError:
            counts["refused"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    return counts


def test_a_damaged_file_of_curves_is_compared_or_refused(
    content: bytes, tmp_path: Path, quick: None
) -> None:
    counts = compare_all(content, range(80), tmp_path)
    assert min(counts.values()) >= 10


@pytest.mark.slow
def test_many_damaged_files_of_curves_are_compared_or_refused(
    content: bytes, tmp_path: Path, quick: None
) -> None:
    print(compare_all(content, range(1000, 6000), tmp_path))


@pytest.mark.slow
def test_damaged_files_of_curves_are_drawn_or_refused(content: bytes, tmp_path: Path) -> None:
    print(compare_all(content, range(6000, 6100), tmp_path, seconds=60.0))

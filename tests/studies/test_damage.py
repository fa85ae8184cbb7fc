"""Damaged studies and files of curves: what is wrong is named, and takes nothing else away."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moie.comparison import curves
from moie.comparison.learners import plan_of
from moie.errors import InputError
from moie.studies.toml_file import load
from tests import tiny
from tests.comparison import synthetic
from tests.comparison.synthetic import rewritten
from tests.fuzzing import at_most

SECONDS = 2.0
OLD = tiny.ROOT / "tests" / "data" / "curves-0.1.0.parquet"


@pytest.fixture(scope="module")
def content() -> bytes:
    return synthetic.file()


def test_a_study_in_a_device_or_too_large_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.symlink_to("/dev/zero")
    with at_most(SECONDS), pytest.raises(InputError, match=r"mine.toml: it is not a regular file"):
        load(str(file))
    file.unlink()
    file.write_bytes(bytes(2**20 + 1))
    with pytest.raises(InputError, match="expected at most 1048576"):
        load(str(file))


def changed(content: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The file with its metadata changed."""
    known = json.loads(pq.read_schema(pa.BufferReader(content)).metadata[b"moie"])
    change(known)
    return rewritten(content, json.dumps(known).encode())


def first(known: dict[str, Any]) -> dict[str, Any]:
    """What is known about the first run, which is damaged."""
    return known["runs"]["Swing-v0/moie-k10/s0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda known: first(known).clear(), "configuration names no task"),
        (lambda known: first(known)["config"].update(seed=10**400), "seed is 1000"),
        (lambda known: first(known)["config"].update(iterations="ten"), "iterations is 'ten'"),
        (lambda known: first(known)["config"].update(seed=1), "seed is not that of its config"),
        (lambda known: first(known).update(versions={"moie": []}), "versions is [], expected"),
        (lambda known: first(known).update(host=3), "host is 3, expected an object"),
        (lambda known: known["runs"].pop("Swing-v0/moie-k10/s0"), "but not its configuration"),
    ],
)
def test_a_damaged_run_of_a_file_takes_no_other_away(
    content: bytes, tmp_path: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    file = tmp_path / "curves.parquet"
    file.write_bytes(content)
    whole = curves.read(file)
    file.write_bytes(changed(content, change))
    found = curves.read(file)
    assert set(whole.runs) - set(found.runs) == {"Swing-v0/moie-k10/s0"}
    assert set(found.rows["run"]) == set(found.runs)
    _, problem = found.unreadable
    assert problem.startswith("Swing-v0/moie-k10/s0: ")
    assert said in problem
    assert found.left_out == ("Swing-v0/moie-k10/s0",)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda known: known.pop("format"), "'format' is missing"),
        (lambda known: known.update(version=2), "its format is 'moie-curves' 2"),
        (lambda known: known.update(runs=[]), "has no attribute 'items'"),
        (lambda known: known.update(study=[]), r"declaration is \[\], expected an object"),
        (lambda known: known["study"].update(runs=3), "not iterable"),
        (lambda known: known["study"]["runs"][0].clear(), "'settings' is missing"),
        (lambda known: known.update(unreadable="all"), "problems is 'all', expected a list"),
        (lambda known: known["overlaps"][0].update(reached="far"), "reached of an overlap is"),
    ],
)
def test_a_damaged_file_of_curves_says_what_is_wrong(
    content: bytes, tmp_path: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    file = tmp_path / "curves.parquet"
    file.write_bytes(changed(content, change))
    with pytest.raises(InputError, match=f"is not a file of curves that moie wrote: .*{said}"):
        curves.read(file)


def test_metadata_that_no_parser_bears_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "curves.parquet"
    for metadata in (100_000 * b"[", b"9" * 5000, b"\xff", b"[]"):
        file.write_bytes(rewritten(content, metadata))
        with pytest.raises(InputError, match="is not a file of curves that moie wrote"):
            curves.read(file)
    file.unlink()
    file.symlink_to("/dev/zero")
    with at_most(SECONDS), pytest.raises(InputError, match="is not a regular file"):
        curves.read(file)


def test_a_flipped_bit_in_the_rows_is_noticed(content: bytes, tmp_path: Path) -> None:
    file, at = tmp_path / "curves.parquet", 4
    column = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(at)
    place = column.data_page_offset + column.total_compressed_size - 3
    damaged = bytearray(content)
    damaged[place] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(InputError, match=r"is not a file of curves that moie wrote: .*checksum"):
        curves.read(file)


def test_the_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Written before there were checksums; settings that are newer have their defaults."""
    content = OLD.read_bytes()
    found = curves.read(OLD)
    (name,) = found.runs
    assert found.rows["return_sampled"].dropna().tolist() == pytest.approx([-1172.2352, -1068.2537])
    assert found.runs[name]["config"]["learner"]["policy"]["experts"] == 3
    assert found.study is not None
    assert found.study["name"] == "kept"
    assert found.unreadable[0].startswith("broken/run.json cannot be read")

    def without_newer(known: dict[str, Any]) -> None:
        del known["unreadable"], known["overlaps"]
        for config in (known["runs"][name]["config"], known["study"]["settings"]):
            for setting in ("schedule", "scaling_hold"):
                del config[setting]
        del known["runs"][name]["config"]["learner"]["crisp"]
        del known["runs"][name]["host"]

    file = tmp_path / "older.parquet"
    file.write_bytes(changed(content, without_newer))
    older = curves.read(file)
    assert older.runs[name]["config"] == found.runs[name]["config"]
    assert older.unreadable == ()
    assert [one.settings for one in plan_of(older.study)] == [
        one.settings for one in plan_of(found.study)
    ]

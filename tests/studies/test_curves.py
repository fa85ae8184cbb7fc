"""All curves in one file: nothing is lost on the way, and damage is named."""

import json
from pathlib import Path

import pandas as pd
import pytest

from moie.errors import InputError
from moie.studies import curves
from tests import tiny


@pytest.fixture
def folder(pendulum: Path, tmp_path: Path) -> Path:
    tiny.copy(pendulum, tmp_path / "runs" / "Pendulum-v1" / "moie-k3" / "s0")
    tiny.copy(pendulum, tmp_path / "runs" / "b")
    tiny.copy(pendulum, tmp_path / "runs" / ".b.left")  # what a killed process leaves
    return tmp_path / "runs"


def test_every_row_of_every_run_is_there(folder: Path, pendulum: Path) -> None:
    found = curves.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0", "b"]
    rows = [json.loads(line) for line in (pendulum / "metrics.jsonl").read_text().splitlines()]
    ours = found.rows[found.rows["run"] == "b"]
    assert len(ours) == len(rows) == 5
    for (_, mine), row in zip(ours.iterrows(), rows, strict=True):
        for name, value in row.items():
            assert mine[name] == value if value is not None else pd.isna(mine[name])
    assert set(ours["parameters"]) == {3 * (3 + 1 + 1) + 1}
    assert ours["learned_steps"].tolist() == [0, 128, 256, 384, 512]
    assert set(found.runs["b"]) == {"config", "versions", "host"}
    assert found.runs["b"]["host"]["cores"] >= 1
    assert found.runs["b"]["config"]["learner"]["policy"]["experts"] == 3


def test_a_file_gives_back_what_was_written(folder: Path, tmp_path: Path) -> None:
    (folder / "study.json").write_text('{"format": "moie-study", "name": "mine", "runs": []}')
    found = curves.read(folder)
    curves.write(found, tmp_path / "curves.parquet")
    again = curves.read(tmp_path / "curves.parquet")
    pd.testing.assert_frame_equal(again.rows, found.rows)
    assert (again.runs, again.study) == (found.runs, found.study)
    plain = pd.read_parquet(tmp_path / "curves.parquet")  # as a user would
    assert plain["return_sampled"].notna().sum() == 2 * 3


def test_a_run_without_rows_or_policy_is_there_all_the_same(folder: Path) -> None:
    for name in ("metrics.jsonl", "policy.safetensors"):
        (folder / "b" / name).unlink()
    found = curves.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0", "b"]
    assert "b" not in set(found.rows["run"])


def test_a_run_that_can_not_be_read_is_named_and_takes_no_other_away(folder: Path) -> None:
    (folder / "b" / "run.json").write_text("{")
    found = curves.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0"]
    (problem,) = found.unreadable
    assert "b/run.json cannot be read" in problem


def test_a_study_json_of_another_program_is_not_ours(folder: Path) -> None:
    (folder / "study.json").write_text('{"best_trial": 3}')
    assert curves.read(folder).study is None


def test_damage_is_named(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.parquet"
    with pytest.raises(InputError, match="there are no runs in"):
        curves.read(tmp_path / "runs" / "b" / "checkpoints")
    with pytest.raises(InputError, match="no folder of runs or file of curves at"):
        curves.read(file)
    pd.DataFrame({"a": [1]}).to_parquet(file)
    with pytest.raises(InputError, match="is not a file of curves that moie wrote"):
        curves.read(file)
    file.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not a file of curves that moie wrote"):
        curves.read(file)
    (folder / "study.json").write_text("{")
    with pytest.raises(InputError, match=r"study\.json cannot be read"):
        curves.read(folder)

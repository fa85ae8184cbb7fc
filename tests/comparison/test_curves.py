"""All curves in one file: nothing is lost on the way, and damage is named."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from moie.comparison import collect, curves, merging
from moie.comparison.curves import Curves
from moie.errors import InputError
from tests import tiny


@pytest.fixture
def folder(pendulum: Path, tmp_path: Path) -> Path:
    tiny.copy(pendulum, tmp_path / "runs" / "Pendulum-v1" / "moie-k3" / "s0")
    tiny.copy(pendulum, tmp_path / "runs" / "b")
    tiny.copy(pendulum, tmp_path / "runs" / ".b.left")  # what a killed process leaves
    return tmp_path / "runs"


def test_every_row_of_every_run_is_there(folder: Path, pendulum: Path) -> None:
    found = collect.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0", "b"]
    rows = [json.loads(line) for line in (pendulum / "metrics.jsonl").read_text().splitlines()]
    ours = found.rows[found.rows["run"] == "b"]
    assert len(ours) == len(rows) == 5
    for (_, mine), row in zip(ours.iterrows(), rows, strict=True):
        for name, value in row.items():
            assert mine[name] == value if value is not None else pd.isna(mine[name])
    assert set(ours["parameters"]) == {3 * (3 + 1 + 1) + 1}
    assert ours["learned_steps"].tolist() == [0, 128, 256, 384, 512]
    of_policies = [row.get("attention") for row in rows[:-1]]  # after each iteration
    assert ours["evaluated_attention"].tolist()[1:] == of_policies
    assert pd.isna(ours["evaluated_attention"].iloc[0])
    assert set(found.runs["b"]) == {"config", "versions", "host"}
    assert found.runs["b"]["host"]["cores"] >= 1
    assert found.runs["b"]["config"]["learner"]["policy"]["experts"] == 3


def test_a_file_gives_back_what_was_written(folder: Path, tmp_path: Path) -> None:
    (folder / "study.json").write_text(
        '{"format": "moie-study", "name": "mine", "settings": {}, "runs": []}'
    )
    found = collect.read(folder)
    curves.write(found, tmp_path / "curves.parquet")
    again = curves.read(tmp_path / "curves.parquet")
    pd.testing.assert_frame_equal(again.rows, found.rows)
    assert (again.runs, again.study) == (found.runs, found.study)
    plain = pd.read_parquet(tmp_path / "curves.parquet")  # as a user would
    assert plain["return_sampled"].notna().sum() == 2 * 3


def test_a_run_without_rows_or_policy_is_there_all_the_same(folder: Path) -> None:
    for name in ("metrics.jsonl", "policy.safetensors"):
        (folder / "b" / name).unlink()
    found = collect.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0", "b"]
    assert "b" not in set(found.rows["run"])


def test_a_run_that_can_not_be_read_is_named_and_takes_no_other_away(folder: Path) -> None:
    (folder / "b" / "run.json").write_text("{")
    found = collect.read(folder)
    assert list(found.runs) == ["Pendulum-v1/moie-k3/s0"]
    (problem,) = found.unreadable
    assert "b/run.json cannot be read" in problem


def test_a_study_json_of_another_program_is_not_ours(folder: Path) -> None:
    (folder / "study.json").write_text('{"best_trial": 3}')
    assert collect.read(folder).study is None


def test_damage_is_named(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.parquet"
    with pytest.raises(InputError, match="there are no runs in"):
        collect.read(tmp_path / "runs" / "b" / "checkpoints")
    with pytest.raises(InputError, match="no folder of runs or file of curves at"):
        collect.read(file)
    pd.DataFrame({"a": [1]}).to_parquet(file)
    with pytest.raises(InputError, match="is not a file of curves that moie wrote"):
        collect.read(file)
    file.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not a file of curves that moie wrote"):
        collect.read(file)
    (folder / "study.json").write_text("{")
    with pytest.raises(InputError, match=r"study\.json cannot be read"):
        collect.read(folder)


def test_a_damaged_run_is_named_and_takes_no_other_away(folder: Path) -> None:
    known = folder / "b" / "run.json"
    content = json.loads(known.read_text())
    known.write_text(json.dumps(content | {"host": ["a", "list"]}))
    (problem,) = collect.read(folder).unreadable
    assert problem == (
        "b/run.json cannot be read: host is ['a', 'list'], expected texts and whole numbers"
    )


def test_a_damaged_line_is_named_and_takes_no_other_away(folder: Path, tmp_path: Path) -> None:
    whole = collect.read(folder).rows
    metrics = folder / "b" / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([lines[0], lines[1][:50] + "\n", *lines[2:]]))
    found = collect.read(folder)
    assert found.unreadable == ()
    damage, gap = found.damaged
    assert damage.startswith("b/metrics.jsonl, line 2 cannot be read: ")
    assert gap == "b/metrics.jsonl, iteration 1 is missing"
    # Every other row is what it was, down to the steps that the evaluated policy had learned from.
    kept = whole[(whole["run"] != "b") | (whole["iteration"] != 1)].reset_index(drop=True)
    columns = [name for name in kept if name != curves.ATTENTION]
    pd.testing.assert_frame_equal(found.rows[columns], kept[columns])
    after = found.rows[(found.rows["run"] == "b") & (found.rows["iteration"] == 2)]
    assert after[curves.ATTENTION].isna().all()

    curves.write(found, tmp_path / "curves.parquet")
    assert curves.read(tmp_path / "curves.parquet").damaged == found.damaged
    assert merging.read([folder, tmp_path / "curves.parquet"]).damaged == found.damaged


@pytest.mark.parametrize(
    "content",
    [
        {"settings": {"task": "Walk-v0"}, "runs": [{"run": "a"}]},
        {"settings": {"task": "Walk-v0"}, "runs": [{"run": 1, "settings": {}}]},
        {"settings": {}, "runs": [{"run": "a", "settings": {}}]},
        {"settings": {"task": "Walk-v0"}, "runs": [{"run": "a", "settings": {"sede": 1}}]},
        {"runs": 3},
    ],
)
def test_a_damaged_declaration_is_named(folder: Path, content: dict[str, Any]) -> None:
    (folder / "study.json").write_text(json.dumps({"format": "moie-study"} | content))
    with pytest.raises(InputError, match=r"study\.json cannot be read"):
        collect.read(folder)


def test_what_was_unreadable_is_still_said_by_the_file(folder: Path, tmp_path: Path) -> None:
    (folder / "b" / "run.json").write_text("{")
    found, file = collect.read(folder), tmp_path / "curves.parquet"
    curves.write(found, file)
    assert curves.read(file).unreadable == found.unreadable
    assert str(tmp_path) not in found.unreadable[0]


def test_runs_of_a_file_that_are_damaged_or_unknown_are_named(folder: Path, tmp_path: Path) -> None:
    found, file = collect.read(folder), tmp_path / "curves.parquet"
    name = "Pendulum-v1/moie-k3/s0"
    curves.write(Curves(found.rows, {name: found.runs[name]}, None), file)
    again = curves.read(file)
    assert again.unreadable == ("b: there are rows of it, but not its configuration",)
    assert set(again.rows["run"]) == {name}
    wrong = json.loads(json.dumps(found.runs["b"]))
    wrong["config"]["learner"]["algorithm"] = "sarsa"
    curves.write(Curves(found.rows, found.runs | {"b": wrong}, None), file)
    (problem,) = curves.read(file).unreadable
    assert problem.startswith("b: algorithm is 'sarsa'")


def test_runs_behind_links_are_found_once(folder: Path, tmp_path: Path) -> None:
    (folder / "b").rename(tmp_path / "elsewhere")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "Pendulum-v1" / "up").symlink_to(folder)
    assert list(collect.read(folder).runs) == ["Pendulum-v1/moie-k3/s0", "linked"]

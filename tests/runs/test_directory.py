"""A run directory: never overwritten, and what is wrong with one is said in one line."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

import moie
from moie import files
from moie.errors import InputError
from moie.runs.config import RunConfig
from moie.runs.disk.directory import RunDirectory
from tests import tiny

CONFIG = RunConfig("Pendulum-v1", seed=4)


def test_a_new_run_can_be_read_back(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "some" / "where", CONFIG)
    assert RunDirectory.open(run.path).read_config() == CONFIG
    content = json.loads(run.config_file.read_text())
    assert {"python", "moie", "jax", "numpy", "gymnasium"} <= set(content["versions"])
    assert os.listdir(tmp_path / "some") == ["where"]
    assert run.path.stat().st_mode & 0o777 == 0o755


def test_an_empty_directory_may_become_a_run(tmp_path: Path) -> None:
    assert RunDirectory.create(tmp_path, CONFIG).read_config() == CONFIG


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", CONFIG)
    before = tiny.contents(run.path)
    with pytest.raises(InputError, match=f"is a run already; go on with: moie resume {run.path}"):
        RunDirectory.create(run.path, RunConfig("Pendulum-v1"))
    assert tiny.contents(tmp_path / "run") == before


def test_a_run_that_appears_in_the_meantime_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = []
    check = RunDirectory.check_free

    def another_is_faster(path: Path) -> None:
        check(path)
        if not checks:
            checks.append(path)
            RunDirectory.create(path, CONFIG)

    monkeypatch.setattr(RunDirectory, "check_free", another_is_faster)
    with pytest.raises(InputError, match="is a run already"):
        RunDirectory.create(tmp_path / "run", RunConfig("Pendulum-v1"))
    assert RunDirectory(tmp_path / "run").read_config() == CONFIG
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("is_file", [True, False])
def test_what_is_not_a_run_is_left_alone(is_file: bool, tmp_path: Path) -> None:
    place = tmp_path / "thesis"
    if is_file:
        place.write_text("do not touch")
    else:
        place.mkdir()
        (place / "chapter.tex").write_text("do not touch")
    before = tiny.contents(tmp_path)
    with pytest.raises(InputError, match="thesis exists and is not empty; choose another --out"):
        RunDirectory.create(place, CONFIG)
    assert tiny.contents(tmp_path) == before


def test_what_is_not_a_run_can_not_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match=r"is not a run: there is no run.json in it"):
            RunDirectory.open(path)
    with pytest.raises(InputError, match="there is no run or policy file at"):
        moie.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="is not a run"):
        moie.load(tmp_path)


def with_config(changes: dict[str, Any]) -> dict[str, Any]:
    return {"format": "moie-run", "config": {"task": "Pendulum-v1"} | changes}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("5", "cannot be read"),
        ("\0\1", "cannot be read"),
        ({}, "cannot be read"),
        ({"format": "other-run"}, "it was not written by moie"),
        ({"format": "moie-run"}, "cannot be read"),
        ({"format": "moie-run", "config": {}}, "names no task"),
        (with_config({"experst": 3}), "unknown setting 'experst'; did you mean experts"),
        (with_config({"learner": {"policy": {"experts": "3"}}}), "experts is '3', expected"),
        (with_config({"learner": 3}), "unknown setting 'learner'"),
        (with_config({"seed": -3}), "seed is -3, expected zero or more"),
    ],
)
def test_a_foreign_or_damaged_configuration_is_named(
    content: Any, words: str, tmp_path: Path
) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError) as caught:
        RunDirectory.open(tmp_path).read_config()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_lock_ends_with_the_work(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", CONFIG)
    with run.lock(), pytest.raises(InputError, match="another process is working on"), run.lock():
        pass
    with run.lock():
        pass


def test_versions_are_those_of_the_start_and_changes_are_named(tmp_path):
    run = RunDirectory.create(tmp_path / "run", CONFIG)
    assert run.started_with()["jax"]
    assert run.changed_versions() == []
    content = json.loads(run.config_file.read_text())
    content["versions"] |= {"jax": "0.0.1", "vanished": "2.0"}
    run.config_file.write_text(json.dumps(content))
    run.change_config(dataclasses.replace(CONFIG, iterations=77))
    assert run.read_config().iterations == 77
    changed = run.changed_versions()
    assert changed[0].startswith("jax 0.0.1 is now ")
    assert changed[1] == "vanished 2.0 is now gone"


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    files.replace_folder(folder, {"a/one": b"1", "two": b"2"})
    before = tiny.contents(folder)
    rename, calls = os.rename, []

    def fails_once(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", fails_once)
    with pytest.raises(KeyboardInterrupt):
        files.replace_folder(folder, {"three": b"3"})
    assert tiny.contents(folder) == before
    assert tiny.leftovers(tmp_path) == []
    files.replace_folder(folder, {"three": b"3"})
    assert tiny.contents(tmp_path) == {"folder/three": b"3"}


def test_what_json_does_not_know_becomes_null() -> None:
    content = {"a": [1.0, float("nan")], "b": {"c": float("inf"), "d": "nan"}, "e": 2}
    assert files.finite(content) == {"a": [1.0, None], "b": {"c": None, "d": "nan"}, "e": 2}

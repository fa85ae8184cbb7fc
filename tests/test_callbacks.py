"""Callbacks hear of every row once, and may stop a run, which can then be resumed."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import moie
from tests import tiny


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the times, which differ from run to run."""
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]


def test_they_get_the_rows_of_the_metrics(pendulum: Path, tmp_path: Path) -> None:
    first: list[Any] = []
    second: list[Any] = []
    run = tiny.train("pendulum", tmp_path / "run", callbacks=[first.append, second.append])
    assert first == second == run.metrics
    assert plain(first) == tiny.metrics(pendulum)
    assert tiny.policy_bytes(run.path) == tiny.policy_bytes(pendulum)


def test_false_stops_a_run_and_resume_goes_on(pendulum: Path, tmp_path: Path) -> None:
    heard: list[Any] = []

    def stop(row: Any) -> bool:
        heard.append(row)
        return False

    run = tiny.train("pendulum", tmp_path / "run", callbacks=[stop])
    assert run.policy.trained["iterations"] == 1
    assert repr(run) == f"<run {run.path}: Pendulum-v1, moie, seed 0, 1 of 4 iterations>"
    assert run.resume(quiet=True, workers=2, callbacks=[heard.append]) == run
    assert tiny.policy_bytes(run.path) == tiny.policy_bytes(pendulum)
    assert plain(heard) == tiny.metrics(pendulum)  # each once, in order


def test_stopped_reaches_the_caller(pendulum: Path, tmp_path: Path) -> None:
    heard: list[Any] = []

    def stop(row: Any) -> None:
        raise moie.Stopped("enough")

    with pytest.raises(moie.Stopped, match="go on with: moie resume") as caught:
        tiny.train("pendulum", tmp_path / "run", callbacks=[stop, heard.append])
    assert str(caught.value.__cause__) == "enough"
    assert [row["iteration"] for row in heard] == [0]  # the other one heard of it all the same
    tiny.resume(tmp_path / "run")
    assert tiny.policy_bytes(tmp_path / "run") == tiny.policy_bytes(pendulum)


def test_a_mistake_in_one_is_not_hidden(pendulum: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="retrun"):
        tiny.train("pendulum", tmp_path / "run", callbacks=[lambda row: row["retrun"]])
    tiny.resume(tmp_path / "run")
    assert tiny.policy_bytes(tmp_path / "run") == tiny.policy_bytes(pendulum)


def test_at_the_end_there_is_nothing_to_stop(tmp_path: Path) -> None:
    last = {"iterations": 1, "callbacks": [lambda row: row["iteration"] < 1]}
    run = tiny.train("pendulum", tmp_path / "run", **last)
    assert [row["iteration"] for row in run.metrics] == [0, 1]


@pytest.mark.parametrize("callbacks", [print, [3], "print"])
def test_what_is_no_list_of_functions_is_refused(callbacks: Any, tmp_path: Path) -> None:
    with pytest.raises(moie.InputError, match=r"callbacks is .*, expected a list of functions"):
        tiny.train("pendulum", tmp_path / "run", callbacks=callbacks)
    assert list(tmp_path.iterdir()) == []


class FakeTracker(ModuleType):
    """What Weights & Biases and Trackio have in common."""

    def __init__(self, name: str):
        super().__init__(name)
        self.said: list[Any] = []

    def init(self, **options: Any) -> "FakeTracker":
        self.said.append(options)
        return self

    def log(self, values: dict[str, Any], step: int) -> None:
        self.said.append((step, values))

    def finish(self) -> None:
        self.said.append("finished")


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_trackers_log_each_row_under_its_iteration(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeTracker(name)
    monkeypatch.setitem(sys.modules, name, fake)
    with getattr(moie.callbacks, name)("poles", name="first") as tracker:
        run = tiny.train("pendulum", tmp_path / "run", callbacks=[tracker], iterations=2)
    opened, *rows, closed = fake.said
    assert opened == {"project": "poles", "name": "first"}
    assert closed == "finished"
    assert [step for step, _ in rows] == [0, 1, 2]
    expected = [{k: v for k, v in row.items() if v is not None} for row in run.metrics]
    assert [values for _, values in rows] == expected
    assert "return_sampled" in rows[0][1]


def test_a_tracker_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "trackio", raising=False)
    with pytest.raises(moie.InputError, match="trackio is not installed: pip install trackio"):
        moie.callbacks.trackio("poles")

"""What a run goes on from: nothing is overwritten, mixed up or lost, and what is wrong is named."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli import main
from moie.errors import InputError, Stopped
from moie.runs import lifecycle, training
from moie.runs.disk import checkpoint
from moie.runs.disk.directory import RunDirectory
from moie.runs.lifecycle import last_checkpoint
from tests import tiny

OLD = tiny.ROOT / "tests" / "data" / "run-0.1.0"


@pytest.fixture
def run(pendulum: Path, tmp_path: Path) -> Path:
    return tiny.copy(pendulum, tmp_path / "run")


def refused(run: Path, **options: Any) -> str:
    """Why it does not go on; nothing has changed."""
    before = tiny.contents(run)
    with pytest.raises(InputError) as caught:
        tiny.resume(run, **options)
    assert tiny.contents(run) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


# --- checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_folder_gone", [True, False])
@pytest.mark.parametrize("name", ["policy.safetensors", "metrics.jsonl"])
def test_a_run_without_its_checkpoints_is_not_started_again(
    is_folder_gone: bool, name: str, run: Path
) -> None:
    shutil.rmtree(run / "checkpoints")
    if not is_folder_gone:
        (run / "checkpoints").mkdir()
    (run / name).unlink()
    other = {"policy.safetensors": "metrics.jsonl", "metrics.jsonl": "policy.safetensors"}[name]
    for options in ({}, {"iterations": 8}):
        said = refused(run, **options)
        assert f"{run} has {other}, but no checkpoint to go on from" in said
        assert f"bring {run / 'checkpoints'} back from a copy, or train another run" in said


def test_a_counter_that_was_changed_is_noticed(run: Path) -> None:
    for folder in (run / "checkpoints").iterdir():
        rewrite(folder / "checkpoint.json", lambda note: note["counters"].update(iteration=2))
    assert "checkpoint.json is truncated or was changed" in refused(run, iterations=8)


@pytest.mark.parametrize(
    ("counters", "said"),
    [
        ({"iteration": 1}, "the folder's name: '000002', expected 000001 as the counters say"),
        ({"steps": 200}, "the policy's steps: 256, expected 200 as the counters say"),
        ({"steps": -1}, "steps is -1, expected a whole number, zero or more"),
        ({"seconds": float("nan")}, "seconds is nan, expected a number, zero or more"),
        ({"seconds": "a"}, "seconds is 'a', expected a number, zero or more"),
        ({"hours": 1}, "hours"),
    ],
)
def test_an_old_checkpoint_without_a_digest_is_checked_all_the_same(
    counters: dict[str, Any], said: str, tmp_path: Path
) -> None:
    run = tiny.copy(OLD, tmp_path / "run")
    shutil.rmtree(run / "checkpoints" / "000001")
    file = run / "checkpoints" / "000002" / "checkpoint.json"
    rewrite(file, lambda note: note["counters"].update(counters))
    assert said in refused(run, iterations=3)


def test_a_folder_with_another_checkpoints_files_is_refused(run: Path) -> None:
    folder = run / "checkpoints"
    shutil.rmtree(folder / "000003")
    (folder / "000004").rename(folder / "000078")
    assert "the folder's name: '000078', expected 000004" in refused(run, iterations=80)


def test_metrics_of_another_run_are_refused(run: Path) -> None:
    *first, row, last = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    changed = json.dumps(json.loads(row) | {"steps": 500}) + "\n"
    (run / "metrics.jsonl").write_text("".join([*first, changed, last]))
    said = refused(run, iterations=8)
    assert "has 500 steps after iteration 3, the checkpoint 000004 has 512" in said


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_learner_that_is_not_finite_is_refused(value: float, run: Path) -> None:
    shutil.rmtree(run / "checkpoints" / "000003")
    made = checkpoint.load(run / "checkpoints" / "000004")
    name = next(name for name in made.learner if name.startswith(".critic."))
    made.learner[name].flat[0] = value
    checkpoint.save(run / "checkpoints", made)
    assert f"the learner's {name} holds numbers that are not finite" in refused(run, iterations=8)


@pytest.mark.parametrize("name", ["/dev/zero", "../../policy.safetensors", "", "checkpoint.json"])
def test_only_its_own_files_are_read(name: str, run: Path) -> None:
    path = run / "checkpoints" / "000004"
    note = json.loads((path / "checkpoint.json").read_text())
    note["sha256"][name] = "0" * 64
    note["digest"] = checkpoint._digest_of_note(note)
    (path / "checkpoint.json").write_text(json.dumps(note))
    with pytest.raises(InputError, match=f"it names a file '{name}', which no checkpoint has"):
        checkpoint.load(path)


@pytest.mark.parametrize("name", ["checkpoint.json", "learner.safetensors"])
def test_pipes_devices_and_huge_files_are_not_read(name: str, run: Path) -> None:
    path = run / "checkpoints" / "000004"
    for make, said in (
        (os.mkfifo, "is not a regular file"),
        (lambda file: file.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda file: (file.touch(), os.truncate(file, 2**40)), "expected at most"),
    ):
        (path / name).unlink()
        make(path / name)
        with pytest.raises(InputError, match=said):
            checkpoint.load(path)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 5_000, "9" * 400])
def test_nothing_in_a_json_file_is_more_than_an_input_error(content: str, run: Path) -> None:
    for file, read in (
        ("checkpoints/000004/checkpoint.json", lambda: checkpoint.load(run / "checkpoints/000004")),
        ("run.json", RunDirectory(run).read_config),
        ("run.json", RunDirectory(run).started_on),
    ):
        (run / file).write_text(content)
        with pytest.raises(InputError):
            read()


# --- configuration -------------------------------------------------------------------------------


POLICY = {
    "learner.policy.temperature": (2.0, "temperature = 2.0, the run was started with 1.0"),
    "seed": (7, "seed = 7, the run was started with 0"),
    "task": (
        "MountainCarContinuous-v0",
        "task = 'MountainCarContinuous-v0', the run was started with 'Pendulum-v1'",
    ),
}
OTHER = {
    "learner.update.epochs": (3, "epochs = 3, the run was started with 2"),
    "learner.ppo.clip": (0.3, "clip = 0.3, the run was started with 0.2"),
    "learner.critic.hidden": ([4], "hidden = (4,), the run was started with (8,)"),
}


def change_setting(run: Path, name: str, value: Any) -> None:
    def change(content: dict[str, Any]) -> None:
        *parts, last = name.split(".")
        part = content["config"]
        for one in parts:
            part = part[one]
        part[last] = value

    rewrite(run / "run.json", change)


@pytest.mark.parametrize("name", [*POLICY, *OTHER])
def test_a_configuration_that_was_changed_is_named(name: str, run: Path) -> None:
    value, said = (POLICY | OTHER)[name]
    change_setting(run, name, value)
    assert f"{run / 'run.json'} has {said}: put that back" in refused(run, iterations=8)


@pytest.mark.parametrize("name", POLICY)
def test_an_old_checkpoint_has_a_policy_that_tells(name: str, tmp_path: Path) -> None:
    value, said = POLICY[name]
    run = tiny.copy(OLD, tmp_path / "run")
    change_setting(run, name, value)
    assert f"{run / 'run.json'} has {said}: put that back" in refused(run, iterations=8)


def test_the_number_of_iterations_may_change(run: Path, pendulum: Path) -> None:
    rewrite(run / "run.json", lambda content: content["config"].update(iterations=5))
    assert [row["iteration"] for row in tiny.resume(run).metrics] == list(range(6))


def test_a_run_of_the_first_version_is_read_and_goes_on(tmp_path: Path) -> None:
    run = tiny.copy(OLD, tmp_path / "run")
    assert moie.load(run).trained["iterations"] == 2
    assert RunDirectory(run).read_config().learner.policy.experts == 3
    rewrite(run / "run.json", lambda content: content["config"].pop("scaling_hold"))
    found = last_checkpoint(RunDirectory(run), pytest.fail)
    assert found is not None
    assert (found.counters.iteration, found.counters.steps, found.config) == (2, 256, None)
    more = tiny.resume(run, iterations=3)
    assert [row["iteration"] for row in more.metrics] == [0, 1, 2, 3]
    assert more.policy.trained["iterations"] == 3


# --- metrics -------------------------------------------------------------------------------------


def test_a_damaged_line_of_the_metrics_stays_and_the_rest_goes_on(
    run: Path, capfd: pytest.CaptureFixture
) -> None:
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    lines[1] = '{"iteration": 1, "steps": "[/b]"}\n'
    file.write_text("".join(lines))
    assert main.main(["resume", str(run), "--iterations", "5", "--workers", "2"]) == 0
    error = capfd.readouterr().err
    assert f"{file}: line 2 cannot be read: steps is '[/b]', expected a number" in error
    assert "iteration 1 is missing; it stays as it is" in error
    now = file.read_text().splitlines(keepends=True)
    assert now[:4] == lines[:4]
    assert [json.loads(line)["iteration"] for line in now[2:]] == [2, 3, 4, 5]
    with pytest.warns(UserWarning, match=r"metrics.jsonl: line 2 cannot be read"):
        assert [row["iteration"] for row in moie.Run(run).metrics] == [0, 2, 3, 4, 5]


# --- what is the user's --------------------------------------------------------------------------


def test_only_what_moie_wrote_is_removed(run: Path) -> None:
    mine = {
        ".notes.txt": b"mine",
        ".policy.safetensors.bak": b"mine",
        "notes.md": b"mine",
        "checkpoints/.keep.me": b"mine",
        "checkpoints/2024-11-03/policy.safetensors": b"mine",
        "checkpoints/7/policy.safetensors": b"mine",
        "checkpoints/0000001/policy.safetensors": b"mine",
    }
    for name, content in mine.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_bytes(content)
    tiny.resume(run, iterations=6)
    now = tiny.contents(run)
    assert {name: now.get(name) for name in mine} == mine
    assert [path.name for path in checkpoint.present(run / "checkpoints")] == ["000005", "000006"]


# --- a start that fails --------------------------------------------------------------------------


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*arguments: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [InputError("no"), Stopped("stopped"), KeyboardInterrupt(), RuntimeError("a bug")]
)
@pytest.mark.parametrize("place", ["run", "some/where/run", "empty"])
def test_a_run_without_an_iteration_leaves_nothing_behind(
    error: BaseException, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(training.Training, "_go", failing(error))
    with pytest.raises(type(error)) as caught:
        tiny.train("pendulum", tmp_path / place)
    if isinstance(error, Stopped):
        said = "stopped before the first iteration was complete; nothing is kept"
        assert str(caught.value) == said
    assert os.listdir(tmp_path) == ["empty"]
    assert os.listdir(tmp_path / "empty") == []


def test_what_somebody_put_there_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: training.Training, session: Any) -> None:
        (self.run.path / "notes.md").write_text("mine")
        raise InputError("no")

    monkeypatch.setattr(training.Training, "_go", fail)
    with pytest.raises(InputError, match="no"):
        tiny.train("pendulum", tmp_path / "some" / "run")
    assert tiny.contents(tmp_path) == {"some/run/notes.md": b"mine"}


def test_a_run_that_was_there_is_not_removed(run: Path) -> None:
    config, before = RunDirectory(run).read_config(), tiny.contents(run)
    begin = lifecycle.starting(run, lambda: [RunDirectory.create(run, config)])
    with pytest.raises(InputError, match="is a run already"), begin:
        pytest.fail("it must not begin")
    assert tiny.contents(run) == before

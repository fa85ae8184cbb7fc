"""No module that a file names is imported without the user's consent."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moie import api
from moie.cli import main
from moie.environments.consent import check_consent, resume_command
from moie.errors import InputError
from moie.policy import file as policy_file
from moie.runs.config import RunConfig
from moie.runs.disk.directory import RunDirectory
from tests import probes, tiny

MODULE = "no_friend_of_ours"
TASK = f"{MODULE}:Nowhere-v0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a module, a policy file and a run that name it; it is where modules are looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{MODULE}.py").write_text("import pathlib; pathlib.Path('executed').touch()")
    policy = replace(tiny.policy("Pendulum-v1"), task=TASK)
    policy_file.save_file(tmp_path / "policy.safetensors", policy)
    RunDirectory.create(tmp_path / "run", RunConfig(TASK))
    return tmp_path


CALLS: dict[str, Callable[..., Any]] = {
    "resume": lambda **options: api.resume("run", quiet=True, **options),
    "explain": lambda **options: api.explain("policy.safetensors", quiet=True, **options),
    "prune": lambda **options: api.prune("policy.safetensors", quiet=True, **options),
}


def said(words: list[str], capfd: pytest.CaptureFixture) -> str:
    assert main.main(words) == 2
    return capfd.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "explain", "prune", "resume"])
def test_a_command_imports_the_module_of_a_file_with_consent_only(
    command: str, folder: Path, capfd: pytest.CaptureFixture
) -> None:
    path = "run" if command == "resume" else "policy.safetensors"
    before = sorted(os.listdir(folder))
    line = said([command, path], capfd)
    assert f"{path} names the task '{TASK}': to make it is to import the module '{MODULE}'" in line
    assert "repeat this with --trust-task (trust_task=True in Python)" in line
    if command in CALLS:
        with pytest.raises(InputError, match="--trust-task"):
            CALLS[command]()
    assert sorted(os.listdir(folder)) == before
    assert MODULE not in sys.modules
    try:
        # With consent the module is imported; the task it should register is not there.
        assert f"unknown environment '{TASK}'" in said([command, path, "--trust-task"], capfd)
        assert (folder / "executed").exists()
    finally:
        sys.modules.pop(MODULE, None)


def test_looking_at_a_file_imports_nothing(folder: Path, capfd: pytest.CaptureFixture) -> None:
    (folder / "state.json").write_text("[0, 0, 0]")
    assert main.main(["show", "policy.safetensors"]) == 0
    assert main.main(["explain", "policy.safetensors", "--state", "state.json"]) == 0
    assert not (folder / "executed").exists()


@pytest.mark.parametrize(
    "task",
    [
        *("Pendulum-v1", "HopperBulletEnv-v0", "gymnasium:Pendulum-v1"),
        *("pybullet_envs_gymnasium:AntBulletEnv-v0", "gymnasium.envs.mujoco:Ant-v5"),
        f"{probes.__name__}:Walk-v0",  # loaded already
    ],
)
def test_familiar_and_loaded_modules_need_no_consent(task: str) -> None:
    check_consent(task, False, "a file")


@pytest.mark.parametrize("task", ["moie.__main__:X", "gymnasium_evil:X", ".x:X", "a:gymnasium:X"])
def test_lookalikes_need_consent(task: str) -> None:
    with pytest.raises(InputError, match="names the task"):
        check_consent(task, False, "a file")


def test_a_specification_is_no_task_even_with_consent() -> None:
    task = '{"id": "X-v0", "entry_point": "os:system", "kwargs": {"command": "touch executed"}}'
    with pytest.raises(InputError, match="expected an environment id"):
        check_consent(task, True, "a file")


def test_what_to_type_to_go_on() -> None:
    assert resume_command("runs/a", "pendulum") == "moie resume runs/a"
    assert resume_command("runs/a", TASK) == "moie resume runs/a --trust-task"

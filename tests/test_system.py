"""What differs between operating systems, seen from one that lacks what Linux and macOS have."""

import subprocess
from pathlib import Path

import pytest

import moie
from moie.policy import file as policy_file
from tests import tiny

POLICY = Path(__file__).parent / "data" / "mixture-v1.safetensors"
REFUSAL = "training and simulating need Linux or macOS; on "
ELSEWHERE = """
import os, sys
for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp"):
    sys.modules[name] = None
for name in ("O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "fork", "getuid", "geteuid",
             "killpg", "getpgid", "setsid", "sched_getaffinity", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
"""


def elsewhere(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has none of the modules and functions that Windows lacks."""
    words = tiny.command(code=ELSEWHERE + code)
    return subprocess.run(words, env=tiny.environment(), capture_output=True, text=True, timeout=60)


def test_policies_are_loaded_and_act_everywhere() -> None:
    code = f"""
sys.modules["_posixsubprocess"] = None  # no process is started either
import moie
policy = moie.load({str(POLICY)!r})
state = [0.1] * len(policy.feature_names)
action, _ = policy.predict(state, deterministic=True)
policy.explain(state)
print(action.tolist())
"""
    done = elsewhere(code)
    assert done.returncode == 0, done.stderr
    policy = moie.load(POLICY)
    action, _ = policy.predict([0.1] * len(policy.feature_names), deterministic=True)
    assert done.stdout == f"{action.tolist()}\n"


@pytest.mark.parametrize("words", [["--help"], ["tasks"], ["show", str(POLICY)]])
def test_commands_that_only_look_work_everywhere(words: list[str]) -> None:
    done = elsewhere(f"from moie.cli.main import main\nassert main({words}) == 0")
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_are_refused_where_they_cannot_be_locked(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from moie.errors import InputError
from moie.runs.config import RunConfig
from moie.runs.disk.directory import RunDirectory
run = RunDirectory.create(Path({str(tmp_path / "run")!r}), RunConfig("Pendulum-v1"))
try:
    with run.lock():
        print("locked")
except InputError as error:
    print(error)
"""
    done = elsewhere(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(REFUSAL)


@pytest.mark.parametrize("command", [["evaluate"], ["studio", "--no-browser"]])
def test_what_simulates_is_refused_in_one_line(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(tiny.policy("Pendulum-v1")))
    words = [command[0], str(file), *command[1:]]
    done = elsewhere(f"from moie.cli.main import main\nassert main({words}) == 2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"moie: {REFUSAL}")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)

"""No control character of a file reaches the terminal."""

import ast
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.cli import main
from moie.policy import file as policy_file
from moie.runs.config import RunConfig
from moie.runs.disk.directory import RunDirectory
from moie.terminal import printable, printable_lines
from tests import tiny

SOURCE = Path(moie.__file__).parent
EVIL = "\x1b]0;owned\x07\x1b[2J\rname\n# a line\u202e\ud800\x9b31m"
SAFE = r"\x1b]0;owned\x07\x1b[2J\rname\n# a line\u202e\ud800\x9b31m"


def test_what_is_not_to_be_seen_is_written_out() -> None:
    assert printable(EVIL) == SAFE
    assert printable("Größe ± 5 °") == "Größe ± 5 °"
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_of_any_encoding_will_do(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows writes what is sent to a file as cp1252; moie edit reads UTF-8."""

    def shown(*words: str) -> bytes:
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main.main(["show", str(file), *words]) == 0
        return stream.buffer.getvalue()

    labels = ("schräg", "左", "\U0001f916")
    file = tiny.policy("Pendulum-v1", labels=labels).save(tmp_path / "policy.safetensors")
    lines = shown().decode(encoding)
    (tmp_path / "mine.toml").write_bytes(shown("--format", "toml"))
    new = moie.edit(file, tmp_path / "mine.toml", episodes=0).path
    assert new.read_bytes() == file.read_bytes()
    kept = {"ascii": "", "cp1252": "ä", "utf-8": "ä左\U0001f916"}[encoding]
    assert set(kept) <= set(lines)


@pytest.mark.parametrize("name", ["mixture-v1", "mixture-v2-metric", "linear-v1", "network-v1"])
def test_show_and_explain_print_no_control_characters(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    policy = moie.load(Path(__file__).parent / "data" / f"{name}.safetensors")
    evil = replace(
        policy,
        task=EVIL,
        feature_names=(EVIL,) * 3,
        action_names=(EVIL,),
        trained=policy.trained | {"algorithm": EVIL},
    )
    file, state = tmp_path / "policy.safetensors", tmp_path / "state.npy"
    policy_file.save_file(file, evil)
    np.save(state, np.zeros(3))
    assert main.main(["show", str(file)]) == 0
    main.main(["explain", str(file), "--state", str(state)])
    for command in ("evaluate", "prune", "explain"):
        assert main.main([command, str(file), "--episodes", "2"]) == 2
    said = "".join(capfd.readouterr())
    assert SAFE in said
    assert all(line.isprintable() for line in said.split("\n"))
    assert "\n# a line" not in said


def test_errors_and_runs_print_no_control_characters(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    RunDirectory.create(tmp_path / "run", RunConfig("[red]\x1b[2J"))
    assert main.main(["resume", str(tmp_path / "run")]) == 2
    assert main.main(["show", "\x1b[2J"]) == 2
    assert main.main(["\x1b[2J"]) == 2
    said = capfd.readouterr().err
    assert said.count(r"\x1b[2J") == 3
    assert "\x1b" not in said


def test_one_place_prints() -> None:
    """Whatever the commands say goes through `say`, and rich gets no markup of a file."""
    for file in sorted(SOURCE.rglob("*.py")):
        calls = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert "print" not in names or file.name == "terminal.py", file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b"[" * 100_000),
        ("state.json", b"[1, " + b"9" * 400 + b"]"),
        ("state.json", b"\xff\xfe"),
        ("state.npy", b""),
        ("state.npy", b"\x93NUMPY\x01\x00\x02\x00{("),
    ],
)
def test_a_state_that_cannot_be_read_is_refused(
    name: str, content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    file, state = tmp_path / "policy.safetensors", tmp_path / name
    policy_file.save_file(file, tiny.policy("Pendulum-v1"))
    state.write_bytes(content)
    for path in (state, Path("/dev/zero")):
        assert main.main(["explain", str(file), "--state", str(path)]) == 2
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith(f"moie: {state} is not a state: ")
    assert said[1:] == ["moie: cannot read /dev/zero: it is not a regular file"]

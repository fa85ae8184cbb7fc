"""What an export consists of, that it can be checked, and what is refused."""

import ast
import hashlib
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli.main import main
from moie.exports.naming import identifier
from moie.exports.notes import in_comment
from moie.policy.base import Origin, Policy
from moie.surgery.draft import Draft, built
from tests import tiny
from tests.exports.states import DATA, MIXTURE, linear, network
from tests.exports.targets import STRICT, TARGETS, tool, tools  # noqa: F401  a fixture

NASTY = ("*/ int x; /*", "a\nb", "??/", 'say "hi" \\', "\u202eright to left", "größe θ", "-->")


# --- the whole way -------------------------------------------------------------------------------


@pytest.mark.parametrize("to", TARGETS)
def test_an_export_can_be_checked(to: str, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    out = tmp_path / "out"
    assert main(["export", str(MIXTURE), "--to", to, "--out", str(out)]) == 0
    assert f"check it with: moie export --check {out}" in capfd.readouterr().out
    assert main(["export", "--check", str(out)]) == 0
    digest = hashlib.sha256(MIXTURE.read_bytes()).hexdigest()
    said = re.escape(f"{to}, policy {digest[:12]}: ") + r"\d\d test vectors agree, largest error "
    assert re.match(said, capfd.readouterr().out)
    assert json.loads((out / "export.json").read_bytes())["policy"] == digest
    stem = identifier("Pendulum-v1")
    ends = {"c": "c", "onnx": "onnx", "python": "py", "javascript": "mjs"}
    assert digest.encode() in (out / f"{stem}.{ends[to]}").read_bytes()


@pytest.mark.parametrize("to", ["c", "javascript"])
def test_an_export_of_the_first_version_can_be_checked(to: str) -> None:
    """It gives NaN where exports now command a safe action."""
    said = moie.check_export(DATA / "export-v1" / to)
    assert said.startswith(f"{to}, policy ")
    assert "28 test vectors agree" in said


SMALL = network(hidden=(30,), weight=1e-6)
"""A network whose numbers have exponents."""


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize(
    "policy", [network(), linear(), SMALL], ids=["network", "linear", "small weights"]
)
def test_networks_and_linear_policies_can_be_exported(
    policy: Policy, to: Any, tmp_path: Path
) -> None:
    assert "test vectors agree" in moie.check_export(moie.export(policy, to, out=tmp_path / "out"))


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("weight", [0.0, 1e-50, 1e50])
def test_a_single_expert_may_have_any_weight(weight: float, to: Any, tmp_path: Path) -> None:
    """Also one that single precision cannot hold; C is asked for double precision."""
    policy = tiny.policy("pendulum", experts=1, weights=np.array([weight]))
    precision: Any = "double" if to == "c" else None
    out = moie.export(policy, to, out=tmp_path / "out", precision=precision)
    assert "agree" in moie.check_export(out)


@pytest.mark.parametrize("to", TARGETS)
def test_names_may_hold_anything(to: Any, tmp_path: Path) -> None:
    policy = tiny.policy("pendulum", feature_names=NASTY[:3], action_names=NASTY[3:4])
    policy = replace(policy, task=f"my:{NASTY[4]}*/-v0", trained={"algorithm": NASTY[0]})
    assert "agree" in moie.check_export(moie.export(policy, to, out=tmp_path / "one"))
    policy = replace(
        policy, feature_names=NASTY[4:], action_names=NASTY[:1], labels=("*/", "", "\u2013")
    )
    assert "agree" in moie.check_export(moie.export(policy, to, out=tmp_path / "two"))


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("task", ["Main", "Math", "int", "act", "Time", "os"])
def test_tasks_may_have_any_name(task: str, to: Any, tmp_path: Path) -> None:
    """Exports to C have a main.c of their own, those to Python import math, and a program of
    Python's has imported others."""
    policy = replace(tiny.policy("pendulum"), task=task)
    assert "agree" in moie.check_export(moie.export(policy, to, out=tmp_path / "out"))


@pytest.mark.parametrize(
    "text", ["???/", "??/??/", "/*/", "**//", "//**", "http://a", "\\", "a\nb*/"]
)
def test_no_text_ends_a_comment(text: str) -> None:
    found = in_comment(text)
    assert not any(mark in found for mark in ("??", "*/", "/*", "//", "\n"))
    assert not found.endswith("\\")


def test_the_same_policy_gives_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="moie[export] is not installed")
    for to in TARGETS:
        folders = [moie.export(MIXTURE, to, out=tmp_path / f"{to}{i}") for i in range(2)]
        assert tiny.contents(folders[0]) == tiny.contents(folders[1])


def test_places(tmp_path: Path) -> None:
    run = moie.Run(tiny.copy(DATA / "run-0.1.0", tmp_path / "run"))
    assert run.export("python") == tmp_path / "run" / "export-python"
    file = run.policy.save(tmp_path / "mine.safetensors")
    assert moie.export(file, "python") == tmp_path / "mine-export-python"
    with pytest.raises(moie.InputError, match="out is missing"):
        moie.export(run.policy, "python")


def test_an_older_export_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    out = moie.export(MIXTURE, "c", out=tmp_path / "out")
    moie.export(MIXTURE, "python", out=out)
    assert sorted(os.listdir(out)) == ["export.json", "pendulum_v1.py", "pendulum_v1_test.py"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("do not touch")
    with pytest.raises(moie.FileError, match="exists and is not an export"):
        moie.export(MIXTURE, "c", out=tmp_path / "thesis")
    assert os.listdir(tmp_path / "thesis") == ["chapter.tex"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Makefile", "holds 'Makefile', which is not part of the export there"),
        ("main.c", r"main\.c does not match export\.json: it was damaged or changed; delete the"),
        ("export.json", r"it was not written by moie; delete the folder, or choose another --out"),
    ],
)
def test_what_a_person_has_added_or_changed_is_not_replaced(
    name: str, expected: str, tmp_path: Path
) -> None:
    out = moie.export(MIXTURE, "c", out=tmp_path / "out")
    (out / name).write_text("{}")
    before = tiny.contents(out)
    with pytest.raises(moie.FileError, match=expected):
        moie.export(MIXTURE, "c", out=out)
    assert tiny.contents(out) == before


def test_what_running_an_export_leaves_is_in_nobodys_way(tmp_path: Path) -> None:
    out = moie.export(MIXTURE, "python", out=tmp_path / "out")
    (out / "__pycache__").mkdir()
    for name in ("a.out", "policy.o"):
        (out / name).write_text("")
    moie.export(MIXTURE, "c", out=out)
    files = ["export.json", "main.c", "pendulum_v1.c", "pendulum_v1.h", "pendulum_v1_test.c"]
    assert sorted(os.listdir(out)) == files


# --- what the files say --------------------------------------------------------------------------


def test_the_source_in_c_can_be_reviewed(tmp_path: Path) -> None:
    origin = Origin(7, 2, 1, 0, np.zeros((1, 1), np.float32))
    policy = tiny.policy("pendulum", labels=("", "push off", ""), origins=(origin, None, None))
    policy = replace(policy, trained={"algorithm": "crisp", "seed": 3, "steps": 4096})
    source = (moie.export(policy, "c", out=tmp_path / "c") / "pendulum.c").read_text()
    assert "learned  crisp, seed 3, 4,096 steps, 16 parameters" in source
    use = "led 33% of the last batch, the default not counted, membership 25.0%"
    assert f"expert 0: {use}" in source
    assert "from iteration 7, episode 2, step 1" in source
    assert policy.label(1) in source
    assert "push off" in policy.label(1)
    for name in policy.feature_names:
        assert source.count(f"/* {name} */") == 3  # of the prototypes
        assert source.count(f"/* {name}: 1 / ") == 1  # what is close
    for action in policy.actions[:, 0]:
        assert f"{np.float32(action)!s}f," in source
    assert "malloc" not in source


def test_what_was_changed_by_hand_is_said(tmp_path: Path) -> None:
    policy = tiny.policy("pendulum")
    draft = replace(
        Draft.of(policy), labels=("", "push off", ""), weights=policy.weights * [1, 2, 1]
    )
    edited = built(draft, policy)
    for to, name in (
        ("c", "pendulum.c"),
        ("python", "pendulum.py"),
        ("javascript", "pendulum.mjs"),
    ):
        source = (moie.export(edited, to, out=tmp_path / to) / name).read_text()
        assert 'expert 1 "push off": led 33% of the last batch' in source
        assert "weight set by hand" in source
        assert re.search(r"by hand  expert 1 .*: weight from \d\.\d+ to \d\.\d+", source)


@pytest.mark.parametrize("precision", ["float", "double"])
def test_c_calls_nothing_but_exp(precision: Any, tmp_path: Path) -> None:
    compiler = tool("gcc")
    for policy in (tiny.policy("pendulum"), network()):
        out = moie.export(policy, "c", out=tmp_path / "out", precision=precision)
        words = [compiler, *STRICT, "-O0", "-c", f"{identifier(policy.task)}.c", "-o", "policy.o"]
        subprocess.run(words, cwd=out, check=True)
        found = subprocess.run(["nm", "-u", "policy.o"], cwd=out, capture_output=True, text=True)
        assert found.stdout.split() == ["U", {"float": "expf", "double": "exp"}[precision]]


def test_python_imports_nothing_but_math(tmp_path: Path) -> None:
    for policy in (tiny.policy("pendulum"), linear()):
        file = moie.export(policy, "python", out=tmp_path / "out")
        tree = ast.parse((file / f"{identifier(policy.task)}.py").read_text())
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert [ast.unparse(node) for node in found] == ["import math"]


def test_a_model_says_what_it_is(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="moie[export] is not installed")
    policy = moie.load(MIXTURE)
    model = onnx.load(moie.export(MIXTURE, "onnx", out=tmp_path / "out") / "pendulum_v1.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 18)]
    ends = [[one.name for one in end] for end in (model.graph.input, model.graph.output)]
    assert ends == [["obs"], ["actions"]]
    known = {one.key: one.value for one in model.metadata_props}
    assert known["task"] == "Pendulum-v1"
    assert tuple(json.loads(known["feature_names"])) == policy.feature_names
    assert tuple(json.loads(known["action_names"])) == policy.action_names
    assert json.loads(known["experts"])[0].startswith("expert 0: led ")
    assert known["policy_sha256"] == hashlib.sha256(MIXTURE.read_bytes()).hexdigest()
    assert "task's own" in known["units"]


def test_a_model_has_names_as_they_are(tmp_path: Path) -> None:
    """In a comment of C, some would have to be written otherwise."""
    onnx = pytest.importorskip("onnx", reason="moie[export] is not installed")
    policy = tiny.policy("pendulum", feature_names=NASTY[:3], action_names=NASTY[3:4])
    model = onnx.load(moie.export(policy, "onnx", out=tmp_path / "out") / "pendulum.onnx")
    known = {one.key: one.value for one in model.metadata_props}
    assert tuple(json.loads(known["feature_names"])) == NASTY[:3]
    assert tuple(json.loads(known["action_names"])) == NASTY[3:4]


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("HopperBulletEnv-v0", "hopper_bullet_env_v0"),
        ("Walker2DBulletEnv-v0", "walker2_d_bullet_env_v0"),
        ("HalfCheetah-v5", "half_cheetah_v5"),
        ("my_module:My-Env_v0", "my_env_v0"),
        ("2048-v0", "policy_2048_v0"),
        ("größe", "gr_e"),
        ("класс", "policy"),
        ("lambda", "policy_lambda"),
        ("Main", "policy_main"),
        ("my:math", "policy_math"),
        ("Time", "policy_time"),
        ("x" * 500, "x" * 60),
    ],
)
def test_identifiers(task: str, name: str) -> None:
    assert identifier(task) == name


def test_what_is_no_number_gives_the_safe_action_in_javascript(tmp_path: Path) -> None:
    """JSON has null for NaN."""
    out = moie.export(MIXTURE, "javascript", out=tmp_path / "out", safe_action=[0.25])
    code = 'import { act } from "./pendulum_v1.mjs"; console.log(act([0, null, 0]), act([0, 0, 0]))'
    words = [tool("node"), "--input-type=module", "-e", code]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True)
    assert re.fullmatch(r"\[ 0\.25 \] \[ -?\d\.\d{3,} \]\n", done.stdout), done

"""Exports that are refused, and exports that are found out."""

import hashlib
import importlib.util
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli.main import main
from moie.exports.manifest import digest_of
from moie.policy.truth import led
from tests import tiny
from tests.exports.states import MIXTURE
from tests.exports.targets import TARGETS, tool, tools  # noqa: F401  a fixture


def sealed(folder: Path, name: str, content: bytes) -> None:
    """Change a file of an export so that no digest gives it away."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "export.json").read_bytes())
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    manifest["sha256"] = digest_of(manifest)
    (folder / "export.json").write_text(json.dumps(manifest))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("export", "the run or policy file is missing: moie export RUN --to c|onnx|python|"),
        ("export nowhere", "the language is missing: moie export RUN --to c|onnx|python|"),
        ("export nowhere --to rust", "to is 'rust', expected one of c, onnx, python, javascript"),
        ("export nowhere --to c", "there is no run or policy file at nowhere"),
        ("export FILE --to c --precision half", "precision is 'half', expected float or double"),
        ("export FILE --to onnx --precision float", "only C has a choice"),
        ("export FILE --to c --out FILE", "exists and is not an export; choose another --out"),
        ("export FILE --to c --out FILE/c", "cannot write"),
        ("export FILE --to c --out /proc/nowhere", "cannot write /proc/nowhere"),
        ("export FILE --to c --out LONG", "File name too long"),
        ("export FILE --to c --out LOOP", "cannot write"),
        ("export DAMAGED --to c", "is not a moie policy file"),
        ("export --check nowhere", "nowhere is not an export: there is no export.json in it"),
        ("export FILE --check nowhere", "--check takes the folder of an export and nothing else"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: str, expected: str, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    content = MIXTURE.read_bytes()
    (tmp_path / "good").write_bytes(content)
    (tmp_path / "bad").write_bytes(content[:-9])
    (tmp_path / "loop").symlink_to("loop")
    meant = {"FILE": str(tmp_path / "good"), "DAMAGED": str(tmp_path / "bad")}
    meant |= {"LONG": str(tmp_path / ("x" * 300)), "LOOP": str(tmp_path / "loop")}
    for name, path in meant.items():
        words = words.replace(name, path)
    before = tiny.contents(tmp_path)
    assert main(words.split()) == 2
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("moie: ")
    assert expected in said.err
    assert tiny.contents(tmp_path) == before
    assert not (tmp_path / "good").is_dir()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"weights": np.array([1.0, 1e50, 1.0])},
            "cannot hold 1e\\+50, one of the policy's weights",
        ),
        (
            {"feature_scale": np.full(3, 1e-30), "temperature": 1e20},
            "cannot hold 1e-40, one of the policy's closeness scales",
        ),
        ({"feature_scale": np.full(3, 1e-7)}, "single precision changes the policy's actions by"),
    ],
)
def test_a_policy_that_single_precision_cannot_hold(
    changes: dict, expected: str, tmp_path: Path
) -> None:
    tool("gcc")
    policy = tiny.policy("pendulum", **changes)
    with pytest.raises(moie.InputError, match=f"{expected}.*--precision double"):
        moie.export(policy, "c", out=tmp_path / "some" / "where")
    assert not (tmp_path / "some").exists()
    done = moie.check_export(moie.export(policy, "c", out=tmp_path / "out", precision="double"))
    assert "agree" in done


def test_a_policy_of_another_kind_cannot_be_exported(tmp_path: Path) -> None:
    from moie.exports.description import describe

    with pytest.raises(moie.InputError, match="of the kind Led cannot be exported"):
        describe(led(tiny.policy("pendulum"), 1))


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("bound", [2.0, 3e38], ids=["pendulum's range", "as good as unbounded"])
def test_an_export_that_does_something_else_is_found_out(
    bound: float, to: Any, tmp_path: Path
) -> None:
    policy = tiny.policy("pendulum", action_low=np.array([-bound]), action_high=np.array([bound]))
    out = moie.export(policy, to, out=tmp_path / "out")
    other = replace(policy, weights=policy.weights * (1.001 if bound == 2.0 else 2.0))
    changed = tiny.contents(moie.export(other, to, out=tmp_path / "other"))
    name = next(n for n in changed if n in {f"pendulum.{e}" for e in ("c", "onnx", "py", "mjs")})
    sealed(out, name, changed[name])
    with pytest.raises(moie.FileError, match=r"\d+ of (28|37) test vectors differ"):
        moie.check_export(out)


@pytest.mark.parametrize("to", TARGETS)
def test_an_export_that_hides_nan_is_found_out(to: Any, tmp_path: Path) -> None:
    out = moie.export(tiny.policy("pendulum"), to, out=tmp_path / "out")
    if to == "onnx":
        import onnx

        model = onnx.load(out / "pendulum.onnx")
        (zero,) = (one for one in model.graph.node if one.name == "actions_double")
        zero.input[1] = "zero"
        sealed(out, "pendulum.onnx", model.SerializeToString())
    else:
        name, old, new = {
            "c": ("pendulum.c", "= PENDULUM_STATUS_NOT_FINITE", "= PENDULUM_STATUS_OK"),
            "python": ("pendulum.py", "return NOT_FINITE", "return OK"),
            "javascript": ("pendulum.mjs", "return NOT_FINITE", "return OK"),
        }[to]
        text = (out / name).read_text()
        assert old in text
        sealed(out, name, text.replace(old, new).encode())
    said = "does not give NaN" if to == "onnx" else "test vectors differ"
    with pytest.raises(moie.FileError, match=said):
        moie.check_export(out)


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    chance = random.Random(0)
    out = moie.export(MIXTURE, "c", out=tmp_path / "out")
    meant = json.loads((out / "export.json").read_bytes())
    for name, content in tiny.contents(out).items():
        for _ in range(60):
            at, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
            damaged = bytearray(content)
            damaged[at] ^= bit
            (out / name).write_bytes(damaged)
            if name == "export.json" and _same(damaged, meant):
                continue  # between words
            with pytest.raises(moie.FileError):
                moie.check_export(out)
        (out / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(moie.FileError):
            moie.check_export(out)
        (out / name).unlink()
        with pytest.raises(moie.FileError):
            moie.check_export(out)
        (out / name).write_bytes(content)


def _same(content: bytes, meant: dict) -> bool:
    try:
        return json.loads(content) == meant
    except ValueError:
        return False


def test_a_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    out = moie.export(MIXTURE, "python", out=tmp_path / "out")
    (tmp_path / "secret.py").write_text("")
    sealed(out, "../secret.py", b"print('read')")
    with pytest.raises(moie.FileError, match=r"names the file '\.\./secret\.py', expected one of"):
        moie.check_export(out)


@pytest.mark.parametrize(("to", "names"), [("c", "gcc or cc or clang"), ("javascript", "node")])
def test_a_missing_tool_is_named(
    to: Any, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = moie.export(MIXTURE, to, out=tmp_path / "out")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(moie.InputError, match=f"needs {names}.*not installed"):
        moie.check_export(out)


@pytest.mark.parametrize(("to", "module"), [("onnx", "onnx"), ("check", "onnxruntime")])
def test_a_missing_package_is_named(
    to: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx", reason="moie[export] is not installed")
    out = moie.export(MIXTURE, "onnx", out=tmp_path / "out")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == module else found(name, *rest),
    )
    with pytest.raises(moie.InputError, match=f"{module}, not installed: .*export"):
        moie.check_export(out) if to == "check" else moie.export(MIXTURE, to, out=out)


def test_a_model_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="moie[export] is not installed")
    out = moie.export(MIXTURE, "onnx", out=tmp_path / "out")
    sealed(out, "pendulum_v1.onnx", b"no model")
    with pytest.raises(moie.FileError, match=r"pendulum_v1.onnx cannot be run: "):
        moie.check_export(out)
    sealed(out, "pendulum_v1_vectors.json", b"{}")
    with pytest.raises(moie.FileError, match=r"pendulum_v1.onnx cannot be run: "):
        moie.check_export(out)

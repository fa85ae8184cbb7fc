"""Exports at work: what each of them gives for many observations, in its own language."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.exports.check import FLAGS
from moie.exports.naming import identifier
from moie.policy.base import Array, Policy
from moie.policy.mixture import Mixture

TARGETS = ("c", "onnx", "python", "javascript")
INSTALL = {"gcc": "apt-get install gcc", "node": "apt-get install nodejs"}
STRICT = (*FLAGS, "-Wdouble-promotion")
SCRIPT = """
import fs from "node:fs";
const [module, width, source, target] = process.argv.slice(2);
const { act } = await import(module);
const bytes = fs.readFileSync(source);
const numbers = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
const actions = [];
for (let i = 0; i < numbers.length; i += Number(width)) {
  actions.push(...act(numbers.subarray(i, i + Number(width))));
}
fs.writeFileSync(target, new Uint8Array(Float64Array.from(actions).buffer));
"""


def tool(name: str) -> str:
    """A program that runs exports; without it the test fails, or is skipped if that is wanted."""
    found = shutil.which(name)
    if found is None:
        missing = f"{name} is missing: '{INSTALL[name]}'"
        if os.environ.get("MOIE_NO_COMPILERS"):
            pytest.skip(f"{missing}; MOIE_NO_COMPILERS is set")
        pytest.fail(f"{missing}; set MOIE_NO_COMPILERS=1 to go without this test")
    return found


@pytest.fixture(autouse=True)
def tools(request: pytest.FixtureRequest) -> None:
    """Tests with a parameter `to` need what runs that target."""
    to = request.node.callspec.params.get("to") if hasattr(request.node, "callspec") else None
    if to in ("c", "javascript"):
        tool({"c": "gcc", "javascript": "node"}[to])
    if to == "onnx":
        pytest.importorskip("onnxruntime", reason="moie[export] is not installed")


def library(folder: Path, name: str) -> ctypes.CDLL:
    """An export to C, compiled together with its self-test."""
    sources = [str(folder / f"{name}.c"), str(folder / f"{name}_test.c")]
    words = [tool("gcc"), *STRICT, "-shared", "-fPIC", *sources]
    words += ["-o", str(folder / "policy.so"), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return ctypes.CDLL(str(folder / "policy.so"))


def _c(policy: Policy, rows: Array, place: Path, precision: str) -> Array:
    folder = moie.export(policy, "c", out=place / precision, precision=precision)
    name = identifier(policy.task)
    act = getattr(library(folder, name), f"{name}_act")
    rest = [None] if isinstance(policy, Mixture) else []  # no monitor
    act.argtypes, act.restype = [ctypes.c_void_p] * (2 + len(rest)), ctypes.c_int
    given = np.ascontiguousarray(rows, np.float32 if precision == "float" else np.float64)
    found = np.empty((len(given), len(policy.action_names)), given.dtype)
    starts = (a.ctypes.data + a.strides[0] * np.arange(len(a)) for a in (given, found))
    for observation, action in zip(*(start.tolist() for start in starts), strict=True):
        act(observation, action, *rest)
    return found.astype(np.float64)


def c_double(policy: Policy, rows: Array, place: Path) -> Array:
    return _c(policy, rows, place, "double")


def c_float(policy: Policy, rows: Array, place: Path) -> Array:
    return _c(policy, rows, place, "float")


def python(policy: Policy, rows: Array, place: Path) -> Array:
    file = moie.export(policy, "python", out=place / "python") / f"{identifier(policy.task)}.py"
    spec = importlib.util.spec_from_file_location("exported", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {name for name in vars(module) if name in sys.modules} == {"math"}
    return np.array([module.act(row) for row in rows.tolist()])


def javascript(policy: Policy, rows: Array, place: Path) -> Array:
    node = tool("node")
    folder = moie.export(policy, "javascript", out=place / "javascript")
    module = folder / f"{identifier(policy.task)}.mjs"
    (folder / "run.mjs").write_text(SCRIPT)
    (folder / "given").write_bytes(rows.astype(np.float64).tobytes())
    words = [node, str(folder / "run.mjs"), str(module), str(rows.shape[1])]
    words += [str(folder / "given"), str(folder / "found")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.frombuffer((folder / "found").read_bytes()).reshape(len(rows), -1)


def onnx(policy: Policy, rows: Array, place: Path) -> Array:
    onnxruntime = pytest.importorskip("onnxruntime", reason="moie[export] is not installed")
    folder = moie.export(policy, "onnx", out=place / "onnx")
    session = onnxruntime.InferenceSession(folder / f"{identifier(policy.task)}.onnx")
    given = rows.reshape(-1, *policy.observation_shape).astype(np.float32)
    (found,) = session.run(["actions"], {"obs": given})
    assert found.shape == (len(rows), *policy.action_shape)
    assert found.dtype == np.float32
    return found.reshape(len(rows), len(policy.action_names)).astype(np.float64)


Target = Callable[[Policy, Array, Path], Array]
DOUBLE: tuple[Target, ...] = (c_double, python, javascript)
SINGLE: tuple[Target, ...] = (c_float, onnx)

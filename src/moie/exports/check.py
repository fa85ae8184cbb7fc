"""`moie export --check`: the test vectors of an export, run again with the language's own tools."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from moie.errors import FileError, InputError
from moie.exports.manifest import Target, read_folder
from moie.extras import need
from moie.files import reason, write_bytes
from moie.terminal import printable

COMPILERS = ("gcc", "cc", "clang")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2")
LONGEST = 120
"""Seconds that a compiler or a program may take."""


def check_folder(folder: Path) -> str:
    """What the test vectors of an export say, in a line; FileError if the export was damaged or
    changed, or if one of them differs; InputError if a tool is missing that would run them.

    It runs the code in the folder."""
    manifest, files = read_folder(folder)
    with tempfile.TemporaryDirectory() as place:
        # What is run is what was checked, and nothing beside it.
        for name, content in files.items():
            write_bytes(Path(place) / name, content)
        agree, said = RUNNERS[manifest["target"]](Path(place), manifest["name"])
    if not agree:
        raise FileError(f"{folder}: {printable(said)}")
    return f"{manifest['target']}, policy {manifest['policy'][:12]}: {said}"


def _run(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LONGEST,
        )
    except OSError as error:
        raise FileError(f"cannot run {words[0]}: {reason(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise FileError(f"{words[0]} was not done after {LONGEST} seconds") from error


def _outcome(done: subprocess.CompletedProcess[str]) -> tuple[bool, str]:
    """Whether a program succeeded, and the last line it said."""
    lines = done.stdout.strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else f"it ended with {done.returncode}"


def _tool(names: tuple[str, ...], what: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise InputError(f"checking {what} needs {' or '.join(names)}, not installed")
    return found


def _c(place: Path, name: str) -> tuple[bool, str]:
    compiler = _tool(COMPILERS, "an export to C")
    sources = sorted(file.name for file in place.glob("*.c"))  # of an older export, fewer
    built = _run([compiler, *FLAGS, *sources, "-o", "main", "-lm"], place)
    if built.returncode:
        mistakes = [line for line in built.stdout.splitlines() if "error" in line]
        return False, f"it does not compile: {(mistakes or [built.stdout.strip()])[0]}"
    return _outcome(_run([str(place / "main")], place))


def _python(place: Path, name: str) -> tuple[bool, str]:
    return _outcome(_run([sys.executable, "-E", "-s", f"{name}_test.py"], place))


def _javascript(place: Path, name: str) -> tuple[bool, str]:
    node = _tool(("node", "nodejs"), "an export to JavaScript")
    return _outcome(_run([node, f"{name}_test.mjs"], place))


def _onnx(place: Path, name: str) -> tuple[bool, str]:
    need("onnx", "onnxruntime", what="checking an export to ONNX needs", extra="export")
    import onnx
    import onnxruntime

    try:
        model = (place / f"{name}.onnx").read_bytes()
        vectors = json.loads((place / f"{name}_vectors.json").read_bytes())
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return _compared(vectors, lambda rows: session.run(["actions"], {"obs": rows})[0])
    except Exception as error:  # they have kinds of their own
        raise FileError(f"{name}.onnx cannot be run: {reason(error)}") from error


def _compared(vectors: dict[str, Any], act: Callable[[np.ndarray], np.ndarray]) -> tuple[bool, str]:
    """Whether a model gives the actions of the test vectors, and a line that says how well."""
    observations = np.asarray(vectors["observations"], np.float32)
    found = act(observations)
    errors = np.abs(found - np.asarray(vectors["actions"])) / np.asarray(vectors["range"])
    differ = ~(errors <= vectors["tolerance"]).reshape(len(errors), -1).all(axis=1)
    if differ.any():
        return False, f"{differ.sum()} of {len(differ)} test vectors differ"
    for bad in (np.nan, np.inf, -np.inf):
        for at in np.ndindex(observations.shape[1:]):
            spoilt = observations[:1].copy()
            spoilt[(0, *at)] = bad
            if not np.isnan(act(spoilt)).all():
                return False, "an observation that is not finite does not give NaN"
    share = f"{errors.max():.1e} of the action range"
    return True, f"{len(errors)} test vectors agree, largest error {share}"


RUNNERS: dict[Target, Callable[[Path, str], tuple[bool, str]]] = {
    "c": _c,
    "onnx": _onnx,
    "python": _python,
    "javascript": _javascript,
}

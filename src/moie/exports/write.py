"""`moie export`: a folder with the policy in another language, its test vectors and a manifest."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from moie.errors import InputError, require
from moie.exports import sources
from moie.exports.description import describe
from moie.exports.guard import Guard, guard_of
from moie.exports.manifest import MANIFEST, TARGETS, Target, check_free, manifest_of
from moie.exports.naming import check_name
from moie.exports.notes import notes_of
from moie.exports.vectors import vectors_of
from moie.extras import need
from moie.files import replace_folder
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.runs.disk.directory import policy_path, target_beside

Precision = Literal["float", "double"]
SINGLE, DOUBLE = 1e-5, 1e-9
"""The largest error of an action, as a share of the action range, by precision."""
GIVES = {"onnx": "float"}
"""Targets whose actions are not in the precision in which they compute."""
WRITERS = {"c": sources.c, "python": sources.python, "javascript": sources.javascript}


def export_policy(
    given: str | os.PathLike[str] | Policy,
    to: Target,
    out: Path | None,
    check: Callable[[], None],
    *,
    precision: Precision | None = None,
    name: str | None = None,
    safe_action: Sequence[float] | None = None,
    feature_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Path:
    """Write a policy, or that of a run directory or policy file, as a folder; its path. `check`
    raises when the user wants to stop."""
    require(to in TARGETS, "to", to, f"one of {', '.join(TARGETS)}")
    if precision is not None:
        known = get_args(Precision)
        require(precision in known, "precision", precision, " or ".join(known))
        if to != "c":
            raise InputError(f"precision is {precision!r}, but only C has a choice: not for {to}")
    if name is not None:
        check_name(name)
    if to == "onnx" and (safe_action is not None or feature_ranges):
        what = "safe_action" if safe_action is not None else "feature_ranges"
        raise InputError(f"{what} is given, but a model has no guard: not for onnx")
    if isinstance(given, Policy):
        if out is None:
            raise InputError("out is missing: the folder to write")
        policy, content, where = given, policy_file.to_bytes(given), out
    else:
        path = policy_path(given)
        content = policy_file.read(path)
        policy = policy_file.from_bytes(content, path)
        where = Path(given)
    out = target_beside(where, f"export-{to}", out)
    check_free(out)
    guard = guard_of(policy, safe_action, feature_ranges)
    digest = hashlib.sha256(content).hexdigest()
    files = files_of(policy, digest, to, guard, precision=precision, name=name)
    check()
    replace_folder(out, files)
    return out


def files_of(
    policy: Policy,
    digest: str,
    to: Target,
    guard: Guard,
    *,
    precision: Precision | None = None,
    name: str | None = None,
) -> dict[str, bytes]:
    """The files of an export by name, the manifest last."""
    description, notes = describe(policy), notes_of(policy, digest, name)
    real = (precision or "float") if to == "c" else "double"
    if real == "float":
        description.check_single()
    tolerance = SINGLE if "float" in (real, GIVES.get(to)) else DOUBLE
    kind = np.float32 if real == "float" else np.float64
    vectors = vectors_of(description, guard, kind, tolerance)
    if to == "onnx":
        from moie.exports.onnx_model import onnx_files

        need("onnx", what="an export to ONNX needs", extra="export")
        files = onnx_files(description, notes, vectors, policy)
    else:
        files = WRITERS[to](description, guard, notes, vectors, real)
    facts = {
        "moie": notes.moie,
        "target": to,
        "precision": real,
        "name": notes.name,
        "task": policy.task,
        "policy": digest,
    }
    facts |= {} if to == "onnx" else guard.facts(policy)
    return files | {MANIFEST: manifest_of(facts, files)}

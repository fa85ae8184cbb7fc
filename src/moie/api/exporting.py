"""Policies in other languages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from moie.stopping import stoppable

if TYPE_CHECKING:
    from moie.policy.base import Policy


def export(
    policy: str | os.PathLike[str] | Policy,
    to: Literal["c", "onnx", "python", "javascript"],
    *,
    out: str | os.PathLike[str] | None = None,
    precision: Literal["float", "double"] | None = None,
    name: str | None = None,
    safe_action: Sequence[float] | None = None,
    feature_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Path:
    """Write a policy in another language, scaling and clipping included, with test vectors, and
    return the path of the folder.

    Args:
        policy: a run directory, a policy file, a name such as "zoo:hopper", or a policy.
        to: the language. "c" is C99; "onnx" needs the package onnx.
        out: the folder to write; default: RUN/export-TO, FILE-export-TO beside a policy file,
            NAME-export-TO in the current folder for a policy of the zoo. An older export is
            replaced, unless something was added to it or changed.
        precision: the numbers of C, "float" or "double"; default: "float".
        name: what files, functions, types and macros are called; default: after the task.
        safe_action: the action, one number for each component, that the export gives for an
            observation with a number that is NaN, infinite or outside the feature's range; default:
            the policy's default action, within the action range. A model of ONNX gives NaN instead.
        feature_ranges: the lowest and the highest number of a feature that the export uses, by the
            feature's name, such as {"height": (0.7, 2.0)}; default: every finite number is used.
    """
    from moie.exports.write import export_policy

    folder = None if out is None else Path(out)
    with stoppable() as check:
        return export_policy(
            policy,
            to,
            folder,
            check,
            precision=precision,
            name=name,
            safe_action=safe_action,
            feature_ranges=feature_ranges,
        )


def check_export(folder: str | os.PathLike[str]) -> str:
    """Run the test vectors of an export again, with a C compiler, node, onnxruntime or Python, and
    return a line that says how well they agree. FileError if a file was damaged or changed, or a
    vector does not agree; InputError if a tool is missing.

    It runs the code in the folder: do this only with exports that you trust.
    """
    from moie.exports.check import check_folder

    with stoppable() as check:
        try:
            return check_folder(Path(folder))
        finally:
            check()  # Ctrl-C also stops the program that runs the vectors

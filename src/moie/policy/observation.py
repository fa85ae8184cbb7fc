"""Observations as a user hands them to a policy: rows of finite numbers, or an error that says
what is wrong."""

import io
import json
import reprlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moie.errors import FileError, InputError
from moie.files import read_file

Array = NDArray[np.float64]
LARGEST_FILE = 2**26  # bytes
LARGEST = 1e60
"""The size that a number of an observation, or of a policy, may have."""


def rows_of(
    observation: ArrayLike, shape: tuple[int, ...], names: tuple[str, ...]
) -> tuple[Array, bool]:
    """An observation of that shape as a row, or a batch of them as rows, and whether it was a
    batch."""
    try:
        given = np.asarray(observation)
    except (ValueError, TypeError):  # rows of different lengths
        given = np.asarray(None)
    if given.dtype.kind not in "fiub":
        shown = " ".join(reprlib.repr(observation).split())
        raise InputError(f"observation is {shown}, expected numbers of shape {shape}")
    one = given.shape == shape
    if not one and given.shape[1:] != shape:
        raise InputError(
            f"observation has shape {given.shape}, expected {shape} "
            f"or a batch {('n', *shape)}".replace("'n'", "n")
        )
    rows = given.astype(np.float64, copy=False).reshape(-1, len(names))
    # One product for all of them, since this is on the way of every action; NaN fails it too.
    if not np.vdot(rows, rows) <= LARGEST**2:
        _check_each(rows, names)
    return rows, not one


def _check_each(rows: Array, names: tuple[str, ...]) -> None:
    bad = np.argwhere(~(np.abs(rows) <= LARGEST))
    if bad.size:
        row, feature = (int(i) for i in bad[0])
        where = f" in row {row}" if len(rows) > 1 else ""
        raise InputError(
            f"observation '{names[feature]}' is {rows[row, feature]}{where}, "
            f"expected a finite number within {LARGEST:g}"
        )


def read_state(path: Path) -> Array:
    """The numbers of a JSON list or of a .npy file."""
    content = read_file(path, LARGEST_FILE)
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(io.BytesIO(content), allow_pickle=False), dtype=np.float64)
        return np.asarray(json.loads(content), dtype=np.float64)
    except Exception as error:  # NumPy's reader of damaged files may raise anything
        reason = " ".join(str(error).split())
        raise FileError(
            f"{path} is not a state: {reason}; expected a JSON list of numbers or a .npy file"
        ) from error

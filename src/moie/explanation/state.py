"""One state from a file."""

import io
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moie.errors import FileError
from moie.files import read_file

LARGEST = 2**26  # most bytes of the file


def read_state(path: Path) -> NDArray[np.float64]:
    """The numbers of a JSON list or of a .npy file."""
    content = read_file(path, LARGEST)
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(io.BytesIO(content), allow_pickle=False), dtype=np.float64)
        return np.asarray(json.loads(content), dtype=np.float64)
    except Exception as error:  # NumPy's reader of damaged files may raise anything
        reason = " ".join(str(error).split())
        raise FileError(
            f"{path} is not a state: {reason}; expected a JSON list of numbers or a .npy file"
        ) from error

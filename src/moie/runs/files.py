"""Files that are whole or not there: written beside, flushed to the disk, renamed."""

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moie.errors import InputError


@contextlib.contextmanager
def full_disk_is_an_input_error(path: Path) -> Iterator[None]:
    """A full disk is for the user to mend: say where, and how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise InputError(
                f"no space left to write {path} ({error.strerror}); what was written before is "
                "intact: free some space, then resume"
            ) from error
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    with full_disk_is_an_input_error(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def write_json(path: Path, content: Any) -> None:
    """Replace a JSON file as a whole."""
    write_bytes(path, (json.dumps(content, indent=2) + "\n").encode())


def write_folder(path: Path, files: dict[str, bytes]) -> None:
    """A new folder with files in it, which appears as a whole."""
    with full_disk_is_an_input_error(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            for name, content in files.items():
                write_bytes(temporary / name, content)
            os.chmod(temporary, 0o755)
            if path.exists():
                shutil.rmtree(path)
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def remove_leftovers(folder: Path) -> None:
    """What a killed process was writing beside the real files."""
    for entry in folder.glob(".*.*"):
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()

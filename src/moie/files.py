"""Files that are whole or not there: written beside, flushed to the disk, renamed. And how files
are read that may be damaged."""

import contextlib
import errno
import json
import math
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from moie.errors import FileError, InputError, shortened
from moie.system import READING

LARGEST = 2**30
"""Largest file that is read, in bytes: far more than any run writes."""
PART = ".moie-part"
"""Ending of the names of files and folders that are not complete yet."""
DAMAGE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError),
    *(OverflowError, RecursionError, MemoryError),
)
"""Errors that reading damaged content may raise."""


def reason(error: BaseException) -> str:
    """The reason why content cannot be read, in one short line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, KeyError):
        return f"{shortened(error.args[0])} is missing" if error.args else "something is missing"
    return " ".join(str(error).split())[:300] or type(error).__name__


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any error about damaged content into a FileError: `what`, and the reason."""
    try:
        yield
    except InputError as error:
        raise FileError(f"{what}: {error}") from error
    except DAMAGE as error:
        raise FileError(f"{what}: {reason(error)}") from error


Check = Callable[[bytes, int], None]


def read_bytes(path: Path, largest: int = LARGEST, check: Check | None = None) -> bytes:
    """The content of a regular file; OSError or ValueError for anything else. A pipe or a device is
    not waited for. `check` gets the first 8 bytes and the size, and may raise before the rest is
    read."""
    with open(os.open(path, READING), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if status.st_size > largest:
            raise ValueError(f"it has {status.st_size} bytes, expected at most {largest}")
        start = file.read(8)
        if check is not None:
            check(start, status.st_size)
        return start + file.read(largest)


def read_file(path: Path, largest: int, check: Check | None = None) -> bytes:
    """The content of a regular file; FileError for anything else."""
    try:
        return read_bytes(path, largest, check)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {path}: {reason(error)}") from error


def parse_json(content: bytes) -> Any:
    """The value of JSON; ValueError also where it is nested too deeply."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def typed(command: str, path: Path) -> str:
    """A command of moie's about a path, as a user may type it."""
    return f"moie {command} {shlex.quote(str(path))}"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk or a forbidden folder into a FileError that says where, and how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise FileError(
                f"no space left to write {path} ({error.strerror}); what was written before is "
                "intact: free some space and go on"
            ) from error
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    with writing(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        try:
            with os.fdopen(handle, "wb") as file:
                _write(file, content)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _write(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def finite(content: Any) -> Any:
    """The same with null in place of NaN and infinite numbers, which JSON does not know."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def as_json(content: Any) -> bytes:
    """JSON with indentation, for people to read."""
    return (json.dumps(content, indent=2) + "\n").encode()


def write_folder(path: Path, files: dict[str, bytes], folders: tuple[str, ...] = ()) -> None:
    """A new folder with files and empty folders in it, which appears as a whole; an empty folder
    may be there before."""
    with writing(path), _filled(path, files, folders) as temporary:
        os.rename(temporary, path)


def replace_folder(path: Path, files: dict[str, bytes]) -> None:
    """The same in place of what is there: the old folder stays until the new one is complete."""
    with writing(path), _filled(path, files) as temporary:
        if not path.exists():
            os.rename(temporary, path)
            return
        old = _part_of(path)
        try:
            os.rename(path, old)
            os.rename(temporary, path)
        except BaseException:
            if not path.exists():
                os.rename(old, path)
            raise
        finally:
            if path.exists():
                shutil.rmtree(old, ignore_errors=True)


def _part_of(path: Path) -> Path:
    """A new folder beside."""
    return Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART))


@contextlib.contextmanager
def _filled(path: Path, files: dict[str, bytes], folders: tuple[str, ...] = ()) -> Iterator[Path]:
    """A folder beside `path` with all of that in it; gone if it was not renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path)
    try:
        for name in folders:
            (temporary / name).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with open(temporary / name, "wb") as file:
                _write(file, content)
        os.chmod(temporary, 0o755)
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_replaceable(path: Path, marks: tuple[str, ...], what: str) -> None:
    """FileError unless the path is free or a folder of the same kind, with the files `marks`."""
    with writing(path):
        is_free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not is_free and not all((path / mark).is_file() for mark in marks):
        raise FileError(f"{path} exists and is not {what}; choose another --out")


def check_writable(path: Path) -> None:
    """FileError unless a file can be written there: known before the work, not after it. Folders
    that are missing are made by `make_place`, when there is something to put into them."""
    with writing(path):
        folder = next((one for one in path.parents if one.exists()), path.parent)
        tempfile.TemporaryFile(dir=folder).close()


def make_place(path: Path) -> None:
    """Make the folders in which a file will be written."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete unfinished files and folders that a killed process left behind."""
    for entry in folder.glob(f".*{PART}"):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()

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
"""Bytes of a file that is read as a whole: far more than any run writes."""
PART = ".moie-part"
"""How the names of files and folders end that are not complete yet; nobody else's do."""
DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What reading content that is not as it was written may raise."""


def reason(error: BaseException) -> str:
    """What is wrong with damaged content, in one short line."""
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
    """Whatever goes wrong with damaged content is a FileError: `what`, and why."""
    try:
        yield
    except InputError as error:
        raise FileError(f"{what}: {error}") from error
    except DAMAGE as error:
        raise FileError(f"{what}: {reason(error)}") from error


Check = Callable[[bytes, int], None]


def _no_check(start: bytes, n_bytes: int) -> None:
    """Anything will do."""


def read_bytes(path: Path, largest: int = LARGEST, check: Check = _no_check) -> bytes:
    """The content of a regular file; OSError or ValueError for anything else. A pipe or a device is
    not waited for. `check` gets the first 8 bytes and the size, and may raise before the rest is
    read."""
    with open(os.open(path, READING), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if found.st_size > largest:
            raise ValueError(f"it has {found.st_size} bytes, expected at most {largest}")
        start = file.read(8)
        check(start, found.st_size)
        return start + file.read(largest)


def read_file(path: Path, largest: int, check: Check = _no_check) -> bytes:
    """The content of a regular file; FileError for anything else."""
    try:
        return read_bytes(path, largest, check)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise FileError(f"cannot read {path}: {error}") from error


def parse_json(content: bytes) -> Any:
    """What JSON has; ValueError also where it is nested too deeply."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def typed(command: str, path: Path) -> str:
    """A command of moie's about a path, as a user may type it."""
    return f"moie {command} {shlex.quote(str(path))}"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full disk or a forbidden folder is for the user to mend: say where, and how to go on."""
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
    """The same with null for every number that JSON does not know: NaN and the infinite."""
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def as_json(content: Any) -> bytes:
    """As a person would like to read it."""
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
            (temporary / name).mkdir()
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
    """Only a folder of the same kind may be replaced: one with these files in it."""
    with writing(path):
        is_free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not is_free and not all((path / mark).is_file() for mark in marks):
        raise FileError(f"{path} exists and is not {what}; choose another --out")


def check_writable(path: Path) -> None:
    """Before the work, not after it."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()


def remove_leftovers(folder: Path) -> None:
    """What a killed process was writing beside the real files; nothing that is the user's."""
    for entry in folder.glob(f".*{PART}"):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()

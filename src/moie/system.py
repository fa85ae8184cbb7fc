"""All differences between operating systems. Loading a policy and acting with it work
everywhere; what starts processes or writes runs needs Linux or macOS."""

import contextlib
import os
import platform
import socket
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from moie.errors import InputError

if TYPE_CHECKING:
    from subprocess import Popen

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags to open a file for reading bytes; a pipe is not waited for, children do not inherit it."""
READING |= getattr(os, "O_BINARY", 0)


def check_posix() -> None:
    """InputError where runs cannot be made."""
    if fcntl is None:
        raise InputError(
            f"training and simulating need Linux or macOS; on {platform.system()} moie only loads "
            "policies, shows them and acts with them"
        )


def lock(file: IO[Any], shared: bool = False) -> None:
    """Lock an open file until it is closed or the process ends, however it ends; BlockingIOError
    if another has locked it."""
    check_posix()
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def start(
    module: str, environment: dict[str, str], **streams: Any
) -> "tuple[Popen, socket.socket]":
    """A Python process of a module of ours that Ctrl-C does not reach, and our end of a socket. The
    descriptor of its own end is its argument. It finds the modules that we find."""
    import subprocess  # only where it is needed: acting with a policy starts no process

    check_posix()
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **streams,
        )
    return process, ours


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The model of the processor; its kind where the model is not known."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    return platform.processor().strip()

"""What one of the test processes makes and all of them read."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> Path:
    """A folder that `make` fills, once for all processes; the others wait for it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder of its own in that of all
        base = base.parent
    folder, done = base / f"shared-{name}", base / f"shared-{name}.done"
    with open(base / f"shared-{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder

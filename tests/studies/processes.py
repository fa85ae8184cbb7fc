"""Studies as processes of their own, and what lies below them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moie.studies.declaration import Planned
from moie.studies.reading import load
from tests import tiny

RAY = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
}


def runs_of(file: Path) -> list[Planned]:
    return load(str(file))[1]


def assert_same(folder: Path, expected: Path, file: Path) -> None:
    for one in runs_of(file):
        assert tiny.policy_bytes(folder / one.name) == tiny.policy_bytes(expected / one.name)
        assert tiny.metrics(folder / one.name) == tiny.metrics(expected / one.name)
    assert tiny.leftovers(folder) == []


def start(file: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        tiny.command("study", str(file), "--out", str(out), "--cpus", "2", *words),
        env=tiny.environment(**RAY),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def rows(out: Path) -> int:
    """Iterations of all runs."""
    return sum(len(file.read_bytes().splitlines()) for file in out.glob("*/*/*/metrics.jsonl"))


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants(pid: int) -> dict[int, str]:
    """Processes below one, and their command lines."""
    found, todo = {}, [pid]
    while todo:
        try:
            folder = Path(f"/proc/{todo.pop()}")
            children = [
                int(c) for c in (folder / f"task/{folder.name}/children").read_text().split()
            ]
            for child in children:
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            todo += children
        except OSError:
            continue
    return found


def kill(process: subprocess.Popen[str], *names: str) -> int:
    """Kill what the study started under these names."""
    found = [pid for pid, line in descendants(process.pid).items() if any(n in line for n in names)]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)

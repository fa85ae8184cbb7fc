"""Studies as processes of their own, and what lies below them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from moie.studies.declaration import Planned
from moie.studies.toml_file import load
from tests import tiny

LOCAL = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
"""For a study with a Ray of its own."""
RAY = LOCAL | {"RAY_AUTH_MODE": "disabled"}
"""For a cluster and whoever joins it."""


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
        env=tiny.environment(**LOCAL),
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


def listening(pids: Iterable[int]) -> list[IPv6Address]:
    """Addresses that these processes accept connections at; IPv4 ones are mapped."""
    links = [link for pid in pids for link in Path(f"/proc/{pid}/fd").glob("*")]
    open_files = {os.readlink(link) for link in links if link.is_symlink()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[i] for i in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in open_files:
                words = [local[i : i + 8] for i in range(0, len(local.partition(":")[0]), 8)]
                raw = b"".join(bytes.fromhex(word)[::-1] for word in words)
                found.append(IPv6Address(raw if len(raw) == 16 else 10 * b"\0" + 2 * b"\xff" + raw))
    return found


def variables(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    content = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in content if "=" in line)


def kill(process: subprocess.Popen[str], *names: str) -> int:
    """Kill what the study started under these names."""
    found = [pid for pid, line in descendants(process.pid).items() if any(n in line for n in names)]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)

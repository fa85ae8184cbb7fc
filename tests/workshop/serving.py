"""A studio in a process of its own, and a page of it without a browser."""

import json
import re
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests import tiny

PATIENCE = 60.0
"""Seconds after which a test gives up."""


class Served:
    """A studio of a policy, in a folder that is the current one."""

    def __init__(self, folder: Path, policy: str, *options: str, **variables: str):
        self.folder = folder
        self.process = subprocess.Popen(
            tiny.command("studio", policy, "--no-browser", *options),
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env=tiny.environment(**variables),
        )
        assert self.process.stdout is not None
        found = re.search(r"http://([\d.]+):(\d+)/(\S+)/", self.process.stdout.readline())
        assert found is not None
        self.address, self.host, self.port, self.token = found[0], found[1], int(found[2]), found[3]
        self.origin = f"http://{self.host}:{self.port}"

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        """End it as Ctrl-C does; it leaves nobody behind."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        assert self.process.wait(timeout=20) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []

    def simulators(self) -> list[psutil.Process]:
        """The processes that simulate for a page."""
        found = []
        for one in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if "moie.workshop.simulator" in one.cmdline():
                    found.append(one)
            except psutil.NoSuchProcess:
                pass
        return found

    def memory(self) -> int:
        """Bytes that the server holds."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def page(self) -> "Page":
        return Page(self)


def connected(address: str, origin: str | None) -> Any:
    """A socket to a server, as a context."""
    return connect(address, origin=origin, max_size=None, proxy=None)  # type: ignore[arg-type]


class Page:
    """A page: what it is told, and what it says. It takes pictures as fast as they come."""

    def __init__(self, served: Served):
        address = f"ws://{served.host}:{served.port}/{served.token}/live"
        self._opening = connected(address, served.origin)

    def __enter__(self) -> "Page":
        self.socket = self._opening.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._opening.__exit__(None, None, None)

    def say(self, kind: str, **content: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **content}))

    def hear(self) -> dict[str, Any]:
        """The next message; a picture is acknowledged, and passed over."""
        content = self.socket.recv(timeout=PATIENCE)
        if isinstance(content, str):
            return json.loads(content)
        (size,) = struct.unpack_from(">I", content)
        header = json.loads(content[4 : 4 + size])
        if header["type"] == "frame":
            self.say("seen", frame=header["frame"])
        return header | {"picture": content[4 + size :]}

    def until(self, kind: str, is_right: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """The first message of a kind that is as it should be."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = self.hear()
            if message["type"] == kind and is_right(message):
                return message
        raise AssertionError(f"no such {kind}")

    def is_closed(self) -> bool:
        """Whether the server hangs up."""
        try:
            while True:
                self.socket.recv(timeout=PATIENCE)
        except ConnectionClosed:
            return True


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)

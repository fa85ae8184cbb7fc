"""The process that talks to Ray, `python -m moie.studies.cluster.driver`.

Ray ends its driver where its own parts die, and prints what it thinks of it. So the driver is a
process of its own: what it prints goes to a file, and when it ends, `supervision` starts another.
"""

import os
import socket
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from moie.errors import InputError, Stopped
from moie.runs.config import from_json
from moie.studies.cluster.ray_cluster import Resources, connected
from moie.studies.cluster.scheduler import Execution
from moie.studies.declaration import Planned
from moie.studies.status import forget_failures
from moie.terminal import say

STOP = "stop"


@dataclass(frozen=True)
class Brief:
    """What a driver has to know."""

    folder: str
    runs: list[tuple[str, dict[str, Any]]]
    """Names and configurations."""
    specs: dict[str, bytes]
    """Of each task, see `rollout.specs`."""
    resources: dict[str, Any]
    is_first: bool
    """No driver before it had a cluster."""


class Line:
    """Our end of the connection to the process that the user sees."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def tell(self, kind: str, content: Any = None) -> None:
        try:
            self._connection.send((kind, content))
        except OSError:
            os._exit(1)  # nobody is there any more: Ray ends with us

    def note(self, text: str) -> None:
        self.tell("note", text)

    def beat(self, slots: int) -> None:
        self.tell("slots", slots)
        try:
            if self._connection.poll() and self._connection.recv() == STOP:
                raise Stopped("stopped")
        except (EOFError, OSError):
            os._exit(1)


def main() -> None:
    """Work on the study that comes through the connection; say how it ended."""
    connection = Connection(socket.socket(fileno=int(sys.argv[1])).detach())
    line = Line(connection)
    brief: Brief = connection.recv()
    folder = Path(brief.folder)
    planned = [Planned(name, from_json(config)) for name, config in brief.runs]
    try:
        with connected(Resources(**brief.resources), brief.specs) as cluster:
            line.tell("connected")
            if brief.is_first:  # what was given up before gets another chance
                forget_failures(folder, planned)
            Execution(folder, planned, cluster, line.note, line.beat).go()
        line.tell("end")
    except Stopped:
        line.tell("stopped")
    except InputError as error:
        say(f"moie: {error}", sys.stderr)
        line.tell("wrong", str(error))


if __name__ == "__main__":
    main()

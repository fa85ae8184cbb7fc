"""The process that talks to Ray, `python -m moie.studies.cluster.driver`.

Ray ends its driver when parts of Ray die, and prints about it. So the driver is a process of its
own: what it prints goes to a file, and when it ends, `supervisor` starts another.
"""

import functools
import os
import socket
import sys
from multiprocessing.connection import Connection
from typing import Any

from moie.errors import InputError, Stopped
from moie.studies.cluster.ray_cluster import connected
from moie.studies.cluster.scheduler import Execution
from moie.studies.status import forget_failures
from moie.terminal import say

STOP = "stop"


class Line:
    """The driver's end of the connection to the process that the user sees."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def tell(self, kind: str, content: Any = None) -> None:
        try:
            self._connection.send((kind, content))
        except OSError:
            os._exit(1)  # nobody is there any more: Ray ends with us

    def beat(self, slots: int) -> None:
        """Report the number of runs that there is room for; `Stopped` if the answer is STOP."""
        self.tell("slots", slots)
        try:
            if self._connection.poll() and self._connection.recv() == STOP:
                raise Stopped("stopped")
        except (EOFError, OSError):
            os._exit(1)


def main() -> None:
    """Work on the study that comes through the connection; report how it ended."""
    connection = Connection(socket.socket(fileno=int(sys.argv[1])).detach())
    line = Line(connection)
    folder, planned, specs, resources, is_first = connection.recv()  # from `Supervision._brief`
    try:
        with connected(resources, specs) as cluster:
            line.tell("connected")
            if is_first:  # runs that were given up before get another chance
                forget_failures(folder, planned)
            note = functools.partial(line.tell, "note")
            Execution(folder, planned, cluster, note, line.beat).go()
        line.tell("end")
    except Stopped:
        line.tell("stopped")
    except InputError as error:
        say(f"moie: {error}", sys.stderr)
        line.tell("wrong", str(error))


if __name__ == "__main__":
    main()

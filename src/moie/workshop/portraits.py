"""Pictures of the prototypes, one after the other: `python -m moie.workshop.portraits FD`.

One process makes them for all pages, in the time that nobody else needs.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from moie.environments import specs
from moie.errors import InputError
from moie.explanation import images, scenes
from moie.policy.mixture import Mixture
from moie.rollout.worker import read_messages
from moie.workshop.live import LiveStage
from moie.workshop.simulation import Simulation, first_message

MOST = 60_000
"""Bytes of a picture."""
LIMIT = 300.0
"""Seconds that a single picture may take: its episode is repeated up to there."""
BY_HAND = "made by hand: it was never visited"
UNKNOWN = "where it was visited is not known"

Portrait = dict[str, Any]


def portrait(stage: scenes.Stage, policy: Mixture, k: int) -> Portrait:
    """The picture of one prototype, as the page takes it; its "problem" says why there is none."""
    found: Portrait = {"type": "portrait", "id": k, "image": None, "problem": None}
    arrive = scenes.arrival(stage, policy, k)
    if arrive is None:
        is_by_hand = {"prototype", "added"} & set(policy.by_hand(k))
        return found | {"problem": BY_HAND if is_by_hand else UNKNOWN}
    try:
        arrive()
        frames = stage.picture()
    except scenes.Lost as lost:
        return found | {"problem": str(lost)}
    if not frames:
        return found | {"problem": stage.problem}
    return found | {"image": images.strip(frames, MOST).sheets[0]}


class Portraits:
    """Makes the pictures, keeps them, and passes each on to whoever wants it."""

    def __init__(self, spec: bytes, policy: Mixture):
        self._lock, self._listeners = threading.Lock(), list[Callable[[Portrait], None]]()
        self._found: dict[int, Portrait] = {}
        self._n = policy.n_experts
        first = first_message(spec, policy)
        name = "moie.workshop.portraits"
        self._simulation = Simulation(name, first, self._hear, self._gone, LIMIT)

    def _hear(self, content: bytes) -> None:
        self._keep(json.loads(content))

    def _keep(self, one: Portrait) -> None:
        with self._lock:
            self._found[one["id"]] = one
            listeners = list(self._listeners)
        for listener in listeners:
            listener(one)

    def _gone(self, reason: str) -> None:
        """It ends when all are made; those that it did not make have none."""
        for k in set(range(self._n)) - set(self._found):
            problem = f"the process that draws {reason}"
            self._keep({"type": "portrait", "id": k, "image": None, "problem": problem})

    def listen(self, listener: Callable[[Portrait], None]) -> None:
        """Have all pictures, those that are there and those that come."""
        with self._lock:
            found = list(self._found.values())
            self._listeners.append(listener)
        for one in found:
            listener(one)

    def leave(self, listener: Callable[[Portrait], None]) -> None:
        """Want no more."""
        with self._lock, contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def close(self) -> None:
        self._simulation.close()


def main() -> None:
    """Entry point; the argument is the file descriptor of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        spec, path, policy = connection.recv()
        sys.path[:] = path
        os.nice(10)
        threading.Thread(
            target=read_messages, args=(connection, SimpleQueue()), daemon=True
        ).start()
        with contextlib.suppress(InputError), LiveStage(specs.unpack(spec)) as stage:
            for k in range(policy.n_experts):
                connection.send_bytes(json.dumps(portrait(stage, policy, k)).encode())
        os._exit(0)


if __name__ == "__main__":
    main()

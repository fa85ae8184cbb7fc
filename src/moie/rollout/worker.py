"""A worker process: `python -m moie.rollout.worker FD`. It knows an environment, and no jax.

It lives as long as the connection to its parent: a parent that was killed leaves no orphans, not
even where the environment hangs.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

HEARTBEAT = 1.0  # seconds between two signs of life during an episode


class _Messages:
    """The worker's end of the connection."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.waiting: list[tuple] = []
        self.cancelled: set = set()
        self.last_sign = time.monotonic()

    def next(self) -> tuple:
        return self.waiting.pop(0) if self.waiting else self.connection.recv()

    def look(self, job: object) -> None:
        """Between steps: take in what has arrived, and say that we are alive."""
        from moie.rollout.episode import Cancelled

        while self.connection.poll():
            message = self.connection.recv()
            if message[0] == "cancel":
                self.cancelled.add(message[1])
            else:
                self.waiting.append(message)
        if job in self.cancelled:
            raise Cancelled
        if time.monotonic() - self.last_sign > HEARTBEAT:
            self.last_sign = time.monotonic()
            self.connection.send(("alive", None))


def serve(connection: Connection) -> None:
    """Run the episodes that are asked for until the parent hangs up."""
    messages = _Messages(connection)
    _, spec, path = messages.next()
    sys.path[:] = path
    from moie.errors import EnvironmentFault
    from moie.rollout import tasks
    from moie.rollout.episode import Cancelled, run_episode

    try:
        env = tasks.make(spec)
    except Exception as error:
        connection.send(("broken", f"{type(error).__name__}: {error}"))
        return
    connection.send(("ready", os.getpid()))
    policy: Any = None
    while True:
        kind, content = messages.next()
        if kind == "policy":
            policy = content
        elif kind == "cancel":
            messages.cancelled.add(content)
        elif kind == "episode":
            try:
                episode = run_episode(env, policy, content, partial(messages.look, content))
                connection.send(("done", episode))
            except Cancelled:
                connection.send(("cancelled", content))
            except EnvironmentFault as error:
                connection.send(("fault", (str(error), error.record)))
                with contextlib.suppress(Exception):
                    env.close()
                env = tasks.make(spec)  # who knows what state it was left in
            messages.cancelled.discard(content)


def _end_with(descriptor: int) -> None:
    """End the process when the other end of the connection is closed, whatever it is doing."""
    poll = select.poll()
    poll.register(descriptor, 0)  # a hang-up is always reported; messages are for `serve`
    poll.poll()
    os._exit(0)


def main() -> None:
    """Entry point; the argument is the file descriptor of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()
    try:
        serve(Connection(descriptor))
    except (EOFError, OSError):  # the parent is gone
        os._exit(0)


if __name__ == "__main__":
    main()

"""A worker process: `python -m moie.rollout.worker FD`. It knows an environment, and no jax.

A thread reads what the parent sends, so that the parent never waits for a worker that is busy. It
ends the process when the parent hangs up: a parent that was killed leaves no orphans, not even
where the environment hangs.

An evaluation never holds up training: between two steps of an evaluation's episode, episodes that
were asked for as urgent are run first, in an environment of their own.
"""

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from moie.environments import specs, tasks
from moie.environments.faults import place, said
from moie.errors import EnvironmentFault, InputError
from moie.rollout.episode import Cancelled, run_episode

HEARTBEAT = 1.0  # seconds between two signs of life during an episode


class Server:
    """Runs the episodes that are asked for."""

    def __init__(self, connection: Connection, inbox: SimpleQueue, spec: EnvSpec, packaged: bool):
        self.connection, self.inbox = connection, inbox
        self.spec, self.packaged = spec, packaged
        self.idle = [self.make()]  # environments that no episode is under way in
        self.second_is_possible = True
        self.policies: dict[int, Any] = {}
        self.urgent: deque = deque()
        self.patient: deque = deque()
        self.cancelled: set = set()
        self.limits: dict[Any, int] = {}
        self.last_sign = time.monotonic()

    def make(self) -> Any:
        """A new environment."""
        return tasks.make(self.spec, packaged=self.packaged)

    def serve(self) -> None:
        """Run episodes, urgent ones first; wait for messages where there is nothing to do."""
        while True:
            while not (self.urgent or self.patient):
                self.take(*self.inbox.get())
            self.take_all()
            self.run(*(self.urgent or self.patient).popleft())

    def take_all(self) -> None:
        """Take in all messages that have arrived."""
        while not self.inbox.empty():
            self.take(*self.inbox.get())

    def take(self, kind: str, *content: Any) -> None:
        """Take in one message."""
        if kind == "policy":
            number, policy, in_use = content
            self.policies = {n: p for n, p in self.policies.items() if n in in_use}
            self.policies[number] = policy
        elif kind == "episode":
            job, number, is_urgent = content
            self.limits[job] = job.max_steps
            (self.urgent if is_urgent else self.patient).append((job, number, is_urgent))
        elif kind == "limit":
            job, n_steps = content
            if job in self.limits:
                self.limits[job] = min(n_steps, self.limits[job])
        elif kind == "cancel":
            (job,) = content
            if job in self.limits:
                self.cancelled.add(job)

    def look(self, job: Any, is_urgent: bool) -> int:
        """Called between two steps of an episode; the number of steps of it that are needed."""
        self.take_all()
        if job in self.cancelled:
            raise Cancelled
        if self.urgent and not is_urgent and self.has_second():
            self.run_urgent()
            self.say("at", job)
        if time.monotonic() - self.last_sign > HEARTBEAT:
            self.say("alive", None)
        return self.limits[job]

    def has_second(self) -> bool:
        """Whether there is an environment beside the one that is in use. Where a second can not be
        made, urgent episodes wait for the end of the present one."""
        if not self.idle and self.second_is_possible:
            self.say("alive", None)
            try:
                self.idle.append(self.make())
            except Exception:  # the user's own code may raise anything
                self.second_is_possible = False
        return bool(self.idle)

    def run_urgent(self) -> None:
        """Run the urgent episodes. The episode that was put aside finds Python's and NumPy's global
        random numbers as it left them."""
        before, before_numpy = random.getstate(), np.random.get_state()
        while self.urgent:
            self.say("at", self.urgent[0][0])
            self.run(*self.urgent.popleft())
            self.take_all()
        random.setstate(before)
        np.random.set_state(before_numpy)

    def say(self, kind: str, content: Any) -> None:
        """Send a message to the parent."""
        self.connection.send((kind, content))
        self.last_sign = time.monotonic()

    def run(self, job: Any, number: int, is_urgent: bool) -> None:
        """Run one episode and send its outcome to the parent."""
        env = self.idle.pop()
        try:
            if job in self.cancelled:
                raise Cancelled
            between = partial(self.look, job, is_urgent)
            self.say("done", run_episode(env, self.policies[number], job, between))
        except Cancelled:
            self.say("cancelled", job)
        except EnvironmentFault as error:
            self.say("fault", (job, str(error), error.record))
            with contextlib.suppress(Exception):
                env.close()
            env = self.make()  # it may have been left in any state
        self.idle.append(env)
        self.cancelled.discard(job)
        del self.limits[job]


def read_messages(connection: Connection, inbox: SimpleQueue) -> None:
    """Take in messages as they come; end the process, whatever it is doing, when they end."""
    try:
        while True:
            inbox.put(connection.recv())
    finally:
        os._exit(0)


def main() -> None:
    """Entry point; the argument is the file descriptor of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    try:
        _, spec, packaged, path = connection.recv()
    except (EOFError, OSError):  # the parent is gone
        return
    sys.path[:] = path
    sys.setswitchinterval(2e-4)  # seconds; the reader need not wait for an episode to end
    inbox: SimpleQueue = SimpleQueue()
    threading.Thread(target=read_messages, args=(connection, inbox), daemon=True).start()
    try:
        try:
            server = Server(connection, inbox, specs.unpack(spec), packaged)
        except Exception as error:  # the user's own code may raise anything
            is_told = isinstance(error, InputError)
            connection.send(("broken", str(error) if is_told else said(error) + place(error)))
            return
        server.say("ready", os.getpid())
        server.serve()
    except OSError:  # the parent is gone
        os._exit(0)


if __name__ == "__main__":
    main()

"""The parent's end of a worker process.

Workers are plain subprocesses, `python -m moie.rollout.worker`, each at one end of a socket: they
start once, do not import jax, and Ctrl-C does not reach them.
"""

import os
import pickle
import socket
import struct
import sys
import time
from multiprocessing.connection import Connection

from moie import system
from moie.policy.base import Policy
from moie.rollout.episode import Job

START_LIMIT = 120.0  # seconds for a worker to import its simulator
GONE = (EOFError, OSError, pickle.UnpicklingError)  # how the end of a connection shows


class Worker:
    """One process and the episodes that it owes."""

    def __init__(self, spec: bytes, packaged: bool, timeout: float):
        """`timeout`: seconds after which a worker that reads nothing is given up."""
        environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.process, ours = system.start("moie.rollout.worker", environment)
        whole, part = divmod(timeout, 1)
        limit = struct.pack("ll", int(whole), int(1e6 * part))
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.connection = Connection(ours.detach())
        self.urgent: dict[Job, int] = {}  # in the order of asking, with their policies' numbers
        self.patient: dict[Job, int] = {}
        self.at: Job | None = None
        self.ready = self.is_broken = False
        self.heard = time.monotonic()
        self._policies: set[int] = set()  # that the worker has
        self._idle_seconds, self._idle_since = 0.0, self.heard
        self.tell("make", spec, packaged, sys.path)

    @property
    def n_jobs(self) -> int:
        """The number of episodes that it owes."""
        return len(self.urgent) + len(self.patient)

    @property
    def running(self) -> Job | None:
        """The episode that it runs: the one it named, or the one it must have gone on to."""
        if self.at is not None and self.owes(self.at):
            return self.at
        return next(iter(self.urgent or self.patient), None)

    @property
    def idle_seconds(self) -> float:
        """Time without an episode, from its start on."""
        now = self._idle_since if self.n_jobs else time.monotonic()
        return self._idle_seconds + now - self._idle_since

    def send(self, job: Job, policy: Policy, number: int, is_urgent: bool) -> None:
        """Ask for an episode. The policy is sent only where the worker does not have it yet."""
        if not self.n_jobs:
            self.at, self.heard = job, time.monotonic()
            self._idle_seconds += self.heard - self._idle_since
        if number not in self._policies:
            self._policies = {*self.urgent.values(), *self.patient.values(), number}
            self.tell("policy", number, policy.without_origins(), self._policies)
        (self.urgent if is_urgent else self.patient)[job] = number
        self.tell("episode", job, number, is_urgent)

    def close_job(self, job: Job) -> None:
        """The worker no longer owes this episode."""
        self.urgent.pop(job, None)
        self.patient.pop(job, None)
        self.at = self.running
        if not self.n_jobs:
            self._idle_since = time.monotonic()

    def owes(self, job: Job) -> bool:
        """Whether it was asked for the episode and has not answered."""
        return job in self.urgent or job in self.patient

    def tell(self, *message: object) -> None:
        """Send a message, as `worker.Server.take` understands it."""
        try:
            self.connection.send(message)
        except GONE:  # dead, or the message is left incomplete
            self.is_broken = True

    def is_silent(self, timeout: float) -> bool:
        """Whether it owes something and gave no sign of life for too long."""
        limit = timeout if self.ready else max(timeout, START_LIMIT)
        return (self.n_jobs > 0 or not self.ready) and time.monotonic() - self.heard > limit

    def kill(self) -> None:
        """End the process; its present episode is lost."""
        self.process.kill()
        self.process.wait()
        self.connection.close()

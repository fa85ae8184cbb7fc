"""The workers of a `Pool`: who owes which episode, what came back, who has to be replaced.

A worker that dies or falls silent is replaced, and its episodes are to be repeated.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Self
from weakref import WeakKeyDictionary

from moie.errors import EnvironmentFault, InputError
from moie.policy.base import Policy
from moie.rollout.episode import Episode, Job, Purpose, fault
from moie.rollout.process import GONE, Worker

TRIES = 3  # a job that costs this many workers is the environment's fault
POLL = 0.25


@dataclass(frozen=True)
class Wanted:
    """An episode that was asked for and not dropped."""

    policy: Policy
    is_urgent: bool


class Crew:
    """The workers of a pool, and the episodes that they owe; `Pool` decides who does what."""

    def __init__(
        self,
        spec: bytes,
        n_workers: int,
        timeout: float = 300.0,
        check: Callable[[], None] = lambda: None,
        *,
        packaged: bool = False,
    ):
        """`spec` comes from `specs.pack`, `packaged` goes to `tasks.make`. A worker that gives no
        sign of life for `timeout` seconds is replaced. `check` is called while waiting and may
        raise."""
        self._make = lambda: Worker(spec, packaged, timeout)
        self._timeout, self._check = timeout, check
        self.workers = [self._make() for _ in range(n_workers)]
        self.wanted: dict[Job, Wanted] = {}
        self.outcomes: dict[Job, Episode | EnvironmentFault] = {}
        self.waiting: deque[Job] = deque()
        """Episodes to begin when there is nothing more urgent."""
        self.repeat: deque[Job] = deque()
        """Episodes that were lost with a worker and are still wanted."""
        self.lengths: dict[Purpose, float] = {}
        """The mean length of recent episodes, in steps."""
        self.replaced = 0
        """Workers that died or hung."""
        self._bell, self._ringer = Pipe(duplex=False)
        self._lost_idle_seconds = 0.0  # of workers that were replaced
        self._deaths: dict[Job, int] = {}
        self._false_starts = 0
        self._numbers: WeakKeyDictionary[Policy, int] = WeakKeyDictionary()
        self._next_number = count()

    @property
    def ready(self) -> list[Worker]:
        """The workers that have made their environment."""
        return [worker for worker in self.workers if worker.ready]

    @property
    def idle_seconds(self) -> float:
        """Time that workers had nothing to do, added up over all of them."""
        return self._lost_idle_seconds + sum(worker.idle_seconds for worker in self.workers)

    def send(self, worker: Worker, job: Job) -> None:
        """Give a wanted episode to a worker."""
        wanted = self.wanted.get(job)
        if wanted is not None:
            number = self._numbers.setdefault(wanted.policy, next(self._next_number))
            worker.send(job, wanted.policy, number, wanted.is_urgent)

    def limit(self, job: Job, n_steps: int) -> None:
        """Ask for no more than `n_steps` of an episode."""
        for worker in self.workers:
            if worker.owes(job):
                worker.tell("limit", job, n_steps)

    def forget(self, job: Job) -> None:
        """Drop an episode that was handed over or is not needed."""
        self.wanted.pop(job, None)
        self.outcomes.pop(job, None)
        self._deaths.pop(job, None)
        for worker in self.workers:
            if worker.owes(job):
                worker.tell("cancel", job)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.kill()
        self.workers = []
        self._bell.close()
        self._ringer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ring(self) -> None:
        """End the wait of `receive`; any thread may call this."""
        self._ringer.send(None)

    def receive(self) -> None:
        """Wait a moment for messages or for the bell, take the messages in, and replace workers
        that died or fell silent."""
        self._check()
        connections = {worker.connection: worker for worker in self.workers}
        for connection in wait([*connections, self._bell], timeout=POLL):
            if connection is self._bell:
                self._bell.recv()
                continue
            worker = connections[connection]  # type: ignore[index]
            try:
                while worker.connection.poll():
                    self._take(worker, *worker.connection.recv())
            except GONE:
                self._replace(worker)
        for worker in list(self.workers):
            if worker.is_broken or worker.is_silent(self._timeout):
                self._replace(worker)

    def _take(self, worker: Worker, kind: str, content: object) -> None:
        worker.heard = time.monotonic()
        if kind == "ready":
            worker.ready, self._false_starts = True, 0
        elif kind == "broken":
            raise InputError(f"a worker could not make the environment: {content}")
        elif kind == "done" and isinstance(content, Episode):
            self._settle(worker, content.job, content)
        elif kind == "fault" and isinstance(content, tuple):
            job, text, record = content
            self._settle(worker, job, EnvironmentFault(text, record))
        elif kind == "at" and isinstance(content, Job):
            worker.at = content
        elif kind == "cancelled" and isinstance(content, Job):
            worker.close_job(content)
            if content in self.wanted:  # asked for again since
                self.repeat.append(content)

    def _settle(self, worker: Worker, job: Job, outcome: Episode | EnvironmentFault) -> None:
        worker.close_job(job)
        if job not in self.wanted:
            return
        self.outcomes[job] = outcome
        if isinstance(outcome, Episode) and not self.wanted[job].is_urgent:
            before = self.lengths.get(job.purpose, outcome.length)
            self.lengths[job.purpose] = 0.8 * before + 0.2 * outcome.length

    def _replace(self, worker: Worker) -> None:
        """A new process in the place of a dead or hanging one; its episodes are repeated."""
        worker.kill()
        self.replaced += 1
        self._lost_idle_seconds += worker.idle_seconds
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                raise InputError(f"{TRIES} workers died or hung while making the environment")
        self.workers[self.workers.index(worker)] = self._make()
        job = worker.running
        if job is not None and job in self.wanted:
            self._deaths[job] = self._deaths.get(job, 0) + 1
            if self._deaths[job] >= TRIES:
                self._settle(worker, job, self._deadly(job))
        lost = [job for job in (*worker.urgent, *worker.patient) if job in self.wanted]
        self.repeat.extendleft(reversed(lost))

    def _deadly(self, job: Job) -> EnvironmentFault:
        """The fault of an episode that no worker survives."""
        reason = f"{TRIES} workers died or gave no sign of life for {self._timeout:g} s"
        return fault(job, self.wanted[job].policy.task, reason, error=reason)

"""Worker processes that run episodes; which worker runs one changes nothing about it.

Workers are plain subprocesses joined by a socket: they do not import the user's main module, they
do not import jax, and Ctrl-C does not reach them. One that dies or falls silent is replaced and
its episodes are repeated.
"""

import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait

from moie.errors import EnvironmentFault, InputError
from moie.rollout.episode import Episode, Job
from moie.rollout.policy import Policy

TRIES = 3  # a job that costs this many workers is the environment's fault
POLL = 0.25
START_LIMIT = 120.0  # seconds for a worker to import its simulator


class Worker:
    """The parent's end of one worker process."""

    def __init__(self, spec: str):
        ours, theirs = socket.socketpair()
        environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moie.rollout.worker", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.jobs: deque[Job] = deque()
        self.policy: Policy | None = None
        self.ready = False
        self.heard = time.monotonic()
        self.connection.send(("make", spec, sys.path))

    def send(self, policy: Policy, job: Job) -> None:
        """Queue an episode on this worker."""
        if not self.jobs:
            self.heard = time.monotonic()
        self.jobs.append(job)
        if self.policy is not policy:
            self.connection.send(("policy", policy))
            self.policy = policy
        self.connection.send(("episode", job))

    def cancel(self, job: Job) -> None:
        """An episode that is not needed any more."""
        self.connection.send(("cancel", job))

    def kill(self) -> None:
        """End the process; what it was doing is lost."""
        self.process.kill()
        self.process.wait()
        self.connection.close()


class Pool:
    """A few workers and the episodes they owe us."""

    def __init__(
        self,
        spec: str,
        n_workers: int,
        timeout: float = 300.0,
        check: Callable[[], None] = lambda: None,
    ):
        """`timeout`: seconds without a sign of life after which a worker is replaced.
        `check` is called while waiting and may raise, to stop."""
        self._spec, self._timeout, self._check = spec, timeout, check
        self._workers = [Worker(spec) for _ in range(n_workers)]
        self._waiting: deque[tuple[Policy, Job]] = deque()
        self._finished: dict[Job, Episode] = {}
        self._cancelled: set[Job] = set()
        self._deaths: dict[Job, int] = {}
        self._policies: dict[Job, Policy] = {}
        self._mean_length = 0.0
        self.replaced = 0

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [worker.process.pid for worker in self._workers]

    def sample(
        self, policy: Policy, job_of: Callable[[int, int], Job], n_steps: int
    ) -> list[Episode]:
        """Episodes 0, 1, ... that make up n steps, in order; surplus is dropped.

        `job_of` gives the episode of a number and a largest number of steps. Queued episodes (see
        `queue`) fill the gaps that remain when the steps under way are expected to suffice.
        """
        order: list[Job] = []
        while True:
            done = self._prefix(order)
            n_done = sum(episode.length for episode in done)
            if n_done >= n_steps:
                break
            for worker in self._workers:
                if worker.jobs:
                    continue
                under_way = len(order) - len(done)
                enough = n_done + under_way * self._mean_length >= n_steps
                if enough and self._waiting:
                    self._send(worker, *self._waiting.popleft())
                else:
                    job = job_of(len(order), n_steps - n_done)
                    order.append(job)
                    self._send(worker, policy, job)
            self._receive()
        for job in order[len(done) :]:
            self._drop(job)
        for job in order[: len(done)]:
            del self._finished[job]
        self._mean_length = n_done / len(done)
        self._hand_out()
        return done

    def queue(self, policy: Policy, jobs: Iterable[Job]) -> None:
        """Episodes to run when there is nothing more urgent; fetch them with `collect`."""
        for job in jobs:
            self._policies[job] = policy
            self._waiting.append((policy, job))

    def collect(self, jobs: list[Job]) -> list[Episode]:
        """Wait for queued episodes, and return them in order."""
        self._hand_out()
        while not all(job in self._finished for job in jobs):
            self._receive()
            self._hand_out()
        return [self._finished.pop(job) for job in jobs]

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prefix(self, order: list[Job]) -> list[Episode]:
        done = []
        for job in order:
            if job not in self._finished:
                break
            done.append(self._finished[job])
        return done

    def _send(self, worker: Worker, policy: Policy, job: Job) -> None:
        self._policies[job] = policy
        try:
            worker.send(policy, job)
        except (BrokenPipeError, ConnectionResetError):
            self._replace(worker)

    def _hand_out(self) -> None:
        """Spread what waits over the workers, shortest queue first, so that all stay busy while
        the parent is learning."""
        while self._waiting:
            worker = min(self._workers, key=lambda w: len(w.jobs))
            if len(worker.jobs) >= 4:
                break
            self._send(worker, *self._waiting.popleft())

    def _drop(self, job: Job) -> None:
        self._policies.pop(job, None)
        if self._finished.pop(job, None) is not None:
            return
        for worker in self._workers:
            if job in worker.jobs:
                self._cancelled.add(job)
                worker.cancel(job)

    def _receive(self) -> None:
        """Wait a moment for messages, take them in, and replace what died or fell silent."""
        self._check()
        connections = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(connections), timeout=POLL):
            worker = connections[connection]  # type: ignore[index]
            try:
                while worker.connection.poll():
                    self._take(worker, *worker.connection.recv())
            except (EOFError, ConnectionResetError, BrokenPipeError, pickle.UnpicklingError):
                self._replace(worker)
        now = time.monotonic()
        for worker in list(self._workers):
            limit = self._timeout if worker.ready else max(self._timeout, START_LIMIT)
            if worker.jobs and now - worker.heard > limit:
                self._replace(worker)

    def _take(self, worker: Worker, kind: str, content: object) -> None:
        worker.heard = time.monotonic()
        if kind == "ready":
            worker.ready = True
        elif kind == "done" and isinstance(content, Episode):
            job = worker.jobs.popleft()
            if job in self._cancelled:
                self._cancelled.discard(job)
            else:
                self._finished[job] = content
                self._policies.pop(job, None)
        elif kind == "cancelled":
            self._cancelled.discard(worker.jobs.popleft())
        elif kind == "fault" and isinstance(content, tuple):
            message, record = content
            job = worker.jobs.popleft()
            if job in self._cancelled:
                self._cancelled.discard(job)
                return
            error = EnvironmentFault(message)
            error.record = record
            raise error
        elif kind == "broken":
            raise InputError(f"a worker could not make the environment: {content}")

    def _replace(self, worker: Worker) -> None:
        """A new process in the place of a dead or hanging one; its episodes are repeated."""
        worker.kill()
        self.replaced += 1
        lost = list(worker.jobs)
        if lost:
            job = lost[0]
            self._deaths[job] = self._deaths.get(job, 0) + 1
            if self._deaths[job] >= TRIES:
                error = EnvironmentFault(
                    f"{TRIES} workers died or fell silent (no sign of life for "
                    f"{self._timeout:g} s) in the episode that starts with reset(seed={job.seed}); "
                    f"iteration {job.iteration}, episode {job.number}"
                )
                error.record = {"seed": job.seed, "iteration": job.iteration, "episode": job.number}
                raise error
        fresh = Worker(self._spec)
        self._workers[self._workers.index(worker)] = fresh
        for job in lost:
            if job in self._cancelled:
                self._cancelled.discard(job)
            else:
                self._send(fresh, self._policies[job], job)

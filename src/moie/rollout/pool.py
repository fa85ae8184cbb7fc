"""Worker processes that run episodes; which worker runs one changes nothing about it.

Workers are plain subprocesses joined by a socket: they do not import the user's main module, they
do not import jax, and Ctrl-C does not reach them. One that dies or falls silent is replaced and
its episodes are repeated. How many there are decides nothing, not even whether a run stops: an
episode that goes wrong only counts when all before it are done and it is still needed.
"""

import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from moie.errors import EnvironmentFault, InputError
from moie.rollout.episode import Episode, Job
from moie.rollout.policy import Policy

TRIES = 3  # a job that costs this many workers is the environment's fault
QUEUE = 4  # episodes that a worker owes us at most
POLL = 0.25
START_LIMIT = 120.0  # seconds for a worker to import its simulator
GONE = (EOFError, OSError, pickle.UnpicklingError)  # how the end of a connection shows


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
        self._tell("make", spec, sys.path)

    def can_take(self, policy: Policy) -> bool:
        """A policy is only sent to a worker that waits for it: one that is sending an episode does
        not read, and with both sending neither would ever end. A job is small enough to lie in the
        socket until it is read."""
        if not self.jobs:
            return self.ready
        return self.policy is policy and len(self.jobs) < QUEUE

    def send(self, policy: Policy, job: Job) -> None:
        """Queue an episode on this worker."""
        if not self.jobs:
            self.heard = time.monotonic()
        self.jobs.append(job)
        if self.policy is not policy:
            self._tell("policy", policy)
            self.policy = policy
        self._tell("episode", job)

    def cancel(self, job: Job) -> None:
        """An episode that is not needed any more."""
        self._tell("cancel", job)

    def _tell(self, *message: object) -> None:
        with suppress(*GONE):  # the pool learns of a death where it reads
            self.connection.send(message)

    def is_silent(self, timeout: float) -> bool:
        """Owes us something, and gave no sign of life for too long."""
        limit = timeout if self.ready else max(timeout, START_LIMIT)
        return (bool(self.jobs) or not self.ready) and time.monotonic() - self.heard > limit

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
        self._wanted: dict[Job, Policy] = {}  # asked for and not dropped
        self._outcomes: dict[Job, Episode | EnvironmentFault] = {}
        self._urgent: deque[Job] = deque()  # lost with a worker, to be repeated
        self._waiting: deque[Job] = deque()
        self._deaths: dict[Job, int] = {}
        self._false_starts = 0
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
            done = self._done(order)
            n_done = sum(episode.length for episode in done)
            if n_done >= n_steps:
                break
            if len(done) < len(order):
                self._look_at(order, len(done), policy, job_of(len(done), n_steps - n_done))
            for worker in self._workers:
                if worker.jobs or not worker.ready:
                    continue
                expected = n_done + (len(order) - len(done)) * self._mean_length
                job = self._next_queued(expected >= n_steps)
                if job is None:
                    job = job_of(len(order), n_steps - n_done)
                    order.append(job)
                    self._wanted[job] = policy
                worker.send(self._wanted[job], job)
            self._receive()
        for job in order:
            self._forget(job)
        self._mean_length = n_done / len(done)
        self._hand_out()
        return done

    def queue(self, policy: Policy, jobs: Iterable[Job]) -> None:
        """Episodes to run when there is nothing more urgent; fetch them with `collect`."""
        for job in jobs:
            self._wanted[job] = policy
            self._waiting.append(job)

    def collect(self, jobs: list[Job]) -> list[Episode]:
        """Wait for queued episodes, and return them in order."""
        found = []
        self._hand_out()
        for job in jobs:
            while job not in self._outcomes:
                self._receive()
                self._hand_out()
            outcome = self._outcomes[job]
            if isinstance(outcome, EnvironmentFault):
                raise outcome
            found.append(outcome)
        for job in jobs:
            self._forget(job)
        return found

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()
        self._workers = []

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _done(self, order: list[Job]) -> list[Episode]:
        """The episodes from the first one on that are done without a gap."""
        done = []
        for job in order:
            outcome = self._outcomes.get(job)
            if not isinstance(outcome, Episode):
                break
            done.append(outcome)
        return done

    def _look_at(self, order: list[Job], number: int, policy: Policy, needed: Job) -> None:
        """If the first episode that is not done went wrong, raise; but not if it was given more
        steps than turned out to be needed: then it is repeated with just these."""
        outcome = self._outcomes.get(order[number])
        if not isinstance(outcome, EnvironmentFault):
            return
        if order[number] == needed:
            raise outcome
        self._forget(order[number])
        order[number] = needed
        self._wanted[needed] = policy
        self._urgent.append(needed)

    def _next_queued(self, has_time: bool) -> Job | None:
        """What is to be repeated, or what waits, if there is time for it."""
        for queue in (self._urgent, self._waiting) if has_time else (self._urgent,):
            while queue:
                job = queue.popleft()
                if job in self._wanted:
                    return job
        return None

    def _hand_out(self) -> None:
        """Spread what waits over the workers, shortest queue first, so that all stay busy while
        the parent is learning."""
        for queue in (self._urgent, self._waiting):
            for _ in range(len(queue)):
                job = queue.popleft()
                policy = self._wanted.get(job)
                if policy is None:
                    continue
                able = [worker for worker in self._workers if worker.can_take(policy)]
                if able:
                    min(able, key=lambda worker: len(worker.jobs)).send(policy, job)
                else:
                    queue.append(job)

    def _forget(self, job: Job) -> None:
        """An episode that was handed over, or is not needed."""
        self._wanted.pop(job, None)
        self._outcomes.pop(job, None)
        self._deaths.pop(job, None)
        for worker in self._workers:
            if job in worker.jobs:
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
            except GONE:
                self._replace(worker)
        for worker in list(self._workers):
            if worker.is_silent(self._timeout):
                self._replace(worker)

    def _take(self, worker: Worker, kind: str, content: object) -> None:
        worker.heard = time.monotonic()
        if kind == "ready":
            worker.ready, self._false_starts = True, 0
        elif kind == "broken":
            raise InputError(f"a worker could not make the environment: {content}")
        elif kind == "done" and isinstance(content, Episode):
            self._settle(worker.jobs.popleft(), content)
        elif kind == "fault" and isinstance(content, tuple):
            fault = EnvironmentFault(content[0])
            fault.record = content[1]
            self._settle(worker.jobs.popleft(), fault)
        elif kind == "cancelled":
            job = worker.jobs.popleft()
            if job in self._wanted:  # asked for again since
                self._urgent.append(job)

    def _settle(self, job: Job, outcome: Episode | EnvironmentFault) -> None:
        if job in self._wanted:
            self._outcomes[job] = outcome

    def _replace(self, worker: Worker) -> None:
        """A new process in the place of a dead or hanging one; its episodes are repeated."""
        worker.kill()
        self.replaced += 1
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                raise InputError(f"{TRIES} workers died or hung while making the environment")
        self._workers[self._workers.index(worker)] = Worker(self._spec)
        lost = [job for job in worker.jobs if job in self._wanted]
        if lost and lost[0] == worker.jobs[0]:  # the one that was being run
            self._deaths[lost[0]] = self._deaths.get(lost[0], 0) + 1
            if self._deaths[lost[0]] >= TRIES:
                job = lost.pop(0)
                self._settle(job, self._deadly(job))
        self._urgent.extendleft(reversed(lost))

    def _deadly(self, job: Job) -> EnvironmentFault:
        """The fault of an episode that no worker survives."""
        task = self._wanted[job].task
        reason = f"{TRIES} workers died or gave no sign of life for {self._timeout:g} s"
        fault = EnvironmentFault(
            f"{task}: {reason} in the episode that starts with reset(seed={job.seed}); "
            f"iteration {job.iteration}, episode {job.number}"
        )
        fault.record = {
            "task": task,
            "seed": job.seed,
            "iteration": job.iteration,
            "episode": job.number,
            "error": reason,
        }
        return fault

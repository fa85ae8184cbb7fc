"""Episodes on several processes, in an order that does not depend on how many there are.

Two kinds of work: the batch that the learner waits for, whose episodes are urgent, and queued
episodes (evaluations), which fill the gaps: when no more episodes of the batch can be begun, and
while the learner computes. A worker puts a queued episode aside when an urgent one arrives.

A worker that dies or falls silent is replaced and its episodes are repeated. How many there are
decides nothing, not even whether a run stops: an episode that goes wrong only counts when all
before it are done and it is still needed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import wait
from weakref import WeakKeyDictionary

from moie.errors import EnvironmentFault, InputError
from moie.rollout.episode import Episode, Job, Purpose
from moie.rollout.policy import Policy
from moie.rollout.process import GONE, Worker, n_cores

TRIES = 3  # a job that costs this many workers is the environment's fault
POLL = 0.25
AHEAD = 2  # episodes of a kind that a worker is given at once, where they are many


@dataclass
class _Batch:
    """Episodes 0, 1, ... until they make up n steps."""

    policy: Policy
    job_of: Callable[[int, int], Job]
    n_steps: int
    order: list[Job] = field(default_factory=list)
    done: list[Episode] = field(default_factory=list)
    """From the first one on, without a gap."""
    n_done: int = 0

    @property
    def remaining(self) -> int:
        return self.n_steps - self.n_done

    def next_job(self) -> Job:
        self.order.append(self.job_of(len(self.order), self.remaining))
        return self.order[-1]


@dataclass(frozen=True)
class _Wanted:
    """An episode that was asked for and not dropped."""

    policy: Policy
    is_urgent: bool


class Pool:
    """A few workers and the episodes they owe us."""

    def __init__(
        self,
        spec: str,
        n_workers: int,
        timeout: float = 300.0,
        check: Callable[[], None] = lambda: None,
        *,
        packaged: bool = False,
    ):
        """`spec` and `packaged` are those of `tasks.make`. `timeout`: seconds without a sign of
        life after which a worker is replaced. `check` is called while waiting and may raise."""
        self._make = lambda: Worker(spec, packaged, timeout)
        self._timeout, self._check = timeout, check
        self._workers = [self._make() for _ in range(n_workers)]
        self._lost_idle_seconds = 0.0  # of workers that were replaced
        self._wanted: dict[Job, _Wanted] = {}
        self._outcomes: dict[Job, Episode | EnvironmentFault] = {}
        self._repeat: deque[Job] = deque()  # lost with a worker
        self._waiting: deque[Job] = deque()
        self._batch: _Batch | None = None
        self._learning = False
        self._deaths: dict[Job, int] = {}
        self._false_starts = 0
        self._lengths: dict[Purpose, float] = {}  # of recent episodes
        self._numbers: WeakKeyDictionary[Policy, int] = WeakKeyDictionary()
        self._next_number = count()
        self._bell, self._ringer = Pipe(duplex=False)
        self.replaced = 0

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers."""
        return [worker.process.pid for worker in self._workers]

    @property
    def idle_seconds(self) -> float:
        """Time that workers had nothing to do, added up over all of them."""
        return self._lost_idle_seconds + sum(worker.idle_seconds for worker in self._workers)

    # --- what is asked for -----------------------------------------------------------------------

    def start(self, policy: Policy, job_of: Callable[[int, int], Job], n_steps: int) -> None:
        """Begin with a batch of n steps: episodes 0, 1, ... that `job_of` gives for a number and a
        largest number of steps. Fetch it with `finish`."""
        self._batch = _Batch(policy, job_of, n_steps)
        self._schedule()

    def finish(self) -> list[Episode]:
        """Wait for the batch; its episodes in order. Surplus is dropped."""
        batch = self._batch
        assert batch is not None, "no batch was started"
        self._advance(batch)
        while batch.remaining > 0:
            self._schedule()
            self._receive()
            self._advance(batch)
        self._batch = None
        for job in batch.order:
            self._forget(job)
        self._lengths[batch.order[0].purpose] = batch.n_done / len(batch.done)
        return batch.done

    def sample(
        self, policy: Policy, job_of: Callable[[int, int], Job], n_steps: int
    ) -> list[Episode]:
        """`start` and `finish`."""
        self.start(policy, job_of, n_steps)
        return self.finish()

    def queue(self, policy: Policy, jobs: Iterable[Job]) -> None:
        """Episodes to run when there is nothing more urgent, the longest first; fetch them with
        `collect`."""
        jobs = sorted(jobs, key=lambda job: -self._lengths.get(job.purpose, job.max_steps))
        self._wanted |= {job: _Wanted(policy, is_urgent=False) for job in jobs}
        self._waiting.extend(jobs)

    def tend(self, work: Future) -> None:
        """Keep the workers busy with queued episodes until some work of the parent's is done. One
        core is left to that work."""
        work.add_done_callback(lambda _: self._ringer.send(None))
        self._learning = True
        try:
            while not work.done():
                self._schedule()
                self._receive()
        finally:
            self._learning = False

    def are_done(self, jobs: Iterable[Job]) -> bool:
        """Whether `collect` would neither wait nor raise."""
        return all(isinstance(self._outcomes.get(job), Episode) for job in jobs)

    def collect(self, jobs: list[Job]) -> list[Episode]:
        """Wait for queued episodes, and return them in order."""
        for job in jobs:
            while job not in self._outcomes:
                self._schedule()
                self._receive()
        outcomes = [self._outcomes[job] for job in jobs]
        for job in jobs:
            self._forget(job)
        found: list[Episode] = []
        for outcome in outcomes:
            if isinstance(outcome, EnvironmentFault):
                raise outcome
            found.append(outcome)
        return found

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()
        self._workers = []
        self._bell.close()
        self._ringer.close()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the batch -------------------------------------------------------------------------------

    def _advance(self, batch: _Batch) -> None:
        """Take in what is done without a gap. If the first episode that is not went wrong, raise;
        but not if it was given more steps than turned out to be needed: then it is repeated with
        just these."""
        before = len(batch.done)
        while batch.remaining > 0 and len(batch.done) < len(batch.order):
            number = len(batch.done)
            job = batch.order[number]
            outcome = self._outcomes.get(job)
            if outcome is None:
                break
            if isinstance(outcome, Episode):
                batch.done.append(outcome)
                batch.n_done += outcome.length
                continue
            needed = batch.job_of(number, batch.remaining)
            if job == needed:
                raise outcome
            self._forget(job)
            batch.order[number] = needed
            self._wanted[needed] = _Wanted(batch.policy, is_urgent=True)
            self._repeat.append(needed)
            break
        if before < len(batch.done) < len(batch.order) and batch.remaining > 0:
            self._shorten(batch, batch.order[len(batch.done)])

    def _shorten(self, batch: _Batch, job: Job) -> None:
        """All before this episode is done, so it is known how many steps are needed of it."""
        if batch.remaining < self._lengths.get(job.purpose, 0.0):
            for worker in self._workers:
                if worker.owes(job):
                    worker.limit(job, batch.remaining)

    def _missing(self, batch: _Batch) -> tuple[float, int]:
        """Steps of the batch that neither done nor running episodes are expected to give, and how
        many of these run."""
        expected = self._lengths.get(batch.job_of(0, 1).purpose, 0.0)
        missing, running = float(batch.remaining), 0
        for job in batch.order[len(batch.done) :]:
            outcome = self._outcomes.get(job)
            missing -= outcome.length if isinstance(outcome, Episode) else expected
            running += outcome is None
        return missing, running

    # --- who does what ---------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Give the workers what is most urgent. What was lost comes first."""
        ready = [worker for worker in self._workers if worker.ready]
        while ready and self._repeat:
            self._send(min(ready, key=lambda worker: worker.n_jobs), self._repeat.popleft())
        if self._batch is not None:
            self._extend(self._batch, ready)
        spare = max(1, n_cores() - 1) if self._learning else len(ready)
        spare -= sum(worker.n_jobs > 0 for worker in ready)
        for worker in ready:
            if self._waiting and worker.n_jobs == 0 and spare > 0:
                self._send(worker, self._waiting.popleft())
                spare -= 1
            # One ahead while there are many, so that no worker waits for the next.
            if len(worker.patient) == 1 and len(self._waiting) > AHEAD * len(ready):
                self._send(worker, self._waiting.popleft())

    def _extend(self, batch: _Batch, ready: list[Worker]) -> None:
        """Begin further episodes of the batch. More than are expected to be needed only where
        nothing else waits; for the few steps that may be missing at the end, when that is sure."""
        expected = self._lengths.get(batch.job_of(0, 1).purpose, 0.0)
        for depth in range(AHEAD):
            for worker in sorted(ready, key=lambda worker: worker.n_jobs):
                if len(worker.urgent) != depth:
                    continue
                missing, running = self._missing(batch)
                if depth == 0:
                    wanted = missing > 0.25 * expected or not running or not self._waiting
                else:
                    wanted = expected > 0 and missing > 2 * len(ready) * expected
                if wanted:
                    job = batch.next_job()
                    self._wanted[job] = _Wanted(batch.policy, is_urgent=True)
                    self._send(worker, job)

    def _send(self, worker: Worker, job: Job) -> None:
        wanted = self._wanted.get(job)
        if wanted is not None:
            number = self._numbers.setdefault(wanted.policy, next(self._next_number))
            worker.send(job, wanted.policy, number, wanted.is_urgent)

    def _forget(self, job: Job) -> None:
        """An episode that was handed over, or is not needed."""
        self._wanted.pop(job, None)
        self._outcomes.pop(job, None)
        self._deaths.pop(job, None)
        for worker in self._workers:
            if worker.owes(job):
                worker.cancel(job)

    # --- what comes back -------------------------------------------------------------------------

    def _receive(self) -> None:
        """Wait a moment for messages, take them in, and replace what died or fell silent."""
        self._check()
        connections = {worker.connection: worker for worker in self._workers}
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
        for worker in list(self._workers):
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
            fault = EnvironmentFault(text)
            fault.record = record
            self._settle(worker, job, fault)
        elif kind == "at" and isinstance(content, Job):
            worker.at = content
        elif kind == "cancelled" and isinstance(content, Job):
            worker.close_job(content)
            if content in self._wanted:  # asked for again since
                self._repeat.append(content)

    def _settle(self, worker: Worker, job: Job, outcome: Episode | EnvironmentFault) -> None:
        worker.close_job(job)
        if job not in self._wanted:
            return
        self._outcomes[job] = outcome
        if isinstance(outcome, Episode) and not self._wanted[job].is_urgent:
            before = self._lengths.get(job.purpose, outcome.length)
            self._lengths[job.purpose] = 0.8 * before + 0.2 * outcome.length

    def _replace(self, worker: Worker) -> None:
        """A new process in the place of a dead or hanging one; its episodes are repeated."""
        worker.kill()
        self.replaced += 1
        self._lost_idle_seconds += worker.idle_seconds
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                raise InputError(f"{TRIES} workers died or hung while making the environment")
        self._workers[self._workers.index(worker)] = self._make()
        job = worker.running
        if job is not None and job in self._wanted:
            self._deaths[job] = self._deaths.get(job, 0) + 1
            if self._deaths[job] >= TRIES:
                self._settle(worker, job, self._deadly(job))
        lost = [job for job in (*worker.urgent, *worker.patient) if job in self._wanted]
        self._repeat.extendleft(reversed(lost))

    def _deadly(self, job: Job) -> EnvironmentFault:
        """The fault of an episode that no worker survives."""
        task = self._wanted[job].policy.task
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

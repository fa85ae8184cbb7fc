"""Episodes on several processes, in an order that does not depend on how many there are.

Two kinds of work: the batch that the learner waits for, whose episodes are urgent, and queued
episodes (evaluations), which fill the gaps: when no more episodes of the batch can be begun, and
while the learner computes. A worker puts a queued episode aside when an urgent one arrives.

A worker that dies or falls silent is replaced and its episodes are repeated. How many there are
decides nothing, not even whether a run stops: an episode that goes wrong only counts when all
before it are done and it is still needed.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from moie.errors import EnvironmentFault
from moie.policy.base import Policy
from moie.rollout.crew import Crew, Wanted
from moie.rollout.episode import Episode, Job, Purpose
from moie.rollout.process import Worker
from moie.system import n_cores

AHEAD = 2  # episodes of a kind that a worker is given at once, where they are many
STEPS = 3  # of the two episodes that tell whether an environment follows its seed


@dataclass
class _Batch:
    """Episodes 0, 1, ... until they make up n steps."""

    policy: Policy
    job_of: Callable[[int, int], Job]
    n_steps: int
    order: list[Job] = field(default_factory=list)
    done: list[Episode] = field(default_factory=list)
    """Finished episodes, from the first one on, without a gap."""
    n_done: int = 0

    @property
    def purpose(self) -> Purpose:
        return self.job_of(0, self.n_steps).purpose

    @property
    def remaining(self) -> int:
        return self.n_steps - self.n_done

    def next_job(self) -> Job:
        self.order.append(self.job_of(len(self.order), self.remaining))
        return self.order[-1]


class Pool(Crew):
    """Runs episodes on a few worker processes."""

    _batch: _Batch | None = None
    _learning = False

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
            self.receive()
            self._advance(batch)
        self._batch = None
        for job in batch.order:
            self.forget(job)
        self.lengths[batch.purpose] = batch.n_done / len(batch.done)
        return batch.done

    def queue(self, policy: Policy, jobs: Iterable[Job]) -> None:
        """Episodes to run when there is nothing more urgent, the longest first; fetch them with
        `collect`."""
        jobs = sorted(jobs, key=lambda job: -self.lengths.get(job.purpose, job.max_steps))
        self.wanted |= {job: Wanted(policy, is_urgent=False) for job in jobs}
        self.waiting.extend(jobs)

    def tend(self, work: Future) -> None:
        """Keep the workers busy with queued episodes until some work of the parent's is done. One
        core is left to that work."""
        work.add_done_callback(lambda _: self.ring())
        self._learning = True
        try:
            while not work.done():
                self._schedule()
                self.receive()
        finally:
            self._learning = False

    def are_done(self, jobs: Iterable[Job]) -> bool:
        """Whether `collect` would neither wait nor raise."""
        return all(isinstance(self.outcomes.get(job), Episode) for job in jobs)

    def collect(self, jobs: list[Job]) -> list[Episode]:
        """Wait for queued episodes, and return them in order."""
        for job in jobs:
            while job not in self.outcomes:
                self._schedule()
                self.receive()
        outcomes = [self.outcomes[job] for job in jobs]
        for job in jobs:
            self.forget(job)
        episodes: list[Episode] = []
        for outcome in outcomes:
            if isinstance(outcome, EnvironmentFault):
                raise outcome
            episodes.append(outcome)
        return episodes

    # --- the batch -------------------------------------------------------------------------------

    def _advance(self, batch: _Batch) -> None:
        """Take in the episodes that are done without a gap. If the next one failed, raise its
        fault; but if it was given more steps than turned out to be needed, repeat it with just
        these."""
        before = len(batch.done)
        while batch.remaining > 0 and len(batch.done) < len(batch.order):
            number = len(batch.done)
            job = batch.order[number]
            outcome = self.outcomes.get(job)
            if outcome is None:
                break
            if isinstance(outcome, Episode):
                batch.done.append(outcome)
                batch.n_done += outcome.length
                continue
            needed = batch.job_of(number, batch.remaining)
            if job == needed:
                raise outcome
            self.forget(job)
            batch.order[number] = needed
            self.wanted[needed] = Wanted(batch.policy, is_urgent=True)
            self.repeat.append(needed)
            break
        if before < len(batch.done) < len(batch.order) and batch.remaining > 0:
            # All episodes before this one are done: how many steps of it are needed is known.
            job = batch.order[len(batch.done)]
            if batch.remaining < self.lengths.get(job.purpose, 0.0):
                self.limit(job, batch.remaining)

    def _missing(self, batch: _Batch) -> tuple[float, int]:
        """Steps of the batch that neither done nor running episodes are expected to give, and how
        many of these run."""
        expected = self.lengths.get(batch.purpose, 0.0)
        missing, running = float(batch.remaining), 0
        for job in batch.order[len(batch.done) :]:
            outcome = self.outcomes.get(job)
            missing -= outcome.length if isinstance(outcome, Episode) else expected
            running += outcome is None
        return missing, running

    # --- who does what ---------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Give the workers what is most urgent. What was lost comes first."""
        ready = self.ready
        while ready and self.repeat:
            self.send(min(ready, key=lambda worker: worker.n_jobs), self.repeat.popleft())
        if self._batch is not None:
            self._extend(self._batch, ready)
        spare = max(1, n_cores() - 1) if self._learning else len(ready)
        spare -= sum(worker.n_jobs > 0 for worker in ready)
        for worker in ready:
            if self.waiting and worker.n_jobs == 0 and spare > 0:
                self.send(worker, self.waiting.popleft())
                spare -= 1
            # One ahead while there are many, so that no worker waits for the next.
            if len(worker.patient) == 1 and len(self.waiting) > AHEAD * len(ready):
                self.send(worker, self.waiting.popleft())

    def _extend(self, batch: _Batch, ready: list[Worker]) -> None:
        """Begin further episodes of the batch. More than are expected to be needed only where
        nothing else waits; for the few steps that may be missing at the end, when that is sure."""
        expected = self.lengths.get(batch.purpose, 0.0)
        for depth in range(AHEAD):
            for worker in sorted(ready, key=lambda worker: worker.n_jobs):
                if len(worker.urgent) != depth:
                    continue
                missing, running = self._missing(batch)
                if depth == 0:
                    wanted = missing > 0.25 * expected or not running or not self.waiting
                else:
                    wanted = expected > 0 and missing > 2 * len(ready) * expected
                if wanted:
                    job = batch.next_job()
                    self.wanted[job] = Wanted(batch.policy, is_urgent=True)
                    self.send(worker, job)


def ignored_seed(pool: Pool, policy: Policy, run_seed: int) -> str | None:
    """A warning about an environment that does not repeat its beginning; None where it does. An
    episode that fails here may never be needed, so that is passed over; but not one that no worker
    survives: to wait for as many again would take long."""
    jobs = [Job(run_seed, Purpose.REPEATING, 0, 0, STEPS + more) for more in (0, 1)]
    pool.queue(policy, jobs)
    try:
        first, second = (episode.observations for episode in pool.collect(jobs))
    except EnvironmentFault as fault:
        if "step" not in fault.record:
            raise
        return None
    both = min(len(first), len(second))
    step, feature = np.unravel_index(np.argmax(first[:both] != second[:both]), first[:both].shape)
    one, other = first[step, feature], second[step, feature]
    if one == other:
        return None
    when = f"after step {step}" if step else "at the start"
    return (
        f"warning: {policy.task} does not repeat: two episodes after reset(seed={jobs[0].seed}) "
        f"with the same actions differ {when}, {policy.feature_names[feature]} is {one:.6g} and "
        f"{other:.6g}. Results will depend on chance and on the number of workers, and prototypes "
        "cannot be replayed. The environment should call super().reset(seed=seed) and take all "
        "that is random from self.np_random"
    )

"""Rows of the metrics that wait for their evaluation.

A policy is evaluated while it samples, while the learner computes, and, where that was not time
enough, in the gaps of later iterations. Its row is complete, and written, when the evaluation is;
rows are written in order. A checkpoint carries what still waits, so that nothing is lost.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from moie.policy.base import Policy
from moie.rollout.episode import Job
from moie.rollout.pool import Pool
from moie.runs.config import RunConfig
from moie.runs.disk.records import summary
from moie.runs.evaluation import evaluation_jobs

Row = dict[str, Any]


@dataclass
class Entry:
    """An iteration's row, once there is one, and the evaluation that it waits for."""

    policy: Policy | None
    jobs: dict[str, list[Job]]
    row: Row | None = None
    found: Row = field(default_factory=dict)
    """What the evaluation gave; it becomes part of the row."""

    @property
    def all_jobs(self) -> list[Job]:
        return [job for some in self.jobs.values() for job in some]


class Backlog:
    """What a run has measured but not yet written."""

    def __init__(self, config: RunConfig, longest: int, pool: Pool):
        """`longest`: steps after which an evaluation's episode ends in any case."""
        self._config, self._longest, self._pool = config, longest, pool
        self._entries: deque[Entry] = deque()

    def begin(self, iteration: int, policy: Policy | None, row: Row | None = None) -> Entry:
        """An iteration, with the policy to evaluate, if any."""
        entry = Entry(policy, {}, row)
        if policy is not None:
            count = self._config.evaluation.evaluation_episodes
            entry.jobs = evaluation_jobs(self._config.seed, iteration, count, self._longest)
            self._pool.queue(policy, entry.all_jobs)
        self._entries.append(entry)
        return entry

    def wait(self, limit: int = 0) -> None:
        """Until at most so many evaluations are under way."""
        evaluated = [entry for entry in self._entries if entry.policy is not None]
        for entry in evaluated[: max(0, len(evaluated) - limit)]:
            self._measure(entry)

    def complete(self) -> list[Row]:
        """The rows that wait for nothing more, in order; they are yours now."""
        rows = []
        while self._entries and self._entries[0].row is not None:
            if not self._pool.are_done(self._entries[0].all_jobs):
                break
            self._measure(self._entries[0])
            entry = self._entries.popleft()
            rows.append({**(entry.row or {}), **entry.found})
        return rows

    def waiting(self) -> tuple[tuple[Row, Policy | None], ...]:
        """Rows that wait for an evaluation, their own or an earlier one, with the policy to
        evaluate."""
        with_rows = (entry for entry in self._entries if entry.row is not None)
        return tuple(({**(e.row or {}), **e.found}, e.policy) for e in with_rows)

    def _measure(self, entry: Entry) -> None:
        """Wait for the evaluation."""
        discount = self._config.learner.critic.discount
        for kind, jobs in entry.jobs.items():
            entry.found |= summary(self._pool.collect(jobs), discount, kind)
        entry.policy, entry.jobs = None, {}

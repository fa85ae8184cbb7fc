"""Rows of the metrics: their numbers, and how they wait for their evaluation.

A policy is evaluated while it samples, while the learner computes, and, where that was not enough
time, in the gaps of later iterations. Its row is written when the evaluation is complete; rows are
written in order. A checkpoint carries those that still wait, so that nothing is lost.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moie.core.entropy import NO_FLOOR
from moie.errors import DivergenceError
from moie.learn.learner import Report
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.policy.truth import attention, largest_action
from moie.rollout.episode import Episode, Job
from moie.rollout.pool import Pool
from moie.runs.config import RunConfig
from moie.runs.deployment import with_visited
from moie.runs.disk.metrics import Row
from moie.runs.evaluation import evaluation_jobs

JUDGED = 500
"""States of a batch on which attention is measured, at most."""


def episode_numbers(episodes: list[Episode], discount: float, suffix: str) -> dict[str, float]:
    """Mean return, length and (for locomotion) distance, each name with the suffix."""
    if not episodes:
        return {}
    values = {
        "return": [e.rewards.sum() for e in episodes],
        "discounted": [e.discounted(discount) for e in episodes],
        "length": [e.length for e in episodes],
        "distance": [e.distance for e in episodes if e.distance is not None],
    }
    return {f"{name}_{suffix}": float(np.mean(some)) for name, some in values.items() if some}


def finished(episodes: list[Episode], n_steps: int) -> list[Episode]:
    """Episodes that came to their own end within the batch. With several workers the last one may
    have gone beyond it; what is recorded must not depend on that."""
    ends = np.cumsum([episode.length for episode in episodes])
    return [e for e, end in zip(episodes, ends, strict=True) if e.finished and end <= n_steps]


def learning_numbers(report: Report, iteration: int) -> dict[str, float | int | None]:
    """A report's scalars as plain numbers; DivergenceError where one is not finite."""
    floor = float(report.entropy_floor)
    numbers: dict[str, float | int | None] = {
        "kl": float(report.kl),
        "entropy": float(report.entropy),
        "entropy_floor": floor if floor > NO_FLOOR else None,
        "critic_loss": float(report.critic_loss),
    }
    numbers |= {name: np.asarray(value).item() for name, value in report.facts.items()}
    if report.share is not None:
        numbers["coverage"] = 1.0 - float(report.facts["default_share"])
        numbers["experts_in_use"] = int(np.sum(np.asarray(report.share) > 0.01))
    if report.distances is not None:
        numbers["prototype_distance"] = float(np.mean(report.distances))
        numbers["prototype_distance_max"] = float(np.max(report.distances))
    for name, value in numbers.items():
        if isinstance(value, float) and not np.isfinite(value):
            raise DivergenceError(
                f"learning diverged in iteration {iteration}: {name} is {value}; the last "
                "checkpoint is intact; smaller rates or rewards may help"
            )
    return numbers


def truth_numbers(policy: Policy, states: NDArray[np.float64]) -> dict[str, float]:
    """How literally a mixture may be taken, on evenly spread states of its batch."""
    if not isinstance(policy, Mixture):
        return {}
    some = states[:: -(-len(states) // JUDGED)]
    return {"attention": attention(policy, some), "largest_action": largest_action(policy)}


@dataclass
class Entry:
    """An iteration's row, once there is one, and the evaluation that it waits for."""

    policy: Policy | None
    jobs: dict[str, list[Job]]
    row: Row | None = None
    evaluation: Row = field(default_factory=dict)
    """Numbers of the evaluation; they become part of the row."""
    is_final: bool = False
    measured: Policy | None = None
    """The final policy with the states that it visited, once it was evaluated."""

    @property
    def all_jobs(self) -> list[Job]:
        return [job for some in self.jobs.values() for job in some]

    @property
    def full_row(self) -> Row:
        return {**(self.row or {}), **self.evaluation}


class Backlog:
    """Iterations of a run whose rows are not written yet."""

    def __init__(self, config: RunConfig, longest: int, pool: Pool):
        """`longest`: steps after which an evaluation's episode ends in any case."""
        self._config, self._longest, self._pool = config, longest, pool
        self._entries: deque[Entry] = deque()

    def begin(
        self,
        iteration: int,
        policy: Policy | None,
        row: Row | None = None,
        is_final: bool = False,
    ) -> Entry:
        """Add an iteration, with the policy to evaluate, if any."""
        entry = Entry(policy, {}, row, is_final=is_final)
        if policy is not None:
            count = self._config.evaluation.evaluation_episodes
            seed, is_raw = self._config.seed, self._config.actions == "raw"
            entry.jobs = evaluation_jobs(seed, iteration, count, self._longest, is_raw)
            self._pool.queue(policy, entry.all_jobs)
        self._entries.append(entry)
        return entry

    def wait(self, limit: int = 0) -> None:
        """Wait until at most so many evaluations are under way."""
        evaluated = [entry for entry in self._entries if entry.policy is not None]
        for entry in evaluated[: max(0, len(evaluated) - limit)]:
            self._measure(entry)

    def complete(self) -> list[Row]:
        """Take out the rows that wait for nothing more, in order."""
        rows = []
        while self._entries and self._entries[0].row is not None:
            if not self._pool.are_done(self._entries[0].all_jobs):
                break
            self._measure(self._entries[0])
            rows.append(self._entries.popleft().full_row)
        return rows

    def waiting(self) -> tuple[tuple[Row, Policy | None], ...]:
        """Rows that wait for their own or an earlier evaluation, with the policy to evaluate."""
        return tuple((e.full_row, e.policy) for e in self._entries if e.row is not None)

    def _measure(self, entry: Entry) -> None:
        """Wait for an entry's evaluation."""
        discount = self._config.learner.critic.discount
        for kind, jobs in entry.jobs.items():
            episodes = self._pool.collect(jobs)
            entry.evaluation |= episode_numbers(episodes, discount, kind)
            if kind == "mean" and entry.is_final and entry.policy is not None:
                entry.measured = with_visited(entry.policy, episodes)
        entry.policy, entry.jobs = None, {}

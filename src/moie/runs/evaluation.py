"""Measure a policy over seeded episodes, with sampled and with mean actions."""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np

from moie.rollout import tasks
from moie.rollout.episode import Episode, Job, Purpose
from moie.rollout.policy import Policy
from moie.rollout.pool import Pool

LONGEST = 10_000  # steps, for environments without a time limit
KINDS = {"sampled": Purpose.EVALUATION_SAMPLED, "mean": Purpose.EVALUATION_MEAN}


@dataclass(frozen=True)
class Evaluation:
    """Returns, lengths and distances of some episodes with one kind of actions."""

    kind: str
    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    distances: tuple[float, ...] | None
    seeds: tuple[int, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for a single episode."""
        if len(self.returns) < 2:
            return float("nan")
        return float(np.std(self.returns, ddof=1) / np.sqrt(len(self.returns)))


def longest_episode(env: gymnasium.Env) -> int:
    """Steps after which an evaluation episode ends in any case."""
    return (env.spec.max_episode_steps if env.spec else None) or LONGEST


def evaluation_jobs(seed: int, iteration: int, count: int, longest: int) -> dict[str, list[Job]]:
    """The episodes of an evaluation, by kind of actions."""
    return {
        kind: [Job(seed, purpose, iteration, number, longest) for number in range(count)]
        for kind, purpose in KINDS.items()
    }


def evaluate(
    policy: Policy,
    episodes: int,
    seed: int,
    workers: int,
    worker_timeout: float = 300.0,
    check: Callable[[], None] = lambda: None,
) -> list[Evaluation]:
    """Run the episodes; the same seed gives the same numbers, whatever the number of workers."""
    env = tasks.make(policy.task)
    jobs = evaluation_jobs(seed, 0, episodes, longest_episode(env))
    env.close()
    with Pool(tasks.spec_json(policy.task), workers, worker_timeout, check) as pool:
        pool.queue(policy, [job for some in jobs.values() for job in some])
        return [_summary(kind, pool.collect(some)) for kind, some in jobs.items()]


def _summary(kind: str, episodes: list[Episode]) -> Evaluation:
    distances = [e.distance for e in episodes if e.distance is not None]
    return Evaluation(
        kind,
        tuple(float(e.rewards.sum()) for e in episodes),
        tuple(e.length for e in episodes),
        tuple(distances) if len(distances) == len(episodes) else None,
        tuple(e.job.seed for e in episodes),
    )

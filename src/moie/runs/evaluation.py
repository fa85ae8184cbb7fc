"""Measure a policy over seeded episodes, with sampled and with mean actions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import gymnasium
import numpy as np

from moie.environments import specs, tasks
from moie.policy.base import Policy
from moie.rollout.episode import Episode, Job, Purpose
from moie.rollout.pool import Pool

LONGEST = 10_000  # steps, for environments without a time limit
KINDS = {"sampled": Purpose.EVALUATION_SAMPLED, "mean": Purpose.EVALUATION_MEAN}


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean; NaN for a single value."""
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def paired_difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The mean of `after` less `before`, taken on the same seeds, and its standard error: what
    differs from seed to seed, but not between the two, is no part of it."""
    differences = np.subtract(after, before)
    return float(differences.mean()), standard_error(differences.tolist())


@dataclass(frozen=True)
class Interval:
    """A mean over episodes, and its 95% interval (Student's); without ends for a single one."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Interval":
        from scipy import stats  # as long to import as numpy: not before it is needed

        mean, error = float(np.mean(values)), standard_error(values)
        half = float(stats.t.ppf(0.975, len(values) - 1)) * error if len(values) > 1 else np.nan
        return cls(mean, mean - half, mean + half)

    def is_least(self, threshold: float) -> bool | None:
        """Whether the mean is at least so much; None where the interval leaves that open."""
        if self.low >= threshold:
            return True
        return False if self.high < threshold else None


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
        """The standard error of the mean return; NaN for a single episode."""
        return standard_error(self.returns)


def longest_episode(env: gymnasium.Env) -> int:
    """Steps after which an evaluation episode ends in any case."""
    return (env.spec.max_episode_steps if env.spec else None) or LONGEST


def evaluation_jobs(
    seed: int, iteration: int, count: int, longest: int, raw: bool = False, first: int = 0
) -> dict[str, list[Job]]:
    """The episodes of an evaluation, by kind of actions, from number `first` on; `raw` as in
    `Job`."""
    numbers = range(first, first + count)
    return {
        kind: [Job(seed, purpose, iteration, number, longest, raw=raw) for number in numbers]
        for kind, purpose in KINDS.items()
    }


class Evaluator:
    """Workers for episodes of one task; their number does not change what a seed gives."""

    def __init__(
        self, task: str, seed: int, workers: int, check: Callable[[], None] = lambda: None
    ):
        self._longest = tasks.spec_of(task).max_episode_steps or LONGEST
        self._seed, self._collected = seed, 0
        self._pool = Pool(specs.pack(task), workers, check=check)

    @property
    def n_done(self) -> int:
        """Episodes that are done, of all that were ever asked for."""
        return self._collected + len(self._pool.outcomes)

    def episodes(
        self,
        policy: Policy,
        count: int,
        series: int = 0,
        kinds: Iterable[str] = tuple(KINDS),
        raw: bool = False,
        first: int = 0,
    ) -> dict[str, list[Episode]]:
        """Run episodes, by kind of actions; another series has other seeds, of which number `first`
        comes first. `raw` as in `Job`."""
        all_jobs = evaluation_jobs(self._seed, series, count, self._longest, raw, first)
        jobs = {kind: all_jobs[kind] for kind in kinds}
        self._pool.queue(policy, [job for some in jobs.values() for job in some])
        found = {}
        for kind, some in jobs.items():
            found[kind] = self._pool.collect(some)
            self._collected += len(some)
        return found

    def __enter__(self) -> "Evaluator":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()


def summary(kind: str, episodes: Sequence[Episode]) -> Evaluation:
    """The numbers of episodes with one kind of actions."""
    distances = [e.distance for e in episodes if e.distance is not None]
    return Evaluation(
        kind,
        tuple(float(e.rewards.sum()) for e in episodes),
        tuple(e.length for e in episodes),
        tuple(distances) if len(distances) == len(episodes) else None,
        tuple(e.job.seed for e in episodes),
    )

"""Honest statistics of few runs: intervals for means, and for scores over several tasks.

Scores are one array of runs (seeds) per task. Aggregates over tasks follow Agarwal et al. 2021,
*Deep reinforcement learning at the edge of the statistical precipice*: every task counts alike, and
the bootstrap resamples runs within each task (stratified), never across tasks.

A bootstrap sample is the share that each run has in it: one array [..., runs] for each task, whose
rows sum to one. A statistic takes scores and shares, so that thousands of samples are one
computation.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
Scores = Sequence[Array]  # one array of runs for each task
Shares = Sequence[Array]  # how much each of these runs counts: [..., runs] for each task
Statistic = Callable[[Scores, Shares], Array]
SAMPLES, LEVEL = 2000, 0.95


class Interval(NamedTuple):
    """An estimate and its confidence interval; ends that are not known are NaN."""

    value: Array
    low: Array
    high: Array

    @classmethod
    def unknown(cls, value: Array) -> "Interval":
        return cls(value, np.full_like(value, np.nan), np.full_like(value, np.nan))


def mean_interval(runs: ArrayLike) -> Interval:
    """Mean over runs (first axis) and Student's interval around it, unknown for a single run."""
    values = np.asarray(runs, dtype=np.float64)
    n, mean = len(values), values.mean(axis=0)
    if n < 2:
        return Interval.unknown(mean)
    half = stats.t.ppf(0.5 + LEVEL / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def difference_interval(ours: ArrayLike, theirs: ArrayLike) -> Interval:
    """How much larger the mean over our runs is than that over theirs, and Welch's interval, which
    lets both vary differently; unknown where either has a single run."""
    samples = [np.asarray(runs, dtype=np.float64) for runs in (ours, theirs)]
    value = samples[0].mean() - samples[1].mean()
    if min(map(len, samples)) < 2:
        return Interval.unknown(value)
    parts = np.asarray([values.var(ddof=1) / len(values) for values in samples])
    variance = parts.sum()
    if variance == 0.0:  # every run of both gave the same
        return Interval(value, value, value)
    freedom = variance**2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, samples, strict=True))
    half = stats.t.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(variance)
    return Interval(value, value - half, value + half)


def share_interval(n_true: int, n: int) -> Interval:
    """Share of the runs of which something is true, and Wilson's interval around it, which holds
    for few runs and for shares of none and all, too; unknown for no runs."""
    if n == 0:
        return Interval.unknown(np.asarray(np.nan))
    z, share = stats.norm.ppf(0.5 + LEVEL / 2), n_true / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    ends = np.clip([middle - half, middle + half], 0.0, 1.0)
    return Interval(np.asarray(share), *ends)


def alike(scores: Scores) -> Shares:
    """Every run of a task counts as much as the others."""
    return [np.full(len(runs), 1.0 / len(runs)) for runs in scores]


def resampled(scores: Scores, rng: np.random.Generator, samples: int = SAMPLES) -> Shares:
    """Runs drawn with replacement, as many as a task has: [samples, runs] for each task."""
    return [rng.multinomial(len(p), p, size=samples) / len(p) for p in alike(scores)]


def interquartile_mean(scores: Scores, shares: Shares) -> Array:
    """Mean of the middle half of all runs of all tasks. Every task counts alike, so each run of a
    task with fewer runs counts more."""
    values = np.concatenate(scores)
    weights = np.concatenate(shares, axis=-1) / len(scores)
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[..., order]
    ends = np.cumsum(weights, axis=-1)
    inside = np.clip(np.minimum(ends, 0.75) - np.maximum(ends - weights, 0.25), 0.0, None)
    return inside @ values / inside.sum(axis=-1)


def mean_score(scores: Scores, shares: Shares) -> Array:
    """Mean over tasks of the mean over runs."""
    return np.mean([share @ runs for runs, share in zip(scores, shares, strict=True)], axis=0)


def performance_profile(scores: Scores, thresholds: ArrayLike, shares: Shares) -> Array:
    """Share of runs above each threshold, mean over tasks: [..., thresholds]."""
    tau = np.asarray(thresholds, dtype=np.float64)
    above = [share @ (runs[:, None] > tau) for runs, share in zip(scores, shares, strict=True)]
    return np.mean(above, axis=0)


def probability_of_improvement(
    ours: Scores, theirs: Scores, our_shares: Shares, their_shares: Shares
) -> Array:
    """Chance that a run of ours beats a run of theirs on a task, mean over tasks; a tie is half a
    win (Mann and Whitney's U, divided by the number of pairs)."""
    wins = []
    for mine, other, a, b in zip(ours, theirs, our_shares, their_shares, strict=True):
        difference = mine[:, None] - other
        won = (difference > 0) + 0.5 * (difference == 0)
        wins.append(np.sum((a @ won) * b, axis=-1))
    return np.mean(wins, axis=0)


def bootstrap_interval(statistic: Statistic, scores: Scores, shares: Shares) -> Interval:
    """A statistic and its percentile interval over samples (`shares`). A task with one run does not
    show how runs differ there: the interval is unknown, not short."""
    value = statistic(scores, alike(scores))
    if min(len(runs) for runs in scores) < 2:
        return Interval.unknown(value)
    ends = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
    return Interval(value, *np.quantile(statistic(scores, shares), ends, axis=0))


def simulated_coverage(
    runs: Sequence[int], rng: np.random.Generator, repeats: int = 400, samples: int = 200
) -> float:
    """How often the bootstrap's interval of the interquartile mean holds a known truth:
    scores are drawn from a normal distribution around zero, `runs` of them for each task."""
    held = 0
    for _ in range(repeats):
        scores = [rng.normal(size=n) for n in runs]
        interval = bootstrap_interval(interquartile_mean, scores, resampled(scores, rng, samples))
        held += bool(interval.low <= 0.0 <= interval.high)
    return held / repeats

"""Honest statistics of few runs: intervals for means, and for scores over several tasks.

Scores come as one array of runs (seeds) a task. Aggregates over tasks follow Agarwal et al. 2021,
*Deep reinforcement learning at the edge of the statistical precipice*: every task counts alike, and
the bootstrap resamples runs within each task (stratified), never across tasks.

A bootstrap sample is how much each run counts in it: one array [..., runs] of shares a task, of
which each row sums to one. A statistic takes scores and shares, so that thousands of samples are
one computation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
Scores = Sequence[Array]
"""One array of runs a task."""
Shares = Sequence[Array]
"""How much each of these runs counts, [..., runs] a task."""
Statistic = Callable[[Scores, Shares], Array]
SAMPLES, LEVEL = 2000, 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval; NaN for ends that are not known."""

    value: Array
    low: Array
    high: Array


def mean_interval(runs: ArrayLike, level: float = LEVEL) -> tuple[Array, Array, Array]:
    """Mean over runs (first axis), and the ends of Student's interval around it; an interval of
    one run is unknown: NaN."""
    values = np.asarray(runs, dtype=np.float64)
    n, mean = len(values), values.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    half = stats.t.ppf(0.5 + level / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def alike(scores: Scores) -> Shares:
    """Every run of a task counts as much as the others."""
    return [np.full(len(runs), 1.0 / len(runs)) for runs in scores]


def resampled(scores: Scores, rng: np.random.Generator, samples: int = SAMPLES) -> Shares:
    """Runs drawn with replacement, as many as a task has: [samples, runs] a task."""
    return [
        rng.multinomial(len(runs), np.full(len(runs), 1.0 / len(runs)), size=samples) / len(runs)
        for runs in scores
    ]


def interquartile_mean(scores: Scores, shares: Shares | None = None) -> Array:
    """Mean of the middle half of all runs of all tasks; runs of a task with fewer runs count more,
    so that every task counts alike."""
    values = np.concatenate(scores)
    weights = np.concatenate(alike(scores) if shares is None else shares, axis=-1) / len(scores)
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[..., order]
    ends = np.cumsum(weights, axis=-1)
    inside = np.clip(np.minimum(ends, 0.75) - np.maximum(ends - weights, 0.25), 0.0, None)
    return inside @ values / inside.sum(axis=-1)


def mean_score(scores: Scores, shares: Shares | None = None) -> Array:
    """Mean over tasks of the mean over runs."""
    weights = alike(scores) if shares is None else shares
    return np.mean([share @ runs for runs, share in zip(scores, weights, strict=True)], axis=0)


def performance_profile(
    scores: Scores, thresholds: ArrayLike, shares: Shares | None = None
) -> Array:
    """Share of runs above each threshold, mean over tasks: [..., thresholds]."""
    tau = np.asarray(thresholds, dtype=np.float64)
    weights = alike(scores) if shares is None else shares
    above = [share @ (runs[:, None] > tau) for runs, share in zip(scores, weights, strict=True)]
    return np.mean(above, axis=0)


def probability_of_improvement(
    ours: Scores,
    theirs: Scores,
    our_shares: Shares | None = None,
    their_shares: Shares | None = None,
) -> Array:
    """Chance that a run of ours beats a run of theirs on a task, mean over tasks; a tie is half a
    win (Mann and Whitney's U, divided by the number of pairs)."""
    our_shares = alike(ours) if our_shares is None else our_shares
    their_shares = alike(theirs) if their_shares is None else their_shares
    wins = []
    for mine, other, a, b in zip(ours, theirs, our_shares, their_shares, strict=True):
        difference = mine[:, None] - other
        won = (difference > 0) + 0.5 * (difference == 0)
        wins.append(np.sum((a @ won) * b, axis=-1))
    return np.mean(wins, axis=0)


def percentile_interval(
    value: Array, drawn: Array, scores: Scores, level: float = LEVEL
) -> Interval:
    """Of a value and the same of bootstrap samples (first axis). A task with one run shows nothing
    of how runs differ there: the interval is unknown, not short."""
    if min(len(runs) for runs in scores) < 2:
        unknown = np.full_like(value, np.nan)
        return Interval(value, unknown, unknown)
    low, high = np.quantile(drawn, (0.5 - level / 2, 0.5 + level / 2), axis=0)
    return Interval(value, low, high)


def stratified_bootstrap(
    statistic: Statistic,
    scores: Scores,
    rng: np.random.Generator,
    samples: int = SAMPLES,
    level: float = LEVEL,
) -> Interval:
    """Percentile interval of a statistic, runs resampled within each task."""
    drawn = statistic(scores, resampled(scores, rng, samples))
    return percentile_interval(statistic(scores, alike(scores)), drawn, scores, level)


def simulated_coverage(
    runs: Sequence[int],
    rng: np.random.Generator,
    statistic: Statistic = interquartile_mean,
    repeats: int = 400,
    samples: int = 200,
) -> float:
    """How often the bootstrap's interval holds the truth where it is known: scores from a normal
    distribution around zero, that many runs a task. Below its level by as much as few runs
    promise too much."""
    held = 0
    for _ in range(repeats):
        scores = [rng.normal(size=n) for n in runs]
        found = stratified_bootstrap(statistic, scores, rng, samples)
        held += bool(found.low <= 0.0 <= found.high)
    return held / repeats

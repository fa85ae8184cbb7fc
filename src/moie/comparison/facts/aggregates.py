"""Scores over all tasks: normalised, so that tasks can be put together at all."""

from typing import Any

import numpy as np

from moie.comparison import statistics
from moie.comparison.facts import schema
from moie.comparison.facts.schema import Aggregate, Coverage, Profile, Scale
from moie.comparison.learners import Learner
from moie.comparison.selection import Selection
from moie.comparison.statistics import Array, Interval, Scores, Shares

SEED = 0
"""Of the bootstrap: the same runs give the same page."""
FEW = 20
"""With fewer runs a task than this, how much the intervals promise is simulated."""
CLEARLY = 0.02
"""Below the level, for a simulation of few hundred repeats."""
MOST_THRESHOLDS = 400
"""Of a performance profile."""


def scale(selection: Selection, task: str) -> Scale | None:
    """What counts as zero and one on a task: the untrained policy, mean over all compared runs, and
    the largest mean final return of a learner. None where no untrained policy was evaluated, or
    nobody has become better than that by more than untrained policies differ."""
    groups = [group for group in selection.groups if group.task == task]
    runs = [run for group in groups for run in group.runs]
    first = np.asarray([run.measured["return_sampled"][0] for run in runs if run.at[0] == 0])
    first = first[np.isfinite(first)]
    means = {g.learner.name: float(g.finals("return_sampled").mean()) for g in groups}
    best = max(means.values())
    if not len(first) or not best - first.mean() > first.std():
        return None
    return {
        "untrained": float(first.mean()),
        "best": best,
        "best_learners": [name for name, mean in means.items() if mean == best],
    }


def _scores(selection: Selection, learner: Learner, scales: dict[str, Scale]) -> Scores:
    found = []
    for task, known in scales.items():
        group = selection.group(task, learner)
        assert group is not None  # only learners with runs on every task come here
        low, high = known["untrained"], known["best"]
        found.append((group.finals("return_sampled") - low) / (high - low))
    return found


def aggregate(selection: Selection, scales: dict[str, Scale | None]) -> Aggregate | None:
    """Scores of all learners that have runs on every task with a scale; None where there is nothing
    to put together."""
    known = {task: one for task, one in scales.items() if one is not None}
    learners = selection.on_all(list(known))
    if not known or not learners:
        return None
    rng = np.random.default_rng(SEED)
    scores = [_scores(selection, learner, known) for learner in learners]
    shares = [statistics.resampled(one, rng) for one in scores]
    tau = _thresholds(scores)
    each = list(zip(scores, shares, strict=True))
    return {
        "tasks": list(known),
        "learners": [learner.name for learner in learners],
        "runs": [[len(of_task) for of_task in one] for one in scores],
        "samples": statistics.SAMPLES,
        "iqm": [_interval(statistics.interquartile_mean, *one) for one in each],
        "mean": [_interval(statistics.mean_score, *one) for one in each],
        "thresholds": tau.tolist(),
        "profiles": [_profile(*one, tau) for one in each],
        "improvement": [[_improvement(mine, other) for other in each] for mine in each],
        "coverage": _coverage(scores),
    }


def _thresholds(scores: list[Scores]) -> Array:
    """Where profiles jump: at the scores themselves, from below all of them. Of very many every
    second, third, ... is left."""
    found = np.unique(np.concatenate([runs for one in scores for runs in one]))
    kept = np.linspace(0, len(found) - 1, min(len(found), MOST_THRESHOLDS)).round().astype(int)
    return np.concatenate([[min(0.0, found[0] - 0.05)], found[kept]])


def _coverage(scores: list[Scores]) -> Coverage | None:
    """How often the worst of the intervals would hold the truth, if runs are few and that is
    clearly less often than it promises."""
    layouts = {tuple(sorted(len(runs) for runs in one)) for one in scores}
    few = [layout for layout in layouts if 2 <= layout[0] < FEW]
    if not few:
        return None
    rng = np.random.default_rng(SEED)
    held, worst = min((statistics.simulated_coverage(one, rng), one) for one in sorted(few))
    if held > statistics.LEVEL - CLEARLY:
        return None
    return {"fewest": worst[0], "tasks": len(worst), "held": held}


def as_facts(found: Interval) -> Any:
    """An interval of numbers or of lists of them."""
    return {
        "value": found.value.tolist(),
        "low": found.low.tolist(),
        "high": found.high.tolist(),
    }


def _interval(statistic: statistics.Statistic, scores: Scores, shares: Shares) -> schema.Interval:
    value = statistic(scores, statistics.alike(scores))
    return as_facts(statistics.percentile_interval(value, statistic(scores, shares), scores))


def _profile(scores: Scores, shares: Shares, tau: Array) -> Profile:
    value = statistics.performance_profile(scores, tau)
    drawn = statistics.performance_profile(scores, tau, shares)
    return as_facts(statistics.percentile_interval(value, drawn, scores))


def _improvement(
    mine: tuple[Scores, Shares], other: tuple[Scores, Shares]
) -> schema.Interval | None:
    """None for a learner and itself."""
    if mine is other:
        return None
    value = statistics.probability_of_improvement(mine[0], other[0])
    drawn = statistics.probability_of_improvement(mine[0], other[0], mine[1], other[1])
    found = statistics.percentile_interval(value, drawn, [*mine[0], *other[0]])
    return as_facts(found)

"""Scores over all tasks: normalised, so that tasks can be put together at all."""

from typing import Any

import numpy as np

from moie.comparison import statistics
from moie.comparison.facts import schema
from moie.comparison.facts.schema import Aggregate, Scale
from moie.comparison.selection import Selection
from moie.comparison.statistics import Array, Scores, Shares, Statistic

Sample = tuple[Scores, Shares]  # scores of a learner, and its bootstrap samples
SEED = 0  # seed of the bootstrap: the same runs give the same page
FEW = 20  # where a task has fewer runs than this, the coverage of the intervals is simulated
CLEARLY = 0.02
"""How far below the level the coverage has to be, in a simulation of a few hundred repeats."""
MOST_THRESHOLDS = 400  # the most thresholds that a performance profile has


def scale(selection: Selection, task: str) -> Scale | None:
    """Zero and one on a task: the untrained policy, mean over all compared runs, and the largest
    mean final return of a learner. None where no untrained policy was evaluated, or where no
    learner became better than that by more than untrained policies differ."""
    groups = selection.on(task)
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


def aggregate(selection: Selection, scales: dict[str, Scale | None]) -> Aggregate | None:
    """Scores of all learners that have runs on every task with a scale; None where there are
    none."""
    known = {task: one for task, one in scales.items() if one is not None}
    finals = {(g.task, g.learner): g.finals("return_sampled") for g in selection.groups}
    learners = [a for a in selection.learners if all((task, a) in finals for task in known)]
    if not known or not learners:
        return None
    rng = np.random.default_rng(SEED)
    scores: list[Scores] = [
        [
            (finals[task, a] - s["untrained"]) / (s["best"] - s["untrained"])
            for task, s in known.items()
        ]
        for a in learners
    ]
    each = [(one, statistics.resampled(one, rng)) for one in scores]
    thresholds = _thresholds(scores)

    def profile(scores: Scores, shares: Shares) -> Array:
        return statistics.performance_profile(scores, thresholds, shares)

    return {
        "tasks": list(known),
        "learners": [learner.name for learner in learners],
        "runs": [[len(of_task) for of_task in one] for one in scores],
        "samples": statistics.SAMPLES,
        "iqm": [_interval(statistics.interquartile_mean, *one) for one in each],
        "mean": [_interval(statistics.mean_score, *one) for one in each],
        "thresholds": thresholds.tolist(),
        "profiles": [_interval(profile, *one) for one in each],
        "improvement": [
            [None if mine is other else _improvement(mine, other) for other in each]
            for mine in each
        ],
        "coverage": _coverage(scores),
    }


def _thresholds(scores: list[Scores]) -> Array:
    """Where profiles jump: at the scores themselves, after a first threshold below all of them.
    Very many scores are thinned out evenly."""
    jumps = np.unique(np.concatenate([runs for one in scores for runs in one]))
    kept = np.linspace(0, len(jumps) - 1, min(len(jumps), MOST_THRESHOLDS)).round().astype(int)
    return np.concatenate([[min(0.0, jumps[0] - 0.05)], jumps[kept]])


def _coverage(scores: list[Scores]) -> dict[str, float] | None:
    """How often the worst of the intervals would hold the truth; None unless runs are few and that
    is clearly less often than it promises."""
    layouts = {tuple(sorted(len(runs) for runs in one)) for one in scores}
    few = [layout for layout in layouts if 2 <= layout[0] < FEW]
    if not few:
        return None
    rng = np.random.default_rng(SEED)
    held, worst = min((statistics.simulated_coverage(one, rng), one) for one in sorted(few))
    if held > statistics.LEVEL - CLEARLY:
        return None
    return {"fewest": worst[0], "tasks": len(worst), "held": held}


def _interval(statistic: Statistic, scores: Scores, shares: Shares) -> Any:
    """Value and ends: numbers, or lists of them where the statistic has several."""
    interval = statistics.bootstrap_interval(statistic, scores, shares)
    return {name: end.tolist() for name, end in interval._asdict().items()}


def _improvement(mine: Sample, other: Sample) -> schema.Interval:
    n = len(mine[0])

    def improvement(scores: Scores, shares: Shares) -> Array:
        return statistics.probability_of_improvement(scores[:n], scores[n:], shares[:n], shares[n:])

    return _interval(improvement, [*mine[0], *other[0]], [*mine[1], *other[1]])

"""Episodes for a data sheet: the states that a policy visits, and its return."""

import re
from typing import Any

import numpy as np

from moie.errors import InputError
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.policy.visited import Visited

EPISODES = 5
"""Episodes that are run where the policy file holds no visited states."""
THRESHOLDS = {"Walker2d": 2000, "HalfCheetah": 3000, "Hopper": 2000}
"""Returns that count as solved, of MuJoCo's tasks in versions 4 and 5: Kohler and Akrour's."""
RESAMPLED = 10_000


def visited(policy: Mixture, seed: int, workers: int) -> Visited:
    """States of a few episodes with mean actions, for a policy whose file holds none."""
    from moie.runs.deployment import with_visited
    from moie.runs.evaluation import Evaluator

    try:
        with Evaluator(policy.task, seed, workers) as evaluator:
            episodes = evaluator.episodes(policy, EPISODES, kinds=("mean",))["mean"]
    except InputError as error:
        raise InputError(
            "the policy file holds no visited states, which a data sheet is about, and none "
            f"could be simulated: {error}"
        ) from error
    found = with_visited(policy, episodes)
    assert isinstance(found, Mixture)
    assert found.visited is not None
    return found.visited


def threshold(task: str) -> int | None:
    """The return that counts as solved; None where the protocol names none."""
    known = re.fullmatch(r"(\w+)-v[45]", task)
    return THRESHOLDS.get(known[1]) if known else None


def measured(policy: Policy, episodes: int, seed: int, workers: int) -> dict[str, Any]:
    """The mean return of fresh episodes with mean actions, and its bootstrap interval of 95%: the
    2.5% and 97.5% quantiles of the means of samples of as many, drawn with replacement."""
    from moie.runs.evaluation import Evaluator, summary

    with Evaluator(policy.task, seed, workers) as evaluator:
        done = evaluator.episodes(policy, episodes, kinds=("mean",))["mean"]
    returns = np.asarray(summary("mean", done).returns)
    rows = np.random.default_rng(0).integers(episodes, size=(RESAMPLED, episodes))
    low, high = np.quantile(returns[rows].mean(axis=1), (0.025, 0.975))
    needed = threshold(policy.task)
    mean = float(returns.mean())
    return {
        "episodes": episodes,
        "seed": seed,
        "mean": mean,
        "low": float(low),
        "high": float(high),
        "threshold": needed,
        "is_met": None if needed is None else mean >= needed,
    }

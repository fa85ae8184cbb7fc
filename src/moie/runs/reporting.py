"""From what an iteration gave to the numbers that are written down."""

import numpy as np
from numpy.typing import NDArray

from moie.core.entropy import NO_FLOOR
from moie.errors import DivergenceError
from moie.learn.learner import Report
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.policy.truth import attention, largest_action
from moie.rollout.episode import Episode

JUDGED = 500
"""States of a batch that attention is measured on, at most."""


def whole(episodes: list[Episode], n_steps: int) -> list[Episode]:
    """Those that came to their own end within the batch. The last one may have been run beyond it,
    with several workers; what is recorded must not depend on that."""
    ends = np.cumsum([episode.length for episode in episodes])
    return [e for e, end in zip(episodes, ends, strict=True) if e.finished and end <= n_steps]


def check_finite(report: Report, iteration: int) -> None:
    """DivergenceError where a number of the report is none: the policy must not be used."""
    for name, value in numbers(report).items():
        if isinstance(value, float) and not np.isfinite(value):
            raise DivergenceError(
                f"learning diverged in iteration {iteration}: {name} is {value}; the last "
                "checkpoint is intact; smaller rates or rewards may help"
            )


def numbers(report: Report) -> dict[str, float | int | None]:
    """A report's scalars as plain numbers, with what follows from them."""
    floor = float(report.entropy_floor)
    found: dict[str, float | int | None] = {
        "kl": float(report.kl),
        "entropy": float(report.entropy),
        "entropy_floor": floor if floor > NO_FLOOR else None,
        "critic_loss": float(report.critic_loss),
    }
    found |= {name: np.asarray(value).item() for name, value in report.facts.items()}
    if report.share is not None:
        found["coverage"] = 1.0 - float(report.facts["default_share"])
        found["experts_in_use"] = int(np.sum(np.asarray(report.share) > 0.01))
    if report.distances is not None:
        found["prototype_distance"] = float(np.mean(report.distances))
        found["prototype_distance_max"] = float(np.max(report.distances))
    return found


def truth_of(policy: Policy, states: NDArray[np.float64]) -> dict[str, float]:
    """How literally a mixture may be taken, on states of its batch spread evenly."""
    if not isinstance(policy, Mixture):
        return {}
    some = states[:: -(-len(states) // JUDGED)]
    return {"attention": attention(policy, some), "largest_action": largest_action(policy)}

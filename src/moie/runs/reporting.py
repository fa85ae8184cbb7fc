"""From what an iteration gave to the numbers that are written down."""

import numpy as np

from moie.core.entropy import NO_FLOOR
from moie.errors import InputError
from moie.learn.learner import Report
from moie.rollout.episode import Episode


def whole(episodes: list[Episode], n_steps: int) -> list[Episode]:
    """Those that came to their own end within the batch. The last one may have been run beyond it,
    with several workers; what is recorded must not depend on that."""
    ends = np.cumsum([episode.length for episode in episodes])
    return [e for e, end in zip(episodes, ends, strict=True) if e.finished and end <= n_steps]


def check_finite(report: Report, iteration: int) -> None:
    """InputError where a number of the report is none: the policy must not be used."""
    for name, value in numbers(report).items():
        if isinstance(value, float) and not np.isfinite(value):
            raise InputError(
                f"learning diverged in iteration {iteration}: {name} is {value}; the last "
                "checkpoint is intact; smaller rates or rewards may help"
            )


def numbers(report: Report) -> dict[str, float | int | None]:
    """A report's scalars as plain numbers, with what follows from them."""
    floor = float(report.entropy_floor)
    share = np.asarray(report.share)
    return {
        "kl": float(report.kl),
        "entropy": float(report.entropy),
        "entropy_floor": floor if floor > NO_FLOOR else None,
        "weight_step": float(report.weight_step),
        "mean_step": float(report.mean_step),
        "covariance_step": float(report.covariance_step),
        "swaps": int(report.swaps),
        "deletions": int(report.deletions),
        "full_update": int(report.full_update),
        "default_share": float(report.default_share),
        "coverage": 1.0 - float(report.default_share),
        "experts_in_use": int(np.sum(share > 0.01)),
        "critic_loss": float(report.critic_loss),
    }

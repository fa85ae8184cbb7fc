"""What a learner brings: a policy and an update. All else is shared, see `learn.learner`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core.policy import GaussianPolicy
from moie.core.trust_region import Scalar
from moie.learn.config import LearnerConfig


class Sampled(eqx.Module):
    """A batch as an update sees it."""

    states: Float[Array, "N d"]
    taken: Float[Array, "N A"]
    advantages: Float[Array, " N"]
    """Standardised."""
    entropy_floor: Scalar
    iteration: Int[Array, ""]
    progress: Scalar
    """Share of the run's iterations that is done."""


class Outcome(eqx.Module):
    """What an update made of a policy."""

    policy: GaussianPolicy
    own: Any
    """What the algorithm keeps between iterations besides the policy."""
    kl: Scalar
    """Of the new policy from the one that sampled, averaged over the batch."""
    facts: dict[str, Array]
    """Scalars for the metrics."""
    rows: Int[Array, " K"] | None = None
    """Row of the batch that each prototype put in came from; `KEPT` where it stayed. None where
    prototypes are not states of a batch."""
    distances: Float[Array, " K"] | None = None
    """From each prototype to the nearest state of the batch; None where there are none."""


@dataclass(frozen=True)
class Algorithm:
    """A learner: pure functions, compiled as part of one learning step."""

    start: Callable[[LearnerConfig, int, int, PRNGKeyArray], tuple[GaussianPolicy, Any]]
    """(config, features, actions, key) to the first policy and what is kept beside it."""
    update: Callable[
        [LearnerConfig, GaussianPolicy, Any, Sampled, tuple[PRNGKeyArray, PRNGKeyArray]], Outcome
    ]
    has_floor: bool
    """Whether it keeps the paper's two-phase entropy floor."""
    budget_floor: Callable[[LearnerConfig, GaussianPolicy, Scalar], Scalar] | None = None
    """(config, policy, progress) to the entropy floor, where it follows from the run's budget."""

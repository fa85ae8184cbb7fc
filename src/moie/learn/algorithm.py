"""The parts that an algorithm defines: a policy and an update. Everything else is shared, see
`learn.learner`; facts about each algorithm that need no jax are in `learn.registry`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core.entropy import NO_FLOOR
from moie.core.policy import GaussianPolicy
from moie.core.trust_region import Scalar
from moie.learn.config import LearnerConfig


class Sampled(eqx.Module):
    """A batch as an update sees it."""

    states: Float[Array, "N d"]
    taken: Float[Array, "N A"]
    advantages: Float[Array, " N"]  # standardised
    entropy_floor: Scalar
    iteration: Int[Array, ""]
    progress: Scalar  # share of the run's iterations that is done


class Outcome(eqx.Module):
    """The result of an update."""

    policy: GaussianPolicy
    own: Any  # state that the algorithm keeps between iterations besides the policy
    kl: Scalar  # KL of the new policy from the one that sampled, averaged over the batch
    facts: dict[str, Array]  # scalars for the metrics
    rows: Int[Array, " K"] | None = None
    """Row of the batch that each prototype put in came from; `KEPT` where it stayed. None where
    prototypes are not states of a batch."""
    distances: Float[Array, " K"] | None = None
    """Distance of each prototype from the nearest state of the batch; None without prototypes."""


class Keys(NamedTuple):
    """The parts of an iteration's key. An update takes those it needs, and never the critic's."""

    critic: PRNGKeyArray
    selection: PRNGKeyArray  # key for the choice of prototypes
    ascent: PRNGKeyArray  # key for the order of minibatches

    @classmethod
    def of(cls, key: PRNGKeyArray) -> "Keys":
        return cls(*jax.random.split(key, 3))


Floor = Callable[..., Scalar]


def no_floor(config: LearnerConfig, policy: GaussianPolicy, *, progress, falling) -> Scalar:
    """No limit on the entropy."""
    return jnp.full_like(falling, NO_FLOOR)


def falling_floor(config: LearnerConfig, policy: GaussianPolicy, *, progress, falling) -> Scalar:
    """The paper's floor: it appears at a share of the first entropy, and falls from there."""
    return falling


@dataclass(frozen=True)
class Method:
    """An algorithm's pure functions, compiled as part of one learning step."""

    start: Callable[..., tuple[GaussianPolicy, Any]]
    """(config, n_features, n_actions, *, key) to the first policy, and what the algorithm keeps
    beside it."""
    update: Callable[..., Outcome]
    """(config, policy, own, sampled, *, key): one iteration, from the advantages on. The key is the
    iteration's, see `Keys`."""
    floor: Floor = no_floor
    """(config, policy, *, progress, falling) to the entropy floor of an iteration: `progress` is
    the share of the run's iterations that is done, `falling` the paper's floor."""

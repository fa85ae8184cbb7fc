"""The learners that the paper compares with: PPO and TRPO on a network, on a linear map, and on
the mixture with prototypes learned by gradient. Everything but policy and update is shared."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core.network import LinearPolicy, NetworkPolicy
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.trust_region import raise_entropy
from moie.learn.algorithm import Floor, Keys, Method, Outcome, Sampled, falling_floor, no_floor
from moie.learn.config import LearnerConfig
from moie.learn.mixture import first_policy
from moie.learn.policy_gradient import (
    Objective,
    Shape,
    as_it_is,
    start_ppo,
    update_ppo,
    update_trpo,
)


@runtime_checkable
class MakePolicy(Protocol):
    """The first policy."""

    def __call__(
        self, config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
    ) -> GaussianPolicy: ...


Prepare = Callable[[GaussianPolicy, Sampled], GaussianPolicy]
PROTOTYPE_NOISE = 0.1
"""Standard deviation, in the learner's features, around the first state."""


def network(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> GaussianPolicy:
    """Tanh units, 64 x 64 in the paper."""
    std, hidden = config.policy.initial_std, config.network.policy_hidden
    return NetworkPolicy(n_features, hidden, n_actions, std, key=key)


def linear(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> GaussianPolicy:
    """Linear in the state."""
    return LinearPolicy(n_features, n_actions, config.policy.initial_std)


def mixture(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> GaussianPolicy:
    """All weights one, all actions zero, prototypes scattered around the origin until the first
    batch says where the first state is."""
    settings = config.policy
    prototypes = PROTOTYPE_NOISE * jax.random.normal(key, (settings.experts, n_features))
    return first_policy(settings, n_actions, prototypes, jnp.ones(settings.experts))


def around_first_state(policy: GaussianPolicy, sampled: Sampled) -> GaussianPolicy:
    """Move the prototypes to the first state before the first update. All actions are zero, so the
    policy does the same as before."""
    assert isinstance(policy, MixturePolicy)
    shift = jnp.where(sampled.iteration == 0, sampled.states[0], jnp.zeros_like(sampled.states[0]))
    return eqx.tree_at(lambda p: p.prototypes, policy, policy.prototypes + shift[None, :])


def nearest_distances(policy: MixturePolicy, states: Float[Array, "N d"]) -> Float[Array, " K"]:
    """Distance of each prototype from the nearest state of the batch."""

    def distance(prototype):
        difference = states - prototype[None, :]
        return jnp.sqrt(jnp.min(jnp.sum(difference * difference, axis=1)))

    return jax.lax.map(distance, policy.prototypes)


def _shape(sampled: Sampled, floor: Floor) -> Shape:
    """The entropy projection, where the algorithm has a floor."""
    if floor is no_floor:
        return as_it_is

    def floored(policy):
        raised = raise_entropy(policy.log_std, sampled.entropy_floor)
        return eqx.tree_at(lambda p: p.log_std, policy, raised)

    return floored


def ppo(make: MakePolicy, prepare: Prepare, floor: Floor) -> Method:
    """PPO on a policy."""

    def start(config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray):
        policy = make(config, n_features, n_actions, key=key)
        return policy, start_ppo(config.ppo, policy)

    def update(config, policy, own: Any, sampled: Sampled, *, key: PRNGKeyArray) -> Outcome:
        policy = prepare(policy, sampled)
        objective = Objective.of(policy, sampled.states, sampled.taken, sampled.advantages)
        shape = _shape(sampled, floor)
        after, own = update_ppo(config.ppo, policy, own, objective, shape, key=Keys.of(key).ascent)
        return _outcome(after, own, objective, {})

    return Method(start, update, floor)


def trpo(make: MakePolicy, prepare: Prepare, floor: Floor) -> Method:
    """TRPO on a policy."""

    def start(config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray):
        return make(config, n_features, n_actions, key=key), ()

    def update(config, policy, own: Any, sampled: Sampled, *, key: PRNGKeyArray) -> Outcome:
        policy = prepare(policy, sampled)
        objective = Objective.of(policy, sampled.states, sampled.taken, sampled.advantages)
        after, step = update_trpo(config.trpo, policy, objective, _shape(sampled, floor))
        return _outcome(after, own, objective, {"step_fraction": step.fraction})

    return Method(start, update, floor)


def _outcome(
    policy: GaussianPolicy, own: Any, objective: Objective, facts: dict[str, Array]
) -> Outcome:
    distances = None
    if isinstance(policy, MixturePolicy):
        distances = nearest_distances(policy, objective.states)
    kl = objective.divergence_of(policy)
    return Outcome(policy, own, kl, facts, distances=distances)


def _untouched(policy: GaussianPolicy, sampled: Sampled) -> GaussianPolicy:
    return policy


PPO = ppo(network, _untouched, no_floor)
TRPO = trpo(network, _untouched, no_floor)
TRPO_LINEAR = trpo(linear, _untouched, no_floor)
PPO_DIFFPROTO = ppo(mixture, around_first_state, no_floor)
TRPO_DIFFPROTO = trpo(mixture, around_first_state, no_floor)
PPO_DIFFPROTO_ENTROPY = ppo(mixture, around_first_state, falling_floor)
TRPO_DIFFPROTO_ENTROPY = trpo(mixture, around_first_state, falling_floor)

"""The learners that the paper compares with: PPO and TRPO on a network, on a linear map, and on
the mixture with prototypes learned by gradient. Everything but policy and update is shared."""

from collections.abc import Callable
from typing import Any

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
from moie.learn.policy_gradient import Objective, as_it_is, start_ppo, update_ppo, update_trpo

Make = Callable[..., GaussianPolicy]
"""From (config, n_features, n_actions, *, key) to the first policy."""
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


def around_first_state(policy: MixturePolicy, sampled: Sampled) -> MixturePolicy:
    """Move the prototypes to the first state before the first update. All actions are zero, so the
    policy does the same as before."""
    shift = jnp.where(sampled.iteration == 0, sampled.states[0], jnp.zeros_like(sampled.states[0]))
    return eqx.tree_at(lambda p: p.prototypes, policy, policy.prototypes + shift[None, :])


def nearest_distances(policy: MixturePolicy, states: Float[Array, "N d"]) -> Float[Array, " K"]:
    """Distance of each prototype from the nearest state of the batch."""

    def distance(prototype):
        difference = states - prototype[None, :]
        return jnp.sqrt(jnp.min(jnp.sum(difference * difference, axis=1)))

    return jax.lax.map(distance, policy.prototypes)


def _method(make: Make, floor: Floor, first_own: Callable, learn: Callable) -> Method:
    """An algorithm on a policy. `learn` gives the policy after an update, what the algorithm keeps,
    and facts; `shape`, which it gets, is the entropy projection where there is a floor."""

    def start(config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray):
        policy = make(config, n_features, n_actions, key=key)
        return policy, first_own(config, policy)

    def update(config, policy, own: Any, sampled: Sampled, *, key: PRNGKeyArray) -> Outcome:
        def floored(policy):
            raised = raise_entropy(policy.log_std, sampled.entropy_floor)
            return eqx.tree_at(lambda p: p.log_std, policy, raised)

        is_mixture = isinstance(policy, MixturePolicy)
        policy = around_first_state(policy, sampled) if is_mixture else policy
        objective = Objective.of(policy, sampled.states, sampled.taken, sampled.advantages)
        shape = as_it_is if floor is no_floor else floored
        after, own, facts = learn(config, policy, own, objective, shape, key=Keys.of(key).ascent)
        distances = nearest_distances(after, sampled.states) if is_mixture else None
        return Outcome(after, own, objective.divergence_of(after), facts, distances=distances)

    return Method(start, update, floor)


def ppo(make: Make, floor: Floor = no_floor) -> Method:
    """PPO on a policy."""

    def learn(config, policy, own, objective, shape, *, key):
        return *update_ppo(config.ppo, policy, own, objective, shape, key=key), {}

    return _method(make, floor, lambda config, policy: start_ppo(config.ppo, policy), learn)


def trpo(make: Make, floor: Floor = no_floor) -> Method:
    """TRPO on a policy."""

    def learn(config, policy, own, objective, shape, *, key):
        after, step = update_trpo(config.trpo, policy, objective, shape)
        return after, own, {"step_fraction": step.fraction}

    return _method(make, floor, lambda config, policy: (), learn)


PPO = ppo(network)
TRPO = trpo(network)
TRPO_LINEAR = trpo(linear)
PPO_DIFFPROTO = ppo(mixture)
TRPO_DIFFPROTO = trpo(mixture)
PPO_DIFFPROTO_ENTROPY = ppo(mixture, falling_floor)
TRPO_DIFFPROTO_ENTROPY = trpo(mixture, falling_floor)

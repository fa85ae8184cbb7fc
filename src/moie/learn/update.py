"""Gradient steps over minibatches, each kind of update one scan.

Weights, actions and log standard deviation have an Adam state each, kept between iterations; the
partial update leaves the weights and their moments alone.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core import gaussian
from moie.core.critic import ValueNetwork
from moie.core.gaussian import mean_shift
from moie.core.policy import MixturePolicy
from moie.core.trust_region import (
    Anchor,
    PolicyProjection,
    Scalar,
    project_actions,
    project_all,
)
from moie.learn.config import CriticConfig, LearnerConfig, UpdateConfig


class PolicyMoments(eqx.Module):
    """Adam's state for each group of the policy's parameters."""

    weights: optax.OptState
    actions: optax.OptState
    log_std: optax.OptState


def start_moments(config: UpdateConfig, policy: MixturePolicy) -> PolicyMoments:
    """Zero moments."""
    parameters = (policy.weights, policy.actions, policy.log_std)
    rates = (config.weight_rate, config.action_rate, config.std_rate)
    return PolicyMoments(
        *(optax.adam(rate).init(value) for rate, value in zip(rates, parameters, strict=True))
    )


def _step(rate: float, gradient: Array, moments: optax.OptState, value: Array):
    change, moments = optax.adam(rate).update(gradient, moments, value)
    return value + change, moments


def minibatches(
    key: PRNGKeyArray, n_states: int, size: int, epochs: int
) -> Int[Array, "steps size"]:
    """Rows of each gradient step: every epoch a new order; a remainder sits out that epoch."""
    size = min(size, n_states)
    keys = jax.random.split(key, epochs)
    orders = jax.vmap(lambda k: jax.random.permutation(k, n_states))(keys)
    return orders[:, : n_states - n_states % size].reshape(-1, size)


def surrogate(
    projection: PolicyProjection,
    taken: Float[Array, "M A"],
    advantages: Float[Array, " M"],
    anchor: Anchor,
) -> Scalar:
    """L (eq. 11): the importance-weighted advantage, of the projected policy."""
    projected = projection.gaussian
    log_prob = jax.vmap(gaussian.log_prob, (0, None, 0))(projected.means, projected.log_std, taken)
    return jnp.mean(jnp.exp(log_prob - anchor.log_prob) * advantages)


def _ascend(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    rows: Int[Array, "steps size"],
    project: Callable[[MixturePolicy, Int[Array, " size"]], tuple[PolicyProjection, Anchor]],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
    learn_weights: bool,
    usable: Callable[[Int[Array, " size"]], Array] | None,
) -> tuple[MixturePolicy, PolicyMoments]:
    """The scan that both updates share: they differ in how a minibatch is projected."""
    rates = config.update

    def loss(parameters, index):
        trial = eqx.tree_at(lambda p: (p.weights, p.actions, p.log_std), policy, parameters)
        projection, anchor = project(trial, index)
        return -surrogate(projection, taken[index], advantages[index], anchor)

    def step(carry, index):
        (weights, actions, log_std), moments = carry
        gradients = jax.grad(loss)((weights, actions, log_std), index)
        new_actions, action_moments = _step(
            rates.action_rate, gradients[1], moments.actions, actions
        )
        new_log_std, std_moments = _step(rates.std_rate, gradients[2], moments.log_std, log_std)
        new_weights, weight_moments = weights, moments.weights
        if learn_weights:
            new_weights, weight_moments = _step(
                rates.weight_rate, gradients[0], moments.weights, weights
            )
        new = (
            (new_weights, new_actions, new_log_std),
            PolicyMoments(weight_moments, action_moments, std_moments),
        )
        if usable is not None:
            use = usable(index)
            new = jax.tree.map(lambda a, b: jnp.where(use, a, b), new, carry)
        return new, None

    start = ((policy.weights, policy.actions, policy.log_std), moments)
    (parameters, moments), _ = jax.lax.scan(step, start, rows)
    policy = eqx.tree_at(lambda p: (p.weights, p.actions, p.log_std), policy, parameters)
    return policy, moments


def update_all(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
    anchor: Anchor,
    entropy_floor: Scalar,
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """updateFullPolicy: weights, actions and covariance, then the full-batch projection."""
    bound = config.trust_region.bound
    activation = jax.vmap(policy.activation)(states)

    def project(trial: MixturePolicy, index: Int[Array, " M"]):
        near = anchor.rows(index)
        return project_all(trial, activation[index], near, bound, entropy_floor), near

    rows = minibatches(key, len(states), config.update.minibatch, config.update.epochs)
    policy, moments = _ascend(
        config, policy, moments, rows, project, taken, advantages, learn_weights=True, usable=None
    )
    return project_all(policy, activation, anchor, bound, entropy_floor), moments


def update_actions(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
    anchor: Anchor,
    entropy_floor: Scalar,
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """updateMeanAndCov: actions and covariance of a policy whose prototypes were changed.

    A minibatch on which that policy is outside the bound already is skipped.
    """
    bound = config.trust_region.bound
    membership = jax.vmap(policy.membership)(states)
    before = policy.actions
    intermediate = membership @ before

    def project(trial: MixturePolicy, index: Int[Array, " M"]):
        near = anchor.rows(index)
        return project_actions(trial, before, membership[index], near, bound, entropy_floor), near

    def usable(index: Int[Array, " M"]):
        return mean_shift(intermediate[index], anchor.means[index], anchor.log_std) < bound

    rows = minibatches(key, len(states), config.update.minibatch, config.update.epochs)
    policy, moments = _ascend(
        config,
        policy,
        moments,
        rows,
        project,
        taken,
        advantages,
        learn_weights=False,
        usable=usable,
    )
    return project_actions(policy, before, membership, anchor, bound, entropy_floor), moments


def fit_critic(
    config: CriticConfig,
    twins: ValueNetwork,
    moments: optax.OptState,
    states: Float[Array, "N d"],
    targets: Float[Array, " N"],
    *,
    key: PRNGKeyArray,
) -> tuple[ValueNetwork, optax.OptState, Scalar]:
    """updateValueFunction: both networks on the same targets, each in its own order.

    Returns the networks, Adam's state, and the mean squared error of the last epoch.
    """
    adam = optax.adam(config.critic_rate)

    def fit(network, moments, key):
        rows = minibatches(key, len(states), config.critic_minibatch, config.critic_epochs)

        def loss(network, index):
            error = jax.vmap(network)(states[index]) - targets[index]
            return jnp.mean(error * error)

        def step(carry, index):
            network, moments = carry
            error, gradient = jax.value_and_grad(loss)(network, index)
            change, moments = adam.update(gradient, moments)
            return (optax.apply_updates(network, change), moments), error

        (network, moments), errors = jax.lax.scan(step, (network, moments), rows)
        return network, moments, jnp.mean(errors[-(len(errors) // config.critic_epochs) :])

    twins, moments, errors = jax.vmap(fit)(twins, moments, jax.random.split(key))
    return twins, moments, jnp.mean(errors)

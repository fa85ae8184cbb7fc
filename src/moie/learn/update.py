"""Gradient steps over minibatches, each kind of update one scan.

Weights, actions and log standard deviation have an Adam state each, kept between iterations; the
partial update leaves the weights and their moments alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from moie.core import gaussian
from moie.core.gaussian import mean_shift
from moie.core.network import Perceptron
from moie.core.policy import MixturePolicy
from moie.core.trust_region import (
    Anchor,
    PolicyProjection,
    Scalar,
    project_actions,
    project_all,
    project_weights,
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


def likelihood_ratio(log_ratio: Float[Array, " N"]) -> Float[Array, " N"]:
    """Likelihood ratio of each action; cut at e^20, beyond which no gradient is finite."""
    return jnp.exp(jnp.minimum(log_ratio, 20.0))


def clipped_gain(
    log_ratio: Float[Array, " N"], advantages: Float[Array, " N"], clip: float
) -> Scalar:
    """PPO's objective: what lies beyond the clipped weight gains nothing."""
    ratio = likelihood_ratio(log_ratio)
    bounded = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    return jnp.mean(jnp.minimum(ratio * advantages, bounded * advantages))


class Problem(eqx.Module):
    """The objective and the constraints of a policy update (eqs. 11 to 13)."""

    states: Float[Array, "N d"]
    taken: Float[Array, "N A"]
    advantages: Float[Array, " N"]
    anchor: Anchor
    entropy_floor: Scalar

    def rows(self, index: Int[Array, " M"]) -> "Problem":
        """The same on some states of the batch."""
        per_state = lambda p: (p.states, p.taken, p.advantages)  # noqa: E731
        picked = (*(x[index] for x in per_state(self)), self.anchor.rows(index))
        return eqx.tree_at(lambda p: (*per_state(p), p.anchor), self, picked)

    def surrogate(self, projection: PolicyProjection) -> Scalar:
        """L (eq. 11): the importance-weighted advantage, of the projected policy."""
        new = projection.gaussian
        log_prob = jax.vmap(gaussian.log_prob, (0, None, 0))(new.means, new.log_std, self.taken)
        return jnp.mean(jnp.exp(log_prob - self.anchor.log_prob) * self.advantages)

    def clipped_surrogate(
        self, means: Float[Array, "N A"], log_std: Float[Array, " A"], clip: float
    ) -> Scalar:
        """PPO's objective, of a Gaussian given in every state."""
        log_prob = jax.vmap(gaussian.log_prob, (0, None, 0))(means, log_std, self.taken)
        return clipped_gain(log_prob - self.anchor.log_prob, self.advantages, clip)


def _chosen(condition: Bool[Array, ""], one: Any, other: Any) -> Any:
    return jax.tree.map(partial(jnp.where, condition), one, other)


Index = Int[Array, " M"]
Project = Callable[[MixturePolicy, Index, Problem], PolicyProjection]


def _ascend(
    config: UpdateConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    problem: Problem,
    project: Project,
    usable: Callable[[Index], Array] | None = None,
    *,
    holds_weights: bool | Bool[Array, ""],
    key: PRNGKeyArray,
) -> tuple[MixturePolicy, PolicyMoments]:
    """The scan that the updates share: they differ in how a minibatch is projected, in whether the
    weights stay, and in whether a minibatch is taken, which `usable` says."""

    def loss(parameters, index):
        trial = eqx.tree_at(lambda p: (p.weights, p.actions, p.log_std), policy, parameters)
        near = problem.rows(index)
        return -near.surrogate(project(trial, index, near))

    def step(carry, index):
        (weights, actions, log_std), moments = carry
        slopes = jax.grad(loss)((weights, actions, log_std), index)
        actions, action_moments = _step(config.action_rate, slopes[1], moments.actions, actions)
        log_std, std_moments = _step(config.std_rate, slopes[2], moments.log_std, log_std)
        held = (weights, moments.weights)
        if holds_weights is not True:
            stepped = _step(config.weight_rate, slopes[0], moments.weights, weights)
            held = stepped if holds_weights is False else _chosen(holds_weights, held, stepped)
        moved = PolicyMoments(held[1], action_moments, std_moments)
        new = ((held[0], actions, log_std), moved)
        if usable is not None:
            new = _chosen(usable(index), new, carry)
        return new, None

    rows = minibatches(key, len(problem.states), config.minibatch, config.epochs)
    start = ((policy.weights, policy.actions, policy.log_std), moments)
    (parameters, moments), _ = jax.lax.scan(step, start, rows)
    policy = eqx.tree_at(lambda p: (p.weights, p.actions, p.log_std), policy, parameters)
    return policy, moments


def update_all(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    problem: Problem,
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """updateFullPolicy: weights, actions and covariance, then the full-batch projection."""
    bound, floor = config.trust_region.bound, problem.entropy_floor
    activation = jax.vmap(policy.activation)(problem.states)

    def project(trial: MixturePolicy, index: Index, near: Problem) -> PolicyProjection:
        return project_all(trial, activation[index], near.anchor, bound, floor)

    policy, moments = _ascend(
        config.update, policy, moments, problem, project, holds_weights=False, key=key
    )
    return project_all(policy, activation, problem.anchor, bound, floor), moments


def update_actions(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    problem: Problem,
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """updateMeanAndCov: actions and covariance of a policy whose prototypes were changed.

    A minibatch on which that policy is outside the bound already is skipped.
    """
    bound, floor = config.trust_region.bound, problem.entropy_floor
    membership = jax.vmap(policy.membership)(problem.states)
    before = policy.actions
    usable = _within(problem, membership @ before, bound)

    def project(trial: MixturePolicy, index: Index, near: Problem) -> PolicyProjection:
        return project_actions(trial, before, membership[index], near.anchor, bound, floor)

    policy, moments = _ascend(
        config.update, policy, moments, problem, project, usable, holds_weights=True, key=key
    )
    return project_actions(policy, before, membership, problem.anchor, bound, floor), moments


def _within(
    problem: Problem, intermediate: Float[Array, "N A"], bound: float
) -> Callable[[Index], Array]:
    """Whether the means of a policy are within the bound on a minibatch."""
    anchor = problem.anchor

    def usable(index: Index) -> Array:
        return mean_shift(intermediate[index], anchor.means[index], anchor.log_std) < bound

    return usable


def update_either(
    config: LearnerConfig,
    policy: MixturePolicy,
    moments: PolicyMoments,
    problem: Problem,
    changed: Bool[Array, ""],
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """`update_actions` where prototypes were changed, else `update_all`, as one scan: for seeds
    that learn side by side, of which some need the one and some the other. The full update does
    all that the partial one does, once its memberships are held."""
    bound, floor = config.trust_region.bound, problem.entropy_floor
    activation = jax.vmap(policy.activation)(problem.states)
    membership = jax.vmap(policy.membership)(problem.states)
    before = policy.actions  # the anchor's where nothing was changed
    is_within = _within(problem, membership @ before, bound)

    def projected(
        trial: MixturePolicy, activation: Array, membership: Array, anchor: Anchor
    ) -> PolicyProjection:
        free = project_weights(trial, activation, anchor, bound)
        membership = jnp.where(changed, membership, free.membership)
        projection = project_actions(trial, before, membership, anchor, bound, floor)
        weights = jnp.where(changed, trial.weights, free.weights)
        found = eqx.tree_at(lambda p: p.weights, projection.policy, weights)
        step = jnp.where(changed, projection.weight_step, free.step)
        return PolicyProjection(found, projection.gaussian, step)

    def project(trial: MixturePolicy, index: Index, near: Problem) -> PolicyProjection:
        return projected(trial, activation[index], membership[index], near.anchor)

    def usable(index: Index) -> Array:
        return ~changed | is_within(index)

    policy, moments = _ascend(
        config.update, policy, moments, problem, project, usable, holds_weights=changed, key=key
    )
    return projected(policy, activation, membership, problem.anchor), moments


def fit_critic(
    config: CriticConfig,
    twins: Perceptron,
    moments: optax.OptState,
    states: Float[Array, "N d"],
    targets: Float[Array, " N"],
    *,
    key: PRNGKeyArray,
) -> tuple[Perceptron, optax.OptState, Scalar]:
    """updateValueFunction: both networks on the same targets, each in its own order.

    Returns the networks, Adam's state, and the mean squared error of the last epoch.
    """
    adam = optax.adam(config.critic_rate)

    def fit(network, moments, key):
        rows = minibatches(key, len(states), config.critic_minibatch, config.critic_epochs)

        def loss(network, index):
            error = jax.vmap(network)(states[index])[:, 0] - targets[index]
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

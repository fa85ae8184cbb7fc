"""PPO and TRPO against what can be computed the long way round."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from moie.core.network import LinearPolicy, NetworkPolicy
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.learn.config import PPOConfig, TRPOConfig
from moie.learn.policy_gradient import Objective, fisher_product, start_ppo, update_ppo, update_trpo

D, A, N = 5, 2, 48
KINDS = ("network", "linear", "mixture")


def policy_of(kind: str, key) -> GaussianPolicy:
    keys = jax.random.split(key, 4)
    log_std = 0.3 * jax.random.normal(keys[0], (A,))
    if kind == "network":
        policy = NetworkPolicy(D, (6, 6), A, key=keys[1])
        matrices = policy.network.matrices
        grown = (*matrices[:-1], 50.0 * matrices[-1])  # not near zero, as the first policy is
        policy = eqx.tree_at(lambda p: p.network.matrices, policy, grown)
    elif kind == "linear":
        policy = eqx.tree_at(
            lambda p: p.matrix, LinearPolicy(D, A), 0.5 * jax.random.normal(keys[1], (A, D))
        )
    else:
        prototypes, actions = jax.random.normal(keys[1], (3, D)), jax.random.normal(keys[2], (3, A))
        weights = jax.random.uniform(keys[3], (3,), minval=0.5, maxval=3.0)
        policy = MixturePolicy(prototypes, weights, actions, log_std, 0.2)
    return eqx.tree_at(lambda p: p.log_std, policy, log_std)


def objective_of(policy: GaussianPolicy, key) -> Objective:
    state_key, noise_key, key = jax.random.split(key, 3)
    states = jax.random.normal(state_key, (N, D))
    means = jax.vmap(policy.mean)(states)
    taken = means + jnp.exp(policy.log_std)[None, :] * jax.random.normal(noise_key, (N, A))
    return Objective.of(policy, states, taken, jax.random.normal(key, (N,)))


def hundred(kind: str, function):
    """`function(policy, objective, key)` on 100 random policies and batches."""

    def one(key):
        first, second, third = jax.random.split(key, 3)
        policy = policy_of(kind, first)
        return function(policy, objective_of(policy, second), third)

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(7), 100))


def flat(policy: GaussianPolicy):
    learned, fixed = eqx.partition(policy, policy.learned)
    vector, unravel = ravel_pytree(learned)
    return vector, lambda v: eqx.combine(unravel(v), fixed)


@pytest.mark.parametrize("kind", KINDS)
def test_fisher_products_agree_with_the_explicit_matrix(kind: str) -> None:
    def both(policy, objective, key):
        start, moved = flat(policy)

        def outputs(vector):
            now = moved(vector)
            return jax.vmap(now.mean)(objective.states), now.log_std

        slopes, std_slopes = jax.jacobian(outputs)(start)  # (N, A, n), (A, n)
        scaled = slopes * jnp.exp(-policy.log_std)[None, :, None]
        fisher = jnp.einsum("nai,naj->ij", scaled, scaled) / N + 2.0 * std_slopes.T @ std_slopes
        vector = jax.random.normal(key, start.shape)
        return fisher_product(policy, objective)(vector), fisher @ vector

    found, expected = hundred(kind, both)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_accepted_step_keeps_the_limit_and_gains(kind: str) -> None:
    config = TRPOConfig()

    def step(policy, objective, _):
        after, taken = update_trpo(config, policy, objective)
        gain = objective.surrogate(after) - objective.surrogate(policy)
        return taken, objective.divergence(after), gain

    taken, divergence, gain = hundred(kind, step)
    assert (divergence <= config.kl_limit * (1 + 1e-4)).all()
    assert (gain >= -1e-6).all()
    accepted = np.asarray(taken.fraction) > 0
    assert accepted.mean() > 0.9
    assert np.median(divergence[accepted]) > 0.25 * config.kl_limit
    np.testing.assert_allclose(taken.divergence, divergence, atol=1e-6)
    np.testing.assert_allclose(taken.gain, gain, atol=1e-5)


def test_a_batch_without_advantages_moves_nothing() -> None:
    policy = policy_of("network", jax.random.key(0))
    objective = objective_of(policy, jax.random.key(1))
    objective = eqx.tree_at(lambda o: o.advantages, objective, jnp.zeros(N))
    after, step = jax.jit(update_trpo, static_argnums=0)(TRPOConfig(), policy, objective)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((after, step)))
    for now, before in zip(jax.tree.leaves(after), jax.tree.leaves(policy), strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("kind", KINDS)
def test_ppos_gradient_at_the_anchor_is_the_policy_gradient(kind: str) -> None:
    def both(policy, objective, _):
        start, moved = flat(policy)

        def plain(vector):
            log_prob = jax.vmap(moved(vector).log_prob)(objective.states, objective.taken)
            return jnp.mean(log_prob * objective.advantages)

        clipped = jax.grad(lambda vector: objective.clipped(moved(vector), 0.2))(start)
        return clipped, jax.grad(plain)(start)

    found, expected = hundred(kind, both)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_ppo_gains_and_stays_near(kind: str) -> None:
    config = PPOConfig(ppo_minibatch=16)

    def step(policy, objective, key):
        moments = start_ppo(config, policy)
        after, _ = update_ppo(config, policy, moments, objective, key=key)
        ratio = objective.ratio(after)
        return objective.surrogate(after) - objective.surrogate(policy), jnp.mean(ratio)

    gain, ratio = hundred(kind, step)
    assert (gain > 0).mean() > 0.95
    assert np.abs(ratio - 1).max() < 0.5


def test_the_temperature_of_a_mixture_is_not_learned() -> None:
    policy = policy_of("mixture", jax.random.key(0))
    objective = objective_of(policy, jax.random.key(1))
    after, _ = jax.jit(update_trpo, static_argnums=0)(TRPOConfig(), policy, objective)
    assert after.temperature == policy.temperature
    assert not np.array_equal(after.prototypes, policy.prototypes)


def test_parameters_on_ant_are_the_papers() -> None:
    assert NetworkPolicy(28, (64, 64), 8, key=jax.random.key(0)).n_parameters == 6544
    assert LinearPolicy(28, 8).n_parameters == 232

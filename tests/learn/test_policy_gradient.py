"""PPO and TRPO against what can be computed the long way round."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from moie.core.entropy import NO_FLOOR
from moie.core.network import LinearPolicy, NetworkPolicy
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.learn import registry
from moie.learn.algorithm import Outcome, Sampled
from moie.learn.baselines import PROTOTYPE_NOISE, mixture
from moie.learn.config import LearnerConfig, PPOConfig, TRPOConfig
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
    assert np.median(divergence[accepted]) > 0.9 * config.kl_limit
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
        ratio = jnp.exp(objective.log_ratio(after))
        return objective.surrogate(after) - objective.surrogate(policy), jnp.mean(ratio)

    gain, ratio = hundred(kind, step)
    assert (gain > 0).mean() > 0.95
    assert np.abs(ratio - 1).max() < 0.5


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "value", "has_gradient"),
    [
        (np.log(1.3), 1.0, 1.2, False),  # likelier than the clip, and good: enough
        (np.log(1.3), -1.0, -1.3, True),
        (np.log(0.7), 1.0, 0.7, True),
        (np.log(0.7), -1.0, -0.8, False),
        (np.log(1.1), 1.0, 1.1, True),
        (1000.0, -1.0, -np.exp(20.0), False),
    ],
)
def test_the_clip(log_ratio: float, advantage: float, value: float, has_gradient: bool) -> None:
    policy = policy_of("linear", jax.random.key(0))
    objective = objective_of(policy, jax.random.key(1))
    objective = eqx.tree_at(
        lambda o: (o.advantages, o.log_prob),
        objective,
        (jnp.full(N, advantage), objective.log_prob - log_ratio),
    )
    start, moved = flat(policy)
    found, slope = jax.value_and_grad(lambda v: objective.clipped(moved(v), 0.2))(start)
    np.testing.assert_allclose(found, value, rtol=1e-4)
    assert np.isfinite(slope).all()
    assert (np.abs(slope).max() > 1e-6) == has_gradient


def sampled_by(policy: GaussianPolicy, floor: float, iteration: int) -> Sampled:
    objective = objective_of(policy, jax.random.key(1))
    parts = (objective.states, objective.taken, objective.advantages)
    return Sampled(*parts, jnp.asarray(floor), jnp.asarray(iteration), jnp.asarray(0.0))


def updated(algorithm: str, policy: GaussianPolicy, sampled: Sampled) -> Outcome:
    config = LearnerConfig(algorithm=algorithm, ppo=PPOConfig(ppo_rate=0.03, ppo_minibatch=16))
    own = start_ppo(config.ppo, policy) if algorithm.startswith("ppo") else ()
    update = jax.jit(registry.algorithm(algorithm).load().update, static_argnums=0)
    return update(config, policy, own, sampled, key=jax.random.key(2))


@pytest.mark.parametrize("algorithm", ["ppo-diffproto", "trpo-diffproto"])
def test_the_floor_binds_where_the_algorithm_has_one(algorithm: str) -> None:
    policy = policy_of("mixture", jax.random.key(0))
    # Actions close to their mean were good: without a floor the noise falls.
    sampled = sampled_by(policy, float(policy.entropy()) - 0.001, 3)
    z = (sampled.taken - jax.vmap(policy.mean)(sampled.states)) * jnp.exp(-policy.log_std)[None, :]
    sampled = eqx.tree_at(lambda s: s.advantages, sampled, -jnp.sum(z * z, axis=1))
    free = updated(algorithm, policy, sampled)
    held = updated(f"{algorithm}-entropy", policy, sampled)
    assert free.policy.entropy() < sampled.entropy_floor - 0.01
    assert held.policy.entropy() >= sampled.entropy_floor - 1e-5


def test_a_floor_does_not_waste_the_limit() -> None:
    policy = policy_of("mixture", jax.random.key(0))
    sampled = sampled_by(policy, float(policy.entropy()), 3)
    z = (sampled.taken - jax.vmap(policy.mean)(sampled.states)) * jnp.exp(-policy.log_std)[None, :]
    better = -3.0 * jnp.sum(z * z, axis=1) + z[:, 0]
    sampled = eqx.tree_at(lambda s: s.advantages, sampled, better)
    held = updated("trpo-diffproto-entropy", policy, sampled)
    objective = Objective.of(policy, sampled.states, sampled.taken, sampled.advantages)
    assert 0.5 * 0.01 < objective.divergence(held.policy) <= 0.01


@pytest.mark.parametrize("algorithm", ["ppo-diffproto", "trpo-diffproto"])
def test_prototypes_start_around_the_first_state(algorithm: str) -> None:
    policy = mixture(LearnerConfig(), D, A, key=jax.random.key(3))
    sampled = sampled_by(policy, NO_FLOOR, 0)
    found = updated(algorithm, policy, sampled)
    offsets = np.asarray(found.policy.prototypes) - np.asarray(sampled.states[0])
    assert np.abs(offsets).max() < 5 * PROTOTYPE_NOISE + 1.0
    assert np.abs(np.asarray(sampled.states[0])).max() > 0.5
    later = updated(algorithm, policy, eqx.tree_at(lambda s: s.iteration, sampled, jnp.asarray(1)))
    moved = np.asarray(later.policy.prototypes - policy.prototypes)
    from_shifted = moved - np.asarray(sampled.states[0])
    assert (np.linalg.norm(moved, axis=1) < np.linalg.norm(from_shifted, axis=1)).all()
    apart = np.asarray(found.policy.prototypes)[:, None] - np.asarray(sampled.states)[None]
    nearest = np.linalg.norm(apart, axis=2).min(axis=1)
    np.testing.assert_allclose(found.distances, nearest, rtol=1e-4, atol=1e-5)


def test_the_temperature_of_a_mixture_is_not_learned() -> None:
    policy = policy_of("mixture", jax.random.key(0))
    objective = objective_of(policy, jax.random.key(1))
    after, _ = jax.jit(update_trpo, static_argnums=0)(TRPOConfig(), policy, objective)
    assert after.temperature == policy.temperature
    assert not np.array_equal(after.prototypes, policy.prototypes)


def test_parameters_on_ant_are_the_papers() -> None:
    assert NetworkPolicy(28, (64, 64), 8, key=jax.random.key(0)).n_parameters == 6544
    assert LinearPolicy(28, 8).n_parameters == 232

"""The small parts, with expectations that a reader can check with a pencil."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moie.core.advantage import at_once, gae, one_by_one, standardise
from moie.core.batch import Batch
from moie.core.entropy import NO_FLOOR, EntropyFloor
from moie.core.network import make_twins, smaller_value
from moie.core.policy import MixturePolicy


def test_gae_tells_termination_from_truncation():
    # discount 0.5, decay 0.5, so that later errors count a quarter a step.
    # Errors: 1 + 0.5*2 - 1 = 1;  1 + 0 - 1 = 0 (terminated);  1 + 0.5*4 - 1 = 2 (cut: bootstraps).
    anything = jnp.zeros((3, 1))
    batch = Batch(
        states=anything,
        next_states=anything,
        taken=anything,
        rewards=jnp.ones(3),
        terminated=jnp.asarray([False, True, False]),
        episode_end=jnp.asarray([False, True, True]),
    )
    next_values = jnp.asarray([2.0, 3.0, 4.0])
    advantages = gae(batch, jnp.ones(3), next_values, discount=0.5, decay=0.5)
    np.testing.assert_allclose(advantages, [1.0 + 0.25 * 0.0, 0.0, 2.0])


def test_advantages_at_once_are_those_one_by_one():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 3008):
        errors = jnp.asarray(rng.normal(size=n), jnp.float32)
        keep = jnp.asarray(np.where(rng.random(n) < 0.05, 0.0, 0.9405), jnp.float32)
        np.testing.assert_allclose(at_once(errors, keep), one_by_one(errors, keep), atol=1e-5)


def test_standardised_advantages():
    found = standardise(jnp.asarray([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [-1.2247449, 0.0, 1.2247449], rtol=1e-6)
    np.testing.assert_array_equal(standardise(jnp.ones(3)), jnp.zeros(3))


def test_entropy_floor_has_two_phases():
    floor = EntropyFloor.start(jnp.asarray(2.0), 0.5)
    floor, none = floor.advance(jnp.asarray(1.5), 0.1)
    assert float(none) == NO_FLOOR
    floor, first = floor.advance(jnp.asarray(0.95), 0.1)
    assert float(first) == pytest.approx(0.9)
    # Once there it stays, wherever the entropy goes, and falls.
    floor, second = floor.advance(jnp.asarray(1.8), 0.1)
    assert float(second) == pytest.approx(0.8)


def test_critic_is_the_smaller_of_two_and_starts_as_the_paper_says():
    twins = make_twins(3, (64, 64), key=jax.random.key(0))
    state = jnp.asarray([0.3, -0.2, 0.9])
    both = jax.vmap(lambda network: network(state))(twins)
    assert float(smaller_value(twins, state)) == float(both.min())
    assert both[0] != both[1]
    first = np.asarray(twins.matrices[0])
    limit = 5 / 3 * np.sqrt(6 / (3 + 64))
    assert np.abs(first).max() <= limit
    assert np.abs(first).max() > 0.97 * limit
    assert all((np.asarray(bias) == 0).all() for bias in twins.biases)


def test_weights_count_by_size_and_slope_one_at_zero():
    policy = MixturePolicy(
        jnp.zeros((2, 1)), jnp.asarray([0.0, -2.0]), jnp.ones((2, 1)), jnp.zeros(1), 1.0
    )
    np.testing.assert_array_equal(policy.magnitude, [0.0, 2.0])

    def total(weights):
        return (
            MixturePolicy(policy.prototypes, weights, policy.actions, policy.log_std, 1.0)
            .strength(jnp.zeros(1))
            .sum()
        )

    np.testing.assert_array_equal(jax.grad(total)(policy.weights), [1.0, -1.0])


def test_policy_by_hand():
    # One expert of weight 1 at 0, temperature ln 2: at distance 1 its activation is 1/2,
    # its membership 0.5 / 1.5 = 1/3, the default's 2/3; the mean a third of its action.
    policy = MixturePolicy(
        jnp.zeros((1, 1)), jnp.ones(1), jnp.asarray([[3.0]]), jnp.zeros(1), float(np.log(2))
    )
    state = jnp.ones(1)
    assert float(policy.activation(state)[0]) == pytest.approx(0.5)
    assert float(policy.membership(state)[0]) == pytest.approx(1 / 3)
    assert float(policy.default_share(state)) == pytest.approx(2 / 3)
    assert float(policy.mean(state)[0]) == pytest.approx(1.0)
    assert policy.n_parameters == 4

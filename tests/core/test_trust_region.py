"""Promises of the projections, over random policies and batches; the KL is checked in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.core.policy import MixturePolicy
from moie.core.selection import swap_prototypes
from moie.core.trust_region import (
    Anchor,
    divergence,
    project_actions,
    project_all,
    project_gaussian,
    raise_entropy,
)
from tests.core.cases import entropy_of, kl_of, memberships_of, perturbed, random_case

BOUND = 0.015
SEEDS = st.integers(0, 2**32 - 1)
many = settings(max_examples=500, deadline=None)


@jax.jit
def project(policy: MixturePolicy, near: MixturePolicy, states, taken, floor):
    anchor = Anchor.of(near, states, taken)
    activation = jax.vmap(policy.activation)(states)
    projected = project_all(policy, activation, anchor, BOUND, floor)
    return projected, divergence(projected.policy, states, anchor)


@jax.jit
def swap_and_project(new_parameters: MixturePolicy, near: MixturePolicy, states, taken, floor, key):
    """A swap, then new actions and log std projected, as the partial update does."""
    anchor = Anchor.of(near, states, taken)
    n_swaps = jnp.asarray(5.0)
    swap = swap_prototypes(near, states, anchor, BOUND, n_swaps, n_candidates=50, key=key)
    trial = eqx.tree_at(
        lambda p: (p.actions, p.log_std),
        swap.policy,
        (new_parameters.actions, new_parameters.log_std),
    )
    membership = jax.vmap(trial.membership)(states)
    return project_actions(trial, swap.policy.actions, membership, anchor, BOUND, floor).policy


@jax.jit
def memberships(policy: MixturePolicy, states):
    return jax.vmap(policy.membership)(states)


def floor_for(case, seed: int) -> float:
    """None, at the anchor's entropy, or somewhat below it."""
    below = np.random.default_rng([seed, 2]).choice([1e4, 0.0, 0.3])
    return float(np.float32(entropy_of(case.policy))) - float(below)


@many
@given(SEEDS)
def test_full_batch_projection_keeps_bound_and_floor(seed):
    case = random_case(seed)
    floor = floor_for(case, seed)
    new = perturbed(case.policy, seed)
    projected, reported = project(new, case.policy, case.states, case.taken, floor)
    kl = kl_of(projected.policy, case.policy, case.states)
    assert kl <= BOUND * (1 + 1e-4)
    assert abs(float(reported) - kl) <= 1e-4 * BOUND
    assert entropy_of(projected.policy) >= floor - 1e-5
    assert (np.asarray(projected.policy.weights) >= 0).all()
    inside = kl_of(new, case.policy, case.states) < BOUND * 0.999 and entropy_of(new) > floor + 1e-5
    # The weights are projected by themselves: they may leave the bound where all together do not.
    if inside and float(projected.weight_step) == 1.0:
        np.testing.assert_array_equal(projected.policy.actions, new.actions)
        np.testing.assert_allclose(projected.policy.weights, np.abs(new.weights), rtol=1e-6)


@many
@given(SEEDS)
def test_projection_after_a_swap_keeps_bound_and_floor(seed):
    case = random_case(seed)
    floor = floor_for(case, seed)
    new = perturbed(case.policy, seed)
    key = jax.random.key(seed)
    policy = swap_and_project(new, case.policy, case.states, case.taken, floor, key)
    assert kl_of(policy, case.policy, case.states) <= BOUND * (1 + 1e-4)
    assert entropy_of(policy) >= floor - 1e-5
    np.testing.assert_array_equal(policy.weights, case.policy.weights)


@many
@given(SEEDS)
def test_memberships_are_shares(seed):
    case = random_case(seed)
    membership = np.asarray(memberships(case.policy, case.states))
    assert (membership >= 0).all()
    assert (membership.sum(1) < 1).all()
    expected = memberships_of(case.policy, case.states)
    np.testing.assert_allclose(membership, expected, rtol=1e-3, atol=1e-6)


def test_projection_uses_the_bound_up():
    """Far outside, the projected policy is on the bound, not somewhere inside."""
    case = random_case(1)
    far = eqx.tree_at(lambda p: p.actions, case.policy, case.policy.actions + 5.0)
    projected, _ = project(far, case.policy, case.states, case.taken, -1e4)
    assert kl_of(projected.policy, case.policy, case.states) == pytest.approx(BOUND, rel=1e-4)


@pytest.mark.parametrize("zero_weights", [False, True])
def test_gradient_is_finite_at_the_anchor(zero_weights):
    """At the anchor every formula degenerates; at weight zero |c| has its corner."""
    case = random_case(3)
    policy = case.policy
    if zero_weights:
        policy = eqx.tree_at(lambda p: p.weights, policy, jnp.zeros(5))
    gradient = gradient_of_projection(policy, policy, case.states, case.taken)
    for leaf in jax.tree.leaves((gradient.weights, gradient.actions, gradient.log_std)):
        assert jnp.isfinite(leaf).all()
    assert jnp.any(gradient.weights != 0), "experts at weight zero must be able to leave it"


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_gradient_is_finite_anywhere(seed):
    case = random_case(seed)
    gradient = gradient_of_projection(perturbed(case.policy, seed), case.policy, *case[1:3])
    for leaf in jax.tree.leaves((gradient.weights, gradient.actions, gradient.log_std)):
        assert np.isfinite(leaf).all()


@jax.jit
def gradient_of_projection(policy, near, states, taken):
    anchor = Anchor.of(near, states, taken)
    activation = jax.vmap(near.activation)(states)

    def surrogate(trial):
        found = project_all(trial, activation, anchor, BOUND, near.entropy())
        return jnp.sum(found.gaussian.means) + jnp.sum(found.gaussian.log_std)

    return jax.grad(surrogate)(policy)


def test_gradient_agrees_with_finite_differences():
    """Inside the bound (steps are one) and outside (steps follow from the parameters)."""
    with jax.enable_x64(True):
        case = random_case(5)
        policy = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), case.policy)
        states, taken = (jnp.asarray(x, jnp.float64) for x in case[1:3])
        anchor = Anchor.of(policy, states, taken)
        activation = jax.vmap(policy.activation)(states)
        new = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), perturbed(case.policy, 7))

        @jax.jit
        def value(t, direction):
            trial = eqx.tree_at(lambda p: p.actions, new, new.actions + t * direction)
            found = project_all(trial, activation, anchor, BOUND, -1e4)
            return jnp.sum(jnp.sin(found.gaussian.means)) + jnp.sum(found.gaussian.log_std)

        direction = jnp.ones_like(new.actions)
        slope = jax.grad(value)(0.0, direction)
        difference = (value(1e-6, direction) - value(-1e-6, direction)) / 2e-6
        assert float(slope) == pytest.approx(float(difference), rel=1e-4)


def test_entropy_is_raised_to_the_floor_and_not_beyond():
    log_std = jnp.asarray([-1.0, 0.5])
    entropy = float(jnp.sum(log_std)) + 2 * 0.5 * np.log(2 * np.pi * np.e)
    np.testing.assert_array_equal(raise_entropy(log_std, entropy - 0.1), log_std)
    # One nat more over two dimensions is half a nat for each.
    np.testing.assert_allclose(raise_entropy(log_std, entropy + 1), log_std + 0.5, rtol=1e-5)


def test_floor_above_the_anchor_never_breaks_the_bound():
    """The bound has priority: the entropy climbs as far as it allows."""
    case = random_case(11)
    floor = entropy_of(case.policy) + 3.0
    projected, _ = project(case.policy, case.policy, case.states, case.taken, floor)
    kl = kl_of(projected.policy, case.policy, case.states)
    assert kl <= BOUND * (1 + 1e-4)
    assert entropy_of(case.policy) < entropy_of(projected.policy) < floor


def test_intermediate_outside_the_bound_is_left_where_it_is():
    """Callers skip such minibatches; the projection itself must not turn them into NaN."""
    case = random_case(13)
    anchor = jax.jit(Anchor.of)(case.policy, case.states, case.taken)
    off = anchor.means + 10.0
    found = project_gaussian(off + 1.0, case.policy.log_std, off, anchor, BOUND, -1e4)
    assert jnp.isfinite(found.means).all()
    assert float(found.mean_step) == 0.0
    np.testing.assert_allclose(found.means, off)


@pytest.mark.parametrize("beyond", [1.0, 1.0001, 2.0, 1e4])
def test_the_first_step_after_a_swap_is_finite_outside_the_bound(beyond):
    """Nothing has moved since the swap, and the swap itself is a little too far on the states of
    a minibatch: there is nothing to divide the covariance's share of the bound by."""
    case = random_case(17)
    anchor = jax.jit(Anchor.of)(case.policy, case.states, case.taken)
    far = jnp.sqrt(2.0 * BOUND * beyond / anchor.log_std.size)
    swapped = anchor.means + far * jnp.exp(anchor.log_std)[None, :]

    def moved(means, log_std):
        found = project_gaussian(means, log_std, swapped, anchor, BOUND, -1e4)
        return jnp.sum(found.means) + jnp.sum(found.log_std), found

    gradients, found = jax.grad(moved, (0, 1), has_aux=True)(swapped, anchor.log_std)
    for leaf in jax.tree.leaves((gradients, found)):
        assert jnp.isfinite(leaf).all()
    np.testing.assert_allclose(found.means, swapped, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.log_std, anchor.log_std)

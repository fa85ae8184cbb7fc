"""The trust region in single precision: the KL of projected policies, computed again in double."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moie.core.policy import MixturePolicy
from moie.core.selection import swap_prototypes
from moie.core.trust_region import Anchor, less_rounding, project_actions, project_all, seen_kl

BOUND, PROMISE = 0.015, 1 + 1e-4
N, K, D, A = 64, 5, 3, 2
# Exponents of ten of the largest action, and the range of log sigma.
KINDS = {
    "moderate": ((-1.0, 1.0), (-3.0, 1.0)),
    "trained": ((-0.5, 1.3), (-5.3, -0.5)),
    "sharp": ((1.3, 1.3), (-5.3, -5.3)),  # actions of 20, sigma of 0.005
    "sharper": ((1.5, 2.5), (-5.3, -5.3)),
}


def case(key, kind) -> tuple[MixturePolicy, MixturePolicy, jax.Array]:
    """A policy, one that is moved by anything from a hair to far outside, and states."""
    sizes, spreads = kind
    k = jax.random.split(key, 13)

    def power(i: int, low: float, high: float):
        return 10 ** jax.random.uniform(k[i], (), minval=low, maxval=high)

    states = jax.random.normal(k[0], (N, D)) * power(1, -1.0, 0.5)
    weights = jax.random.exponential(k[2], (K,)) * power(3, -2.0, 2.0)
    weights = jnp.where(jax.random.uniform(k[4], (K,)) < 0.3, 0.0, weights)
    actions = jax.random.normal(k[5], (K, A)) * power(6, *sizes)
    log_std = jax.random.uniform(k[7], (A,), minval=spreads[0], maxval=spreads[1])
    prototypes = states[jax.random.choice(k[8], N, (K,), replace=False)]
    policy = MixturePolicy(prototypes, weights, actions, log_std, power(9, -1.0, 0.5))
    by = 10 ** jax.random.uniform(k[10], (3,), minval=-4.0, maxval=1.2)
    noise = jax.random.normal(k[11], (K + K * A + A,))
    moved = (
        weights + noise[:K] * by[0],
        actions + noise[K : K + K * A].reshape(K, A) * by[1],
        log_std + noise[K + K * A :] * jnp.minimum(by[2], 1.0),
    )
    return policy, eqx.tree_at(lambda p: (p.weights, p.actions, p.log_std), policy, moved), states


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def projected(key, kind):
    """As the full update does it."""
    policy, new, states = case(key, kind)
    anchor = Anchor.of(policy, states, jnp.zeros((N, A)))
    activation = jax.vmap(new.activation)(states)
    return policy, project_all(new, activation, anchor, BOUND, -1e4).policy, states


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def swapped(key, kind):
    """As the partial update does it: only actions and covariance after a swap."""
    policy, new, states = case(key, kind)
    anchor = Anchor.of(policy, states, jnp.zeros((N, A)))
    within = less_rounding(BOUND, anchor.means, anchor)
    swap = swap_prototypes(
        policy, states, anchor, within, jnp.asarray(5.0), n_candidates=20, key=key
    )
    learned = lambda p: (p.actions, p.log_std)  # noqa: E731
    trial = eqx.tree_at(learned, swap.policy, learned(new))
    membership = jax.vmap(trial.membership)(states)
    found = project_actions(trial, swap.policy.actions, membership, anchor, BOUND, -1e4)
    return policy, found.policy, states


def kls(policy: MixturePolicy, new: MixturePolicy, states) -> np.ndarray:
    """In double precision, from the parameters alone; for many policies at once."""
    states = np.asarray(states, np.float64)

    def means(one: MixturePolicy) -> np.ndarray:
        parts = (one.prototypes, one.weights, one.temperature, one.actions)
        prototypes, weights, temperature, actions = (np.asarray(x, np.float64) for x in parts)
        squares = ((states[:, :, None] - prototypes[:, None]) ** 2).sum(-1)
        strength = np.abs(weights)[:, None] * np.exp(-temperature[:, None, None] * squares)
        return strength / (strength.sum(-1, keepdims=True) + 1) @ actions

    log_std, anchor_log_std = (np.asarray(p.log_std, np.float64) for p in (new, policy))
    z = (means(new) - means(policy)) * np.exp(-anchor_log_std)[:, None]
    x = 2 * (log_std - anchor_log_std)
    return 0.5 * (z**2).sum(-1).mean(-1) + 0.5 * (np.expm1(x) - x).sum(-1)


def largest(update, kind: str, n: int, seed: int = 0, at_once: int = 10_000) -> float:
    """Largest KL of n updates, as a share of the bound."""
    at_once = min(n, at_once)
    seeds = range(seed, seed + n // at_once)
    keys = (jax.random.split(jax.random.key(one), at_once) for one in seeds)
    blocks = (kls(*update(some, jnp.asarray(KINDS[kind]))) for some in keys)
    return max(float(block.max()) for block in blocks) / BOUND


@pytest.mark.parametrize("kind", ["sharp", "sharper"])
def test_the_bound_holds_where_actions_are_large_beside_sigma(kind: str) -> None:
    found = largest(projected, kind, 1000)
    assert 0.5 < found <= PROMISE


def test_the_bound_holds_after_a_swap_where_actions_are_large_beside_sigma() -> None:
    assert 0.5 < largest(swapped, "sharp", 200) <= PROMISE


def test_what_rounding_decides_about_counts_as_diverged() -> None:
    """From actions of 90,000 at a sigma of 0.25 on, in single precision."""
    policy, _, states = jax.jit(case)(jax.random.key(0), jnp.asarray(KINDS["moderate"]))
    for size, is_seen in ((1.0, True), (8e4, True), (1e5, False), (1e30, False)):
        actions = jnp.zeros((K, A)).at[0].set(size)
        large = eqx.tree_at(
            lambda p: (p.actions, p.log_std), policy, (actions, jnp.full(A, jnp.log(0.25)))
        )
        anchor = Anchor.of(large, states, jnp.zeros((N, A)))
        found = seen_kl(jnp.asarray(0.01), BOUND, anchor.means, anchor)
        assert bool(jnp.isfinite(found)) is is_seen


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["moderate", "trained"])
def test_none_of_a_million_projections_leaves_the_bound(kind: str) -> None:
    """Half a million of each kind."""
    found = largest(projected, kind, 500_000, seed=1)
    print(kind, found)
    assert found <= PROMISE

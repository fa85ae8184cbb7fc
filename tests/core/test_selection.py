"""Promises of swap, compress and seeding, over random policies and batches."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.core.search import Search, best_within, draw_experts, draw_states, running_objective
from moie.core.selection import KEPT, compress, seed_prototypes, swap_objective, swap_prototypes
from moie.core.trust_region import Anchor
from tests.core.cases import kl_of, random_case

BOUND = 0.015
SEEDS = st.integers(0, 2**32 - 1)
many = settings(max_examples=500, deadline=None)


@jax.jit
def swap(policy, states, taken, n_swaps, key):
    anchor = Anchor.of(policy, states, taken)
    return swap_prototypes(policy, states, anchor, BOUND, n_swaps, n_candidates=50, key=key)


@jax.jit
def compress_after(policy, near, states, taken, advantages):
    anchor = Anchor.of(near, states, taken)
    return compress(policy, states, taken, advantages, anchor, 0.5 * BOUND, 0.66 * BOUND)


@partial(jax.jit, static_argnums=4)
def best_of_lists(policy, states, taken, lists, at_once):
    search = Search.of(policy, states, Anchor.of(policy, states, taken))
    present = len(states) + jnp.arange(policy.weights.size, dtype=jnp.int32)
    nothing = (search.objective(present, 3), present)
    return best_within(search, lists, nothing, BOUND, 3, at_once), search


@jax.jit
def measures_of_lists(search, lists):
    return jax.lax.map(lambda rows: (search.objective(rows, 3), search.shift(rows)), lists)


def objective_of(policy, states) -> float:
    distances = ((states[:, None].astype("f8") - np.asarray(policy.prototypes)) ** 2).sum(-1)
    top = np.sort(np.exp(-float(policy.temperature) * distances), axis=1)[:, ::-1][:, :3]
    return float((top[:, 0] - top.mean(1)).mean())


def is_visited(policy, states, rows, before) -> bool:
    """Every prototype is a row of the batch where one is named, and the old one elsewhere."""
    rows, prototypes = np.asarray(rows), np.asarray(policy.prototypes)
    expected = np.where((rows != KEPT)[:, None], states[rows], np.asarray(before.prototypes))
    return bool((prototypes == expected).all())


@pytest.mark.parametrize("at_once", [1, 16, 50])
def test_the_best_list_is_found_however_many_are_looked_at_side_by_side(at_once):
    n_found = 0
    for seed in range(30):
        case, rng = random_case(seed), np.random.default_rng(seed)
        n, k = len(case.states), case.policy.weights.size
        lists = np.tile(n + np.arange(k, dtype=np.int32), (50, 1))
        lists[np.arange(50), rng.integers(0, k, 50)] = rng.integers(0, n, 50)
        (objective, rows), search = best_of_lists(*case[:3], jnp.asarray(lists), at_once)
        objectives, shifts = (np.asarray(x) for x in measures_of_lists(search, jnp.asarray(lists)))
        within = shifts < BOUND
        before = float(search.objective(n + jnp.arange(k), 3))
        best = np.where(within, objectives, -np.inf).argmax()
        if within[best] and objectives[best] > before + 1e-6:
            n_found += 1
            assert objective == pytest.approx(objectives[best], abs=1e-6)
            assert objectives[(lists == np.asarray(rows)).all(axis=1)].max() == pytest.approx(
                objectives[best], abs=1e-6
            )
        elif not within.any() or objectives[best] < before - 1e-6:
            assert (np.asarray(rows) >= n).all()
    assert n_found > 10


@many
@given(SEEDS)
def test_swap_keeps_the_bound_and_never_lowers_the_objective(seed):
    case = random_case(seed)
    start = jnp.asarray(float(np.random.default_rng(seed).integers(1, 6)))
    found = swap(case.policy, case.states, case.taken, start, jax.random.key(seed))
    assert kl_of(found.policy, case.policy, case.states) <= BOUND * (1 + 1e-4)
    before, after = (objective_of(p, case.states) for p in (case.policy, found.policy))
    assert after >= before - 1e-6
    assert is_visited(found.policy, case.states, found.rows, case.policy)
    swapped = int((np.asarray(found.rows) != KEPT).sum())
    assert 1.0 <= float(found.n_swaps) <= 5.0
    assert swapped <= np.ceil(float(start))
    if swapped:
        assert after > before - 1e-7
        assert len(set(np.asarray(found.rows)[np.asarray(found.rows) != KEPT])) == swapped
    else:
        assert eqx.tree_equal(found.policy, case.policy)
        assert float(found.n_swaps) == 1.0, "it must have tried down to one swap"


@many
@given(SEEDS)
def test_compress_keeps_the_bound_and_takes_visited_states(seed):
    case = random_case(seed)
    swapped = swap(case.policy, case.states, case.taken, jnp.asarray(2.0), jax.random.key(seed))
    found = compress_after(swapped.policy, case.policy, *case[1:])
    kl = kl_of(found.policy, case.policy, case.states)
    assert kl <= BOUND * (1 + 1e-4)
    assert is_visited(found.policy, case.states, found.rows, swapped.policy)
    rows = np.asarray(found.rows)
    deleted = rows != KEPT
    np.testing.assert_array_equal(deleted, rows != KEPT)
    if deleted.any():
        assert kl <= 0.66 * BOUND * (1 + 1e-4)
        best = np.argsort(-case.advantages, kind="stable")[: deleted.sum()]
        assert set(rows[deleted]) == set(best)
        np.testing.assert_array_equal(found.policy.actions[deleted], case.taken[rows[deleted]])


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_seeding_does_not_change_the_policy(seed):
    case = random_case(seed)
    start = eqx.tree_at(
        lambda p: (p.weights, p.actions),
        case.policy,
        (jnp.zeros(5).at[0].set(1.0), jnp.zeros((5, 2))),
    )
    found = jax.jit(seed_prototypes)(start, *case[1:])
    assert kl_of(found.policy, start, case.states) == 0.0
    assert is_visited(found.policy, case.states, found.rows, start)
    rows = np.asarray(found.rows)
    assert rows[0] == 0
    np.testing.assert_array_equal(rows[1:], np.argsort(-case.advantages, kind="stable")[:4])
    np.testing.assert_array_equal(found.policy.actions[1:], case.taken[rows[1:]])


def test_one_expert_can_be_seeded_and_is_never_swapped():
    case = random_case(2, n_experts=1)
    found = jax.jit(seed_prototypes)(case.policy, *case[1:])
    np.testing.assert_array_equal(found.rows, [0])
    kept = swap(case.policy, case.states, case.taken, jnp.asarray(1.0), jax.random.key(0))
    np.testing.assert_array_equal(kept.rows, [KEPT])


@pytest.mark.parametrize("n_experts", [1, 2, 3, 7])
def test_running_objective_is_the_objective(n_experts):
    activations = jax.random.uniform(jax.random.key(0), (40, n_experts))
    found = running_objective(list(activations.T), 3)
    assert float(found) == pytest.approx(float(swap_objective(activations)), abs=1e-6)


def test_objective_by_hand():
    # Two states, four experts. Top three of the first: 1, 0.5, 0.3; of the second: 0.6, 0.6, 0.
    activations = jnp.asarray([[0.5, 1.0, 0.2, 0.3], [0.6, 0.0, 0.6, 0.0]])
    by_hand = ((1 - 1.8 / 3) + (0.6 - 1.2 / 3)) / 2
    assert float(swap_objective(activations)) == pytest.approx(by_hand, abs=1e-6)


def test_draws_are_without_replacement_and_follow_their_odds():
    odds = -jnp.log1p(jnp.arange(6.0))
    probabilities = np.exp(odds) / np.exp(odds).sum()
    experts = np.asarray(draw_experts(jax.random.key(0), odds, 20_000))
    states = np.asarray(draw_states(jax.random.key(1), odds, 20_000, 3))
    for drawn in (experts, states):
        first = np.bincount(drawn[:, 0], minlength=6) / len(drawn)
        np.testing.assert_allclose(first, probabilities, atol=0.015)
        # P(second = 1 | first = 0) without replacement: p1 / (1 - p0).
        after_zero = drawn[drawn[:, 0] == 0, 1]
        assert (after_zero == 1).mean() == pytest.approx(
            probabilities[1] / (1 - probabilities[0]), abs=0.025
        )
    for row in np.concatenate([experts[:500, :3], states[:500]]):
        drawn = row[row != KEPT]
        assert len(set(drawn)) == len(drawn)


def test_the_search_measures_with_the_policys_metric():
    """Its kernel of the batch's states is the activation of prototypes standing there."""
    case = random_case(5)
    metric = jnp.asarray([0.2, 1.0, 3.0])
    policy = eqx.tree_at(lambda p: p.metric, case.policy, metric, is_leaf=lambda x: x is None)
    states = jnp.asarray(case.states)
    anchor = Anchor.of(policy, states, jnp.asarray(case.taken))
    kernel = Search.of(policy, states, anchor).kernel[:5]
    standing = eqx.tree_at(lambda p: p.prototypes, policy, states[:5])
    np.testing.assert_allclose(kernel, jax.vmap(standing.activation)(states).T, atol=2e-4)

"""Promises of the learning step: constraints, one compilation, vmap, what is left alone."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.core.batch import Batch
from moie.core.entropy import NO_FLOOR
from moie.core.selection import KEPT
from moie.core.trust_region import Anchor
from moie.learn import registry
from moie.learn.config import (
    CriticConfig,
    LearnerConfig,
    PolicyConfig,
    SelectionConfig,
    UpdateConfig,
)
from moie.learn.learner import key_of, learn, learn_jit, start
from moie.learn.update import Problem, minibatches, start_moments, update_actions, update_all
from tests.core.cases import entropy_of, kl_of, random_case

N_STATES, N_FEATURES, N_ACTIONS = 64, 3, 2
CONFIG = LearnerConfig(
    policy=PolicyConfig(experts=5),
    update=UpdateConfig(epochs=3, minibatch=16, action_rate=0.1, std_rate=0.05, weight_rate=0.1),
    selection=SelectionConfig(candidates=50),
    critic=CriticConfig(hidden=(8,), critic_epochs=2, critic_minibatch=16),
)
BOUND = CONFIG.trust_region.bound
SEEDS = st.integers(0, 2**32 - 1)


def random_batch(seed: int, policy=None) -> Batch:
    """States with structure, actions sampled around the policy's means, episodes of 16 steps."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(N_STATES + 1, N_FEATURES)).astype(np.float32) * 0.7
    means = 0.0 if policy is None else np.asarray(jax.vmap(policy.mean)(states[:-1]))
    std = 1.0 if policy is None else np.exp(np.asarray(policy.log_std))
    taken = means + rng.normal(size=(N_STATES, N_ACTIONS)) * std
    end = np.arange(1, N_STATES + 1) % 16 == 0
    return Batch(
        states[:-1],
        states[1:],
        taken.astype(np.float32),
        (-np.abs(taken).sum(1) + states[:-1, 0]).astype(np.float32),
        end & (np.arange(N_STATES) > 32),
        end,
    )


@pytest.fixture(scope="module")
def trained():
    """States, batches and reports of twelve iterations."""
    state = start(CONFIG, N_FEATURES, N_ACTIONS, key=jax.random.key(0))
    history = []
    for i in range(12):
        batch = random_batch(i, state.policy)
        after, report = learn_jit(CONFIG, state, batch)
        history.append((state, batch, after, report))
        state = after
    return history


def test_one_compilation_for_all_iterations():
    config = replace(CONFIG, selection=SelectionConfig(candidates=40))  # of this test alone
    before = learn_jit._cache_size()
    state = start(config, N_FEATURES, N_ACTIONS, key=jax.random.key(0))
    for i in range(4):
        state, _ = learn_jit(config, state, random_batch(i, state.policy))
    assert learn_jit._cache_size() == before + 1


learn_together = jax.jit(jax.vmap(lambda state, batch: learn(CONFIG, state, batch)))
"""The same for seeds side by side."""


def test_seeds_side_by_side_take_the_update_that_each_needs(trained):
    partial = [not report.facts["full_update"] for *_, report in trained]
    for pair in ((partial.index(True), 2), (7, 4), (0, partial.index(True, 4))):
        given = [trained[i][:2] for i in pair]
        after, reports = learn_together(*jax.tree.map(lambda *x: jnp.stack(x), *given))
        for place, i in enumerate(pair):
            assert bool(reports.facts["full_update"][place]) != partial[i]
            found = jax.tree.map(lambda x, at=place: x[at], (after.policy, after.own, reports))
            _, _, alone, report = trained[i]
            expected = (alone.policy, alone.own, report)
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert len({partial[i] for i in pair}) == 2


def test_a_network_policy_is_no_copy_of_a_critic():
    for name in ("ppo", "trpo"):
        network = replace(CONFIG.network, policy_hidden=CONFIG.critic.hidden)
        config = replace(CONFIG, algorithm=name, network=network)
        state = start(config, N_FEATURES, N_ACTIONS, key=jax.random.key(0))
        for twin in (0, 1):
            layers = zip(state.policy.network.matrices, state.critic.matrices, strict=True)
            mine, critics = next(layers)
            assert mine.shape == critics[twin].shape
            assert not np.isclose(mine, critics[twin]).any()


@pytest.mark.parametrize("algorithm", registry.names())
def test_a_floor_is_reported_only_where_there_is_one(algorithm):
    config = replace(CONFIG, algorithm=algorithm)
    state = start(config, N_FEATURES, N_ACTIONS, key=jax.random.key(0))
    low = eqx.tree_at(lambda p: p.log_std, state.policy, state.policy.log_std - 2.0)
    state = eqx.tree_at(lambda s: s.policy, state, low)
    _, report = learn_jit(config, state, random_batch(0, low))
    has_floor = float(report.entropy_floor) > NO_FLOOR
    assert has_floor == (algorithm in ("moie", "crisp") or algorithm.endswith("-entropy"))


@pytest.mark.parametrize("algorithm", registry.names())
def test_no_algorithm_changes_the_types_of_its_state(algorithm):
    config = replace(CONFIG, algorithm=algorithm)
    key = jax.random.key(0)
    before = jax.eval_shape(lambda: start(config, N_FEATURES, N_ACTIONS, key=key))
    batch = random_batch(0, start(CONFIG, N_FEATURES, N_ACTIONS, key=key).policy)
    after, _ = jax.eval_shape(lambda state, batch: learn(config, state, batch), before, batch)
    types = [[(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(s)] for s in (before, after)]
    assert types[0] == types[1]


def test_every_iteration_keeps_bound_and_floor(trained):
    for state, batch, after, report in trained:
        # In iteration 0 the anchor's mean is zero wherever its prototypes are.
        kl = kl_of(after.policy, state.policy, batch.states)
        assert kl <= BOUND * (1 + 1e-4)
        assert float(report.kl) == pytest.approx(kl, abs=1e-4 * BOUND)
        floor = float(report.entropy_floor)
        assert entropy_of(after.policy) >= min(floor, entropy_of(state.policy)) - 1e-5


def test_every_prototype_is_a_visited_state(trained):
    visited = None
    for _, batch, after, report in trained:
        rows = np.asarray(report.rows)
        visited = np.zeros((5, 3), np.float32) if visited is None else visited
        visited = np.where((rows != KEPT)[:, None], batch.states[rows], visited)
        np.testing.assert_array_equal(after.policy.prototypes, visited)
    assert (np.asarray(trained[0][3].rows) != KEPT).all(), "the first batch seeds every expert"


def test_full_updates_on_even_iterations_selection_on_odd(trained):
    for i, (state, _, after, report) in enumerate(trained):
        if i % 2 == 0:
            assert int(report.facts["full_update"]) == 1
            assert int(report.facts["swaps"]) == int(report.facts["deletions"]) == 0
        if int(report.facts["full_update"]) == 0:
            assert i % 2 == 1
            assert int(report.facts["swaps"]) + int(report.facts["deletions"]) > 0
            assert eqx.tree_equal(after.own.moments.weights, state.own.moments.weights)
            assert not eqx.tree_equal(after.own.moments.actions, state.own.moments.actions)
    assert any(int(report.facts["full_update"]) == 0 for *_, report in trained)


def test_shares_add_up(trained):
    for _, batch, after, report in trained:
        membership = np.asarray(jax.vmap(after.policy.membership)(batch.states))
        np.testing.assert_allclose(report.share, membership.mean(0), rtol=1e-4, atol=1e-6)
        assert float(report.lead.sum()) == pytest.approx(1.0, abs=1e-5)
        share = float(report.share.sum() + report.facts["default_share"])
        assert share == pytest.approx(1.0, abs=1e-5)


def test_the_same_key_gives_the_same_bits_another_does_not(trained):
    state, batch, after, _ = trained[-1]
    again, _ = learn_jit(CONFIG, state, batch)
    assert eqx.tree_equal(again, after)
    other = eqx.tree_at(lambda s: s.key, state, jax.random.key(9))
    assert not eqx.tree_equal(learn_jit(CONFIG, other, batch)[0].policy, after.policy)


def test_learning_step_can_be_vmapped_over_seeds():
    keys = jax.random.split(jax.random.key(1), 2)
    states = jax.vmap(lambda key: start(CONFIG, N_FEATURES, N_ACTIONS, key=key))(keys)
    batches = jax.tree.map(lambda *x: jnp.stack(x), random_batch(0), random_batch(1))
    for _ in range(2):
        states, _ = learn_together(states, batches)
    for i in range(2):
        alone = start(CONFIG, N_FEATURES, N_ACTIONS, key=keys[i])
        for _ in range(2):
            alone, _ = learn_jit(CONFIG, alone, random_batch(i))
        one = jax.tree.map(lambda x, i=i: x[i], states.policy)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(alone.policy), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


@jax.jit
def updates(policy, swapped, batch, advantages, key):
    """Both updates of a policy that was swapped (partial) or not (full)."""
    anchor = Anchor.of(policy, batch.states, batch.taken)
    moments = start_moments(CONFIG.update, policy)
    problem = Problem(batch.states, batch.taken, advantages, anchor, policy.entropy() - 0.1)
    partial, after = update_actions(CONFIG, swapped, moments, problem, key=key)
    full, _ = update_all(CONFIG, policy, moments, problem, key=key)
    return full.policy, partial.policy, moments, after


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_updates_keep_the_bound_and_the_floor(seed):
    """Rates far above the usual, so that most examples end on the bound."""
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    # A small move of one prototype, as a swap within the bound would make it.
    moved = case.policy.prototypes.at[0].set(case.states[rng.integers(64)])
    swapped = eqx.tree_at(lambda p: p.prototypes, case.policy, moved)
    if kl_of(swapped, case.policy, case.states) >= BOUND:
        swapped = case.policy
    batch = Batch(case.states, case.states, case.taken, case.advantages, *[np.zeros(64, bool)] * 2)
    full, partial, before, after = updates(
        case.policy, swapped, batch, case.advantages, jax.random.key(seed)
    )
    floor = entropy_of(case.policy) - 0.1
    for policy in (full, partial):
        assert kl_of(policy, case.policy, case.states) <= BOUND * (1 + 1e-4)
        assert entropy_of(policy) >= floor - 1e-5
        assert np.isfinite(np.asarray(policy.actions)).all()
    np.testing.assert_array_equal(partial.weights, case.policy.weights)
    for a, b in zip(*(jax.tree.leaves(m.weights) for m in (before, after)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_minibatches_go_through_everything_once_an_epoch():
    rows = np.asarray(minibatches(jax.random.key(0), 10, 3, 2))
    assert rows.shape == (6, 3)
    for epoch in (rows[:3], rows[3:]):
        assert len(set(epoch.ravel())) == 9  # one sits out
    assert minibatches(jax.random.key(0), 5, 64, 1).shape == (1, 5)


def test_every_seed_has_a_key_of_its_own() -> None:
    seeds = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**33, 2**63 - 1]
    keys = {tuple(jax.random.key_data(key_of(seed)).tolist()) for seed in seeds}
    assert len(keys) == len(seeds)
    np.testing.assert_array_equal(
        jax.random.key_data(key_of(5)), jax.random.key_data(jax.random.key(5))
    )

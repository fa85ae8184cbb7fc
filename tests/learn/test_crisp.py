"""Promises of crisp: nothing leaves its box in any update, swap or seeding, the trust region holds,
prototypes are visited states, and each part can be switched off by itself."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.core.entropy import NO_FLOOR, falling_log_std
from moie.core.policy import MixturePolicy
from moie.core.selection import KEPT
from moie.core.trust_region import Anchor
from moie.errors import InputError
from moie.learn import crisp
from moie.learn.algorithm import Sampled
from moie.learn.ascent import Parameters, back_along, blend, disagreement
from moie.learn.config import CrispConfig, LearnerConfig, PolicyConfig, SelectionConfig
from moie.learn.learner import learn_jit, start
from moie.learn.update import Problem
from tests.core.cases import Case, entropy_of, kl_of, means_of, random_case
from tests.learn.test_learner import CONFIG as SMALL
from tests.learn.test_learner import N_ACTIONS, N_FEATURES, random_batch

SEEDS = st.integers(0, 2**32 - 1)
# Rates far above the usual, so that most examples end on the bound and many at the box's walls.
CONFIG = LearnerConfig(
    algorithm="crisp",
    policy=PolicyConfig(experts=5),
    selection=SelectionConfig(candidates=50),
    crisp=CrispConfig(
        crisp_rate=0.1,
        crisp_std_rate=0.05,
        metric_rate=0.1,
        crisp_epochs=3,
        crisp_minibatch=16,
        price=1.0,
    ),
)
BOUND, LIMIT = CONFIG.trust_region.bound, CONFIG.crisp.metric_limit


def case_in_the_box(seed: int) -> Case:
    """A policy that crisp might have made: some of its parameters at the walls of the box."""
    case = random_case(seed)
    rng = np.random.default_rng([seed, 3])
    actions = np.clip(rng.normal(size=(5, 2)) * 10 ** rng.uniform(-1, 1), -1, 1)
    metric = np.clip(np.exp(rng.normal(size=3) * rng.uniform(0, 2)), 1 / LIMIT, LIMIT)
    largest = crisp.LARGEST_WEIGHT
    policy = MixturePolicy(
        case.policy.prototypes,
        jnp.clip(case.policy.weights, 1 / largest, largest),
        jnp.asarray(actions, jnp.float32),
        jnp.asarray(rng.uniform(-2, 0, 2), jnp.float32),
        case.policy.temperature,
        jnp.asarray(metric, jnp.float32),
    )
    noise = rng.normal(size=(64, 2)) * np.exp(np.asarray(policy.log_std, np.float64))
    taken = means_of(policy, case.states) + noise
    return case._replace(policy=policy, taken=taken.astype(np.float32))


@jax.jit
def updated(policy, states, taken, advantages, iteration, progress, key):
    own = crisp.Own(crisp.start_moments(policy), jnp.asarray(5.0))
    floor = crisp.entropy_floor(CONFIG, policy, progress=progress, falling=jnp.asarray(0.0))
    sampled = Sampled(states, taken, advantages, floor, iteration, progress)
    return crisp.update(CONFIG, policy, own, sampled, key=key), floor


@settings(max_examples=500, deadline=None)
@given(SEEDS, st.sampled_from([0, 1, 2, 7, 8]), st.floats(0, 1, width=32))
def test_no_update_leaves_the_box_or_the_trust_region(seed, iteration, progress):
    case = case_in_the_box(seed)
    before = case.policy
    if iteration == 0:  # seeding: the first policy has no actions yet
        before = eqx.tree_at(lambda p: p.actions, before, jnp.zeros_like(before.actions))
    found, floor = updated(
        before,
        *case[1:],
        jnp.int32(iteration),
        jnp.float32(progress),
        jax.random.key(seed),
    )
    after = found.policy
    assert (np.abs(np.asarray(after.actions)) <= 1).all()
    metric, weights = np.asarray(after.metric), np.asarray(after.weights)
    assert (np.abs(np.log(metric)) <= np.log(LIMIT) + 1e-5).all()
    assert (np.abs(np.log(weights)) <= np.log(crisp.LARGEST_WEIGHT) + 1e-5).all()
    bound = float(crisp.bound_at(CONFIG, jnp.float32(progress)))
    assert kl_of(after, before, case.states) <= bound * (1 + 1e-4)
    assert float(found.kl) == pytest.approx(kl_of(after, before, case.states), abs=1e-4 * BOUND)
    assert entropy_of(after) >= float(floor) - 1e-5
    rows = np.asarray(found.rows)
    visited = np.where((rows != KEPT)[:, None], case.states[rows], before.prototypes)
    np.testing.assert_array_equal(after.prototypes, visited)
    assert iteration > 0 or (rows != KEPT).all(), "the first batch seeds every expert"


def test_most_updates_move_and_some_swap():
    """The property above is not kept by standing still."""
    moved, swapped, walls = 0, 0, 0
    for seed in range(40):
        case = case_in_the_box(seed)
        key = jax.random.key(seed)
        found, _ = updated(case.policy, *case[1:], jnp.int32(1), jnp.float32(0.5), key)
        moved += float(found.kl) > 0.5 * BOUND
        swapped += int(found.facts["swaps"]) > 0
        walls += bool((np.abs(np.asarray(found.policy.actions)) == 1).any())
    assert moved >= 30
    assert swapped >= 5
    assert walls >= 5


def run_of(config: LearnerConfig, iterations: int = 8):
    state = start(config, N_FEATURES, N_ACTIONS, key=jax.random.key(0))
    found = []
    for i in range(iterations):
        batch = random_batch(i, state.policy)
        after, report = learn_jit(config, state, batch, np.float32(i / iterations))
        found.append((state, batch, after, report))
        state = after
    return found


def with_crisp(**changes) -> LearnerConfig:
    return replace(SMALL, algorithm="crisp", crisp=replace(CONFIG.crisp, **changes))


def test_every_iteration_keeps_what_is_promised():
    config = with_crisp()
    visited = np.zeros((5, N_FEATURES), np.float32)
    for state, batch, after, report in run_of(config):
        kl = kl_of(after.policy, state.policy, batch.states)
        assert kl <= BOUND * (1 + 1e-4)
        assert float(report.kl) == pytest.approx(kl, abs=1e-4 * BOUND)
        assert entropy_of(after.policy) >= float(report.entropy_floor) - 1e-5
        rows = np.asarray(report.rows)
        visited = np.where((rows != KEPT)[:, None], batch.states[rows], visited)
        np.testing.assert_array_equal(after.policy.prototypes, visited)
        assert (np.abs(np.asarray(after.policy.actions)) <= 1).all()


def test_one_compilation_serves_all_iterations():
    config = with_crisp(crisp_epochs=2)
    before = learn_jit._cache_size()
    run_of(config, 4)
    assert learn_jit._cache_size() == before + 1


def test_each_part_can_be_switched_off():
    final = run_of(with_crisp())[-1][2].policy
    free = crisp.box_of(with_crisp(in_range=False), final, final.log_std)
    assert (np.asarray(free.high.actions) == np.inf).all()
    plain = run_of(with_crisp(learn_metric=False))[-1][2].policy
    assert plain.metric is None
    assert not np.allclose(final.metric, 1)
    *_, report = run_of(with_crisp(std_by_budget=False))[-1]
    assert float(report.entropy_floor) == NO_FLOOR
    *_, report = run_of(with_crisp(price=0.0))[-1]
    assert float(report.facts["price"]) == 0


def test_the_floor_falls_geometrically_with_the_budget():
    """From 1 to 0.25 at half of the run: 0.5 at a quarter, 0.25 from the half on."""
    floors = [
        float(jnp.exp(falling_log_std(1.0, 0.25, 0.5, jnp.float32(p)))) for p in (0, 0.25, 0.5, 1)
    ]
    np.testing.assert_allclose(floors, [1.0, 0.5, 0.25, 0.25], rtol=1e-6)


def test_a_floor_above_the_policy_does_not_raise_it():
    """A run that is resumed with more iterations has done less of its budget than it had."""
    policy = case_in_the_box(1).policy
    floor = crisp.log_std_floor(CONFIG, policy, jnp.float32(0.0))
    np.testing.assert_array_equal(floor, policy.log_std)


def test_the_price_rises_between_its_two_shares_of_the_run():
    config = CrispConfig(price=2.0, price_from=0.25, price_to=0.75)
    prices = [float(crisp.price_of_blends(config, jnp.float32(p))) for p in (0, 0.25, 0.5, 0.75, 1)]
    np.testing.assert_allclose(prices, [0, 0, 1, 2, 2])


@pytest.mark.parametrize("seed", range(5))
def test_disagreement_is_the_variance_of_the_parts(seed):
    case = case_in_the_box(seed)
    membership, means = blend(case.policy, jnp.asarray(case.states))
    parts = np.concatenate([membership, 1 - np.sum(membership, axis=1, keepdims=True)], axis=1)
    actions = np.concatenate([case.policy.actions, np.zeros((1, 2))])
    squares = ((actions[None] - np.asarray(means)[:, None]) ** 2).sum(2)
    expected = (parts * squares).sum(1).mean() / 2
    found = disagreement(membership, case.policy.actions, means)
    assert float(found) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_parts_that_agree_cost_nothing():
    membership = jnp.asarray([[0.3, 0.7], [0.9, 0.1]])
    actions = jnp.asarray([[0.5, -1.0], [0.5, -1.0]])
    found = disagreement(membership, actions, membership @ actions)
    assert float(found) == pytest.approx(0, abs=1e-6)
    opposite = jnp.asarray([[1.0], [-1.0]])
    half = jnp.asarray([[0.5, 0.5]])
    assert float(disagreement(half, opposite, half @ opposite)) == pytest.approx(1.0)


def test_the_way_back_ends_on_the_bound_or_at_the_end():
    """One expert at the origin of weight one, two states there, sigma one: the mean is half of its
    action, so an action of a has a KL of a^2 / 8 from an action of zero."""
    policy = MixturePolicy(
        jnp.zeros((1, 3)), jnp.ones(1), jnp.zeros((1, 1)), jnp.zeros(1), 1.0, jnp.ones(3)
    )
    states, taken = jnp.zeros((2, 3)), jnp.zeros((2, 1))
    anchor = Anchor.of(policy, states, taken)
    problem = Problem(states, taken, jnp.zeros(2), anchor, jnp.float32(NO_FLOOR))
    box = crisp.box_of(CONFIG, policy, policy.log_std)
    here = Parameters.of(policy)
    far = here._replace(actions=jnp.ones((1, 1)))
    found, kl, share = back_along(policy, here, far, box, problem, 0.02)
    assert float(share) == pytest.approx(0.4, abs=1e-3)  # 0.4^2 / 8 = 0.02
    assert 0.0199 < float(kl) <= 0.02
    assert float(found.actions[0, 0]) == pytest.approx(0.4, abs=1e-3)
    _, kl, share = back_along(policy, here, far, box, problem, 0.2)
    assert float(share) == 1.0
    assert float(kl) == pytest.approx(0.125)


def test_the_bound_shrinks_towards_the_end():
    bounds = [float(crisp.bound_at(CONFIG, jnp.float32(p))) for p in (0, 0.7, 0.85, 0.99)]
    np.testing.assert_allclose(bounds, BOUND * np.array([1, 1, 0.5, 0.1]), rtol=1e-5)
    never = replace(CONFIG, crisp=replace(CONFIG.crisp, settle_from=1.0))
    assert float(crisp.bound_at(never, jnp.float32(0.99))) == pytest.approx(BOUND)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("metric_limit", 1.0),
        ("final_std", 0.0),
        ("price", -0.1),
        ("price_from", 0.9),
        ("price_to", 2.0),
        ("price", np.inf),
        ("swap_share", 0.0),
        ("settle_from", 1.5),
        ("crisp_rate", 0.0),
        ("crisp_clip", 1.0),
        ("crisp_epochs", 0),
    ],
)
def test_settings_are_checked(setting, value):
    with pytest.raises(InputError, match=rf"{setting}.* is .*, expected"):
        CrispConfig(**{setting: value})

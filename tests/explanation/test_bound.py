"""What is proved of a removal holds in every state that is tried, and is not far from the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.explanation.bound import largest_change, largest_membership
from moie.explanation.order import without
from moie.policy.base import Array
from moie.policy.mixture import Mixture
from tests import tiny


def some_policy(seed: int, n_experts: int) -> Mixture:
    """Weights from next to nothing to very large; actions in range and outside."""
    rng = np.random.default_rng(seed)
    return tiny.policy(
        experts=n_experts,
        prototypes=rng.normal(size=(n_experts, 3)) * rng.uniform(0.1, 3),
        weights=np.exp(rng.uniform(-5, 6, n_experts)) * (rng.random(n_experts) > 0.1),
        actions=rng.uniform(-1.5, 1.5, (n_experts, 2)),
        default_action=np.zeros(2),
        action_low=-np.ones(2),
        action_high=np.array([1.0, 2.0]),
        metric=rng.uniform(0.1, 3, 3),
        temperature=rng.uniform(0.2, 2),
    )


def states_of(policy: Mixture, seed: int) -> Array:
    """Far and near: around the prototypes, on the lines through them, and anywhere."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(policy.n_experts, size=(2, 2000))
    a, b = policy.prototypes[pairs[0]], policy.prototypes[pairs[1]]
    lines = a + rng.uniform(-3, 3, (2000, 1)) * (b - a)
    near = a + rng.normal(size=a.shape) * rng.choice([0.01, 0.1, 1.0, 5.0], size=(2000, 1))
    return np.concatenate([policy.prototypes, lines, near])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.integers(2, 7))
def test_no_state_exceeds_what_is_proved(seed: int, n_experts: int) -> None:
    policy = some_policy(seed, n_experts)
    states = states_of(policy, seed)
    memberships = policy.memberships(states).max(axis=0)
    span = policy.action_high - policy.action_low
    before = np.clip(policy.means(states), policy.action_low, policy.action_high)
    for k in range(n_experts):
        limit = largest_membership(policy, k)
        weight = policy.weights[k]
        assert memberships[k] <= limit * (1 + 1e-9)
        assert limit <= weight / (1 + weight) * (1 + 1e-9)
        for heir in (None, *(j for j in range(n_experts) if j != k)):
            smaller = without(policy, k, heir)
            after = np.clip(smaller.means(states), policy.action_low, policy.action_high)
            moved = (np.abs(after - before) / span).max()
            assert moved <= largest_change(policy, k, heir) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_limit_of_a_membership_is_reached_somewhere(seed: int) -> None:
    """Uphill from the prototype there is a state that comes within a hundredth of it."""
    policy, rng = some_policy(seed, 5), np.random.default_rng(seed)
    k = int(np.argmax(policy.weights))
    place, best = policy.prototypes[k], 0.0
    for round_ in range(400):
        around = place + rng.normal(size=(200, 3)) * policy.radii * 0.97**round_
        values = policy.memberships(np.vstack([place, around]))[:, k]
        place, best = np.vstack([place, around])[np.argmax(values)], float(values.max())
    assert best == pytest.approx(largest_membership(policy, k), rel=0.01)
    assert best <= largest_membership(policy, k) * (1 + 1e-9)


def test_an_expert_alone_has_the_limit_of_its_weight() -> None:
    policy = tiny.policy(experts=1, weights=np.array([3.0]))
    assert largest_membership(policy, 0) == pytest.approx(0.75)


def test_nothing_changes_without_a_weight_or_with_an_heir_at_the_same_place() -> None:
    policy = tiny.policy(experts=3)
    twin = tiny.policy(
        experts=2,
        prototypes=policy.prototypes[[0, 0]],
        actions=policy.actions[[0, 0]],
        weights=np.array([2.0, 3.0]),
    )
    assert largest_change(twin, 0, 1) == 0.0
    assert largest_change(twin, 0, None) > 0.1
    dead = tiny.policy(experts=3, weights=np.array([1.0, 0.0, 1.0]))
    assert largest_change(dead, 1, None) == 0.0


def test_an_action_of_one_value_does_not_change() -> None:
    one = np.array([0.5])
    policy = tiny.policy(experts=3, action_low=one, action_high=one)
    assert largest_change(policy, 0, None) == 0.0

"""How literally a mixture may be taken: numbers that can be checked with a pencil."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moie.errors import InputError
from moie.policy import truth
from moie.policy.mixture import Mixture
from tests import tiny

STATES = np.random.default_rng(1).normal(size=(40, 3))
FAR = 1e3


def two_experts(**changes: Any) -> Mixture:
    """Expert 0 at the origin says -1, expert 1 at (1, 0, 0) says +1; the default is 0.

    With temperature ln 2 the activation halves at distance one. At the origin the strengths are
    weights (3, 3) times (1, 1/2), so 3 and 1.5, with 1 for the default: memberships 6/11, 3/11 and
    2/11. Far away all is the default's.
    """
    given = {
        "experts": 2,
        "prototypes": np.array([[0.0, 0, 0], [1.0, 0, 0]]),
        "weights": np.array([3.0, 3.0]),
        "actions": np.array([[-1.0], [1.0]]),
        "default_action": np.zeros(1),
        "temperature": np.log(2),
        "action_low": np.array([-1.0]),
        "action_high": np.array([1.0]),
    }
    return tiny.policy(**(given | changes))


ORIGIN, AWAY = np.zeros((1, 3)), np.full((1, 3), FAR)


def test_parts_are_in_order_of_membership() -> None:
    shares, order, actions = truth.parts(two_experts(), np.concatenate([ORIGIN, AWAY]))
    np.testing.assert_allclose(shares, [[6 / 11, 3 / 11, 2 / 11], [1, 0, 0]])
    assert order.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert actions.tolist() == [[-1], [1], [0]]


@pytest.mark.parametrize(
    ("changes", "state", "expected"),
    [
        # -1, then (-6 + 3) / 9 = -1/3, then -3/11: 0.06 apart, within 5% of a range of 2.
        ({}, ORIGIN, 2),
        # Far away the default alone is the policy.
        ({}, AWAY, 1),
        # Both say the same: 1, 1, then 9/11, which is 0.18 away from them.
        ({"actions": np.array([[1.0], [1.0]])}, ORIGIN, 3),
        # Both say 3, which the environment gets as 1, and so does the blend 27/11.
        ({"actions": np.array([[3.0], [3.0]])}, ORIGIN, 1),
        # The default is as good as nothing: memberships 2/3 and 1/3 of -1 and +1 need both.
        ({"weights": np.array([3e6, 3e6])}, ORIGIN, 2),
    ],
    ids=["blend", "far away", "default needed", "clipped", "two"],
)
def test_attention_by_pencil(changes: dict, state: np.ndarray, expected: int) -> None:
    assert truth.needed_parts(two_experts(**changes), state).tolist() == [expected]


def test_attention_and_coverage_are_means_over_states() -> None:
    states = np.concatenate([ORIGIN, AWAY, AWAY, AWAY])
    assert truth.attention(two_experts(), states) == pytest.approx((2 + 1 + 1 + 1) / 4)
    assert truth.coverage(two_experts(), states) == pytest.approx(9 / 11 / 4)


def test_every_component_of_an_action_counts() -> None:
    both = {"default_action": np.zeros(2), "action_low": -np.ones(2), "action_high": np.ones(2)}
    same = {"actions": np.array([[3.0, 3.0], [3.0, 3.0]])}
    assert truth.needed_parts(two_experts(**both | same), ORIGIN).tolist() == [1]
    one_differs = {"actions": np.array([[3.0, -1.0], [3.0, 1.0]])}
    assert truth.needed_parts(two_experts(**both | one_differs), ORIGIN).tolist() == [2]


def test_in_range_and_the_largest_action() -> None:
    policy = two_experts(actions=np.array([[-1.0], [2.5]]))
    assert truth.in_range(policy) == 0.5
    assert truth.largest_action(policy) == 2.5
    # The range [0, 4] has its middle at 2: the actions are 1.5 and 0.25 halves away.
    bounds = {"action_low": np.array([0.0]), "action_high": np.array([4.0])}
    policy = replace(policy, **bounds)
    assert truth.in_range(policy) == 0.5
    assert truth.largest_action(policy) == 1.5
    single = two_experts(actions=np.array([[np.float32(0.1)], [-0.1]]), action_high=np.array([0.1]))
    assert truth.in_range(single) == 1.0  # too large by the last bit of single precision


def test_an_action_of_one_value_breaks_nothing() -> None:
    one = np.array([0.5])
    policy = two_experts(actions=np.full((2, 1), 0.5), action_low=one, action_high=one)
    assert truth.in_range(policy) == 1.0
    assert truth.largest_action(policy) == 0.0
    assert truth.needed_parts(policy, ORIGIN).tolist() == [1]


def test_led_does_what_the_leading_parts_say() -> None:
    policy = two_experts()
    assert truth.led(policy, 1).means(np.concatenate([ORIGIN, AWAY])).tolist() == [[-1], [0]]
    np.testing.assert_allclose(truth.led(policy, 2).mean_of(ORIGIN[0]), [-1 / 3])
    near_the_other = np.array([1.0, 0, 0])
    assert truth.led(policy, 1).mean_of(near_the_other).tolist() == [1.0]
    assert truth.led(policy, 1).predict(near_the_other, deterministic=True)[0].tolist() == [1.0]


def test_all_parts_together_are_the_policy() -> None:
    policy = tiny.policy(experts=5, metric=np.array([0.5, 1.0, 3.0]))
    for n_parts in (6, 60):
        led = truth.led(policy, n_parts)
        np.testing.assert_allclose(led.means(STATES), policy.means(STATES), atol=1e-12)
        np.testing.assert_array_equal(led.memberships(STATES), policy.memberships(STATES))


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_one_state_and_many_agree(n_parts: int) -> None:
    led = truth.led(tiny.policy(experts=4), n_parts)
    assert np.array_equal([led.mean_of(state) for state in STATES], led.means(STATES))


def test_many_states_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tiny.policy(experts=4)
    whole = truth.needed_parts(policy, STATES)
    monkeypatch.setattr(truth, "LARGEST", 35)
    assert truth.needed_parts(policy, STATES).tolist() == whole.tolist()


def test_led_by_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="n_parts is 0, expected at least 1"):
        truth.led(tiny.policy(), 0)


def test_led_travels_to_a_worker_without_origins() -> None:
    light = truth.led(tiny.policy(experts=4), 2).without_origins()
    assert isinstance(light, truth.Led)
    assert light.n_parts == 2


def test_default_only_has_no_expert() -> None:
    policy = tiny.policy(default_action=np.array([0.3]))
    alone = truth.default_only(policy)
    assert alone.means(STATES).tolist() == [[0.3]] * len(STATES)
    assert truth.coverage(alone, STATES) == 0.0
    assert truth.attention(alone, STATES) == 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.floats(0.0, 50.0), st.integers(0, 10_000))
def test_attention_lies_between_one_and_all_parts(
    n_experts: int, n_actions: int, weight: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    policy = tiny.policy(
        experts=n_experts,
        weights=rng.uniform(0, weight, n_experts),
        actions=rng.normal(0, 2, (n_experts, n_actions)),
        default_action=np.zeros(n_actions),
        action_low=-np.ones(n_actions),
        action_high=np.ones(n_actions),
        temperature=10 ** rng.uniform(-2, 2),
    )
    needed = truth.needed_parts(policy, STATES)
    assert ((needed >= 1) & (needed <= n_experts + 1)).all()
    # So many parts are enough, one part less is not.
    whole = np.clip(policy.means(STATES), -1, 1)
    for state, want, n_parts in zip(STATES, whole, needed, strict=True):
        assert np.abs(acted(policy, int(n_parts), state) - want).max() <= 0.1 + 1e-9
        if n_parts > 1:
            assert np.abs(acted(policy, int(n_parts) - 1, state) - want).max() > 0.1 - 1e-9


def acted(policy: Mixture, n_parts: int, state: np.ndarray) -> np.ndarray:
    return np.clip(truth.led(policy, n_parts).mean_of(state), -1, 1)

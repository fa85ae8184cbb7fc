"""The deployed policy: the learner's formulas in NumPy, the signature of Stable-Baselines3."""

from typing import Any

import jax
import numpy as np
import pytest

from moie.core.policy import MixturePolicy
from moie.errors import InputError
from moie.policy.base import Policy
from tests import tiny

STATES = np.random.default_rng(1).normal(size=(7, 3))


def learners(policy: Policy) -> MixturePolicy:
    """The same policy as the learner has it: scaled features, actions around the default."""
    return MixturePolicy(
        ((policy.prototypes - policy.feature_mean) / policy.feature_scale).astype(np.float32),
        policy.weights.astype(np.float32),
        (policy.actions - policy.default_action).astype(np.float32),
        policy.log_std.astype(np.float32),
        policy.temperature,
        None if policy.metric is None else policy.metric.astype(np.float32),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feature_mean": np.array([1.0, -2.0, 0.0]), "feature_scale": np.array([0.5, 2.0, 1.0])},
        {"default_action": np.array([0.3])},
        {"weights": np.zeros(3)},
        {"metric": np.array([0.5, 1.0, 3.0]), "feature_scale": np.array([0.5, 2.0, 1.0])},
    ],
    ids=["plain", "scaled", "default", "no weights", "metric"],
)
def test_it_equals_the_learners_policy(changes: dict) -> None:
    policy = tiny.policy(**changes)
    twin = learners(policy)
    scaled = ((STATES - policy.feature_mean) / policy.feature_scale).astype(np.float32)
    close = {"rtol": 1e-5, "atol": 1e-6}
    memberships = policy.memberships(STATES)
    np.testing.assert_allclose(memberships, jax.vmap(twin.membership)(scaled), **close)
    default = 1 - memberships.sum(axis=1)
    np.testing.assert_allclose(default, jax.vmap(twin.default_share)(scaled), **close)
    means = policy.default_action + jax.vmap(twin.mean)(scaled)
    np.testing.assert_allclose(policy.means(STATES), means, **close)
    one_by_one = [policy.mean_of(state) for state in STATES]
    np.testing.assert_allclose(one_by_one, policy.means(STATES), rtol=1e-12)
    n_metric = 0 if policy.metric is None else 3
    assert policy.n_parameters == twin.n_parameters == 3 * (3 + 1 + 1) + 1 + n_metric


def test_a_difference_of_one_radius_brings_the_activation_down_to_one_in_e() -> None:
    changes = {"feature_scale": np.array([0.5, 2.0, 1.0]), "metric": np.array([0.5, 1.0, 3.0])}
    policy = tiny.policy(experts=1, temperature=4.0, **changes)
    np.testing.assert_allclose(policy.radii, [0.5, 1.0, 1 / 6])  # scale / metric / sqrt(4)
    away = policy.prototypes[0] + np.diag(policy.radii)
    np.testing.assert_allclose(policy.activations(away), np.exp(-1.0))


# --- predict -------------------------------------------------------------------------------------


def test_predict_takes_one_state_or_a_batch() -> None:
    policy = tiny.policy()
    batch, nothing = policy.predict(STATES, deterministic=True)
    assert (batch.shape, batch.dtype, nothing) == ((7, 1), np.float32, None)
    one, _ = policy.predict(STATES[2].tolist(), deterministic=True)
    assert one.shape == (1,)
    assert np.array_equal(one, batch[2])
    assert np.allclose(batch, policy.means(STATES))
    assert policy.predict(STATES[:0], deterministic=True)[0].shape == (0, 1)


def test_predict_keeps_the_shapes_of_the_spaces() -> None:
    policy = tiny.policy("tests.probes:Grid-v0")
    assert policy.predict(STATES[0].reshape(3, 1))[0].shape == (1, 1)
    assert policy.predict(STATES.reshape(7, 3, 1))[0].shape == (7, 1, 1)


def test_sampled_actions_come_from_the_generator() -> None:
    policy = tiny.policy(action_low=np.array([-99.0]), action_high=np.array([99.0]))
    many = np.tile(STATES[0], (4000, 1))
    sampled, _ = policy.predict(many, rng=np.random.default_rng(3))
    assert np.array_equal(sampled, policy.predict(many, rng=np.random.default_rng(3))[0])
    assert not np.array_equal(sampled, policy.predict(many)[0])
    assert sampled.mean() == pytest.approx(policy.mean_of(STATES[0])[0], abs=0.05)
    assert sampled.std() == pytest.approx(np.exp(policy.log_std[0]), rel=0.1)


def test_sampled_actions_repeat_from_a_seed() -> None:
    policy = tiny.policy()

    def three() -> list[float]:
        return [float(policy.predict(STATES[0])[0][0]) for _ in range(3)]

    policy.seed(0)
    first, later = three(), three()
    assert len({*first, *later}) == 6
    policy.seed(0)
    assert three() == first
    policy.seed(1)
    assert three() != first
    policy.seed()
    assert three() != first
    for wrong in (-1, 0.5, True, "0"):
        with pytest.raises(InputError, match=f"seed is {wrong!r}, expected a whole number"):
            policy.seed(wrong)


def test_sampling_makes_one_generator_and_not_one_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    fresh = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda *seed: made.append(1) or fresh(*seed))
    policy = tiny.policy()
    made.clear()
    for state in STATES:
        policy.predict(state)
    assert len(made) == 1


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.1, 0.1), (-1 / 3, 0.7)])
def test_actions_are_within_bounds_to_the_last_bit(low: float, high: float) -> None:
    # 0.1 as a single is larger than 0.1 as a double.
    policy = tiny.policy(
        log_std=np.log([50.0]), action_low=np.array([low]), action_high=np.array([high])
    )
    sampled, _ = policy.predict(STATES, rng=np.random.default_rng(0))
    assert sampled.astype(np.float64).min() == pytest.approx(low)
    assert sampled.astype(np.float64).max() == pytest.approx(high)
    assert (sampled.astype(np.float64) >= low).all()
    assert (sampled.astype(np.float64) <= high).all()


@pytest.mark.parametrize("shape", [(), (4,), (7, 2), (2, 7, 3), (3, 1)])
def test_a_wrong_shape_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        tiny.policy().predict(np.zeros(shape))
    assert f"observation has shape {shape}, expected (3,) or a batch (n, 3)" in str(caught.value)


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        ([0.0, np.nan, 1.0], "observation 'feature 1' is nan, expected a finite number"),
        ([0.0, 1.0, -np.inf], "observation 'feature 2' is -inf, expected a finite number"),
        ([[0.0] * 3, [1e300, 0.0, 0.0]], "observation 'feature 0' is 1e+300 in row 1, expected"),
        (None, "observation is None, expected numbers of shape (3,)"),
        ("a state", "observation is 'a state', expected numbers"),
        (["1", "2", "3"], "observation is ['1', '2', '3'], expected numbers"),
        ([1.0, [2.0], 3.0], "observation is [1.0, [2.0], 3.0], expected numbers"),
        ({"a": 1}, "observation is {'a': 1}, expected numbers"),
        (np.zeros(3, complex), "expected numbers of shape (3,)"),
        ([1, 2, 10**400], "expected numbers of shape (3,)"),
    ],
)
def test_an_observation_that_is_none_is_refused(observation: Any, words: str) -> None:
    for act in (tiny.policy().predict, tiny.policy().explain):
        with pytest.raises(InputError) as caught:
            act(observation)
        assert words in str(caught.value)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.uint16, bool])
def test_numbers_of_any_kind_are_an_observation(kind: type) -> None:
    policy, state = tiny.policy(), np.array([1, 0, 1], kind)
    expected = policy.predict([1.0, 0.0, 1.0], deterministic=True)[0]
    assert np.array_equal(policy.predict(state, deterministic=True)[0], expected)
    assert np.isfinite(policy.predict(np.full((9, 3), 9e59), deterministic=True)[0]).all()


# --- explain -------------------------------------------------------------------------------------


def test_explain_orders_the_experts_and_sums_to_one() -> None:
    policy = tiny.policy("Pendulum-v1", experts=5)
    for state in STATES:
        why = policy.explain(state)
        assert sorted(why.experts) == [0, 1, 2, 3, 4]
        assert list(why.memberships) == sorted(why.memberships, reverse=True)
        assert sum(why.memberships) + why.default_share == pytest.approx(1)
        for k, membership in zip(why.experts, why.memberships, strict=True):
            assert membership == policy.memberships(state[None])[0, k]
        distances = np.linalg.norm(state - policy.prototypes, axis=1)
        assert why.nearest == np.argmin(distances)
        radii = np.sqrt(policy.temperature) * distances[list(why.experts)]
        assert np.allclose(why.distances, radii)
        for k, reach in zip(why.experts, why.reach, strict=True):
            is_reached = policy.weights[k] > 1
            assert (reach is not None) == is_reached
            assert reach is None or np.exp(reach**2) == pytest.approx(policy.weights[k])
        leads = why.memberships[0] >= why.default_share
        assert why.leader == (why.experts[0] if leads else None)
        assert np.array_equal(
            why.action.astype(np.float32), policy.predict(state, deterministic=True)[0]
        )


def test_explain_names_the_differences_the_largest_first() -> None:
    # Scaled differences are 0.1 / 1, 2 / 100 and 0.3 / 0.1.
    scale = np.array([1.0, 100.0, 0.1])
    policy = tiny.policy("Pendulum-v1", experts=1, feature_scale=scale)
    state = policy.prototypes[0] + [0.1, 2.0, -0.3]
    found = policy.explain(state).differences
    assert [name for name, _ in found] == ["turning speed", "cos of angle", "sin of angle"]
    assert [value for _, value in found] == pytest.approx([-0.3, 0.1, 2.0])


def test_an_explanation_reads_well() -> None:
    text = str(tiny.policy("Pendulum-v1").explain(STATES[0]))
    for words in (
        "action [",
        "expert ",
        "membership",
        "default",
        "radii away",
        "differs from its prototype by",
    ):
        assert words in text


def test_explain_takes_one_state() -> None:
    with pytest.raises(InputError, match=r"one state of shape \(3,\), not a batch of 7"):
        tiny.policy().explain(STATES)

"""The deployed policy: the learner's formulas in NumPy, the signature of Stable-Baselines3."""

import jax
import numpy as np
import pytest

from moie.core.policy import MixturePolicy
from moie.errors import InputError
from moie.rollout.policy import Policy
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
        assert np.allclose(why.distances, distances[list(why.experts)])
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
    for words in ("action [", "expert ", "membership", "default", "nearest prototype: expert"):
        assert words in text


def test_explain_takes_one_state() -> None:
    with pytest.raises(InputError, match=r"one state of shape \(3,\), not a batch of 7"):
        tiny.policy().explain(STATES)

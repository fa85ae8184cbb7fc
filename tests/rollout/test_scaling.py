"""Between the task's units and the learner's."""

import numpy as np
import pytest

from moie.rollout.episode import Steps
from moie.rollout.scaling import Scaling

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(200, 3)) * [1e-3, 1e3, 1.0] + [0.0, 5e3, -1.0]


def steps_of(states: np.ndarray, taken: np.ndarray) -> Steps:
    flags = np.arange(len(states)) % 50 == 49
    numbers = np.arange(len(states))
    return Steps(states, states + 1, taken, states[:, 0], flags, flags, numbers, numbers)


def test_the_identity_changes_nothing_but_the_precision() -> None:
    taken = RNG.normal(size=(200, 2)).astype(np.float32)
    steps = steps_of(STATES, taken)
    batch = Scaling.identity(3, 2).to_learner(steps)
    assert np.array_equal(batch.states, STATES.astype(np.float32))
    assert np.array_equal(batch.next_states, (STATES + 1).astype(np.float32))
    assert np.array_equal(batch.taken, taken)
    assert np.array_equal(batch.rewards, STATES[:, 0].astype(np.float32))
    assert np.array_equal(batch.terminated, steps.terminated)
    assert {array.dtype.name for array in batch} == {"float32", "bool"}


def test_standardised_features_have_mean_zero_and_deviation_one() -> None:
    scaling = Scaling.of_range(3, np.array([2.0]), np.array([10.0])).with_features(STATES)
    states = scaling.to_learner(steps_of(STATES, np.zeros((200, 1), np.float32))).states
    assert np.allclose(states.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(states.std(axis=0), 1, atol=1e-5)


def test_actions_are_scaled_by_their_range() -> None:
    scaling = Scaling.of_range(3, np.array([2.0, -1.0]), np.array([10.0, 1.0]))
    taken = np.array([[2.0, -1.0], [6.0, 0.0], [10.0, 1.0]], np.float32)
    found = scaling.to_learner(steps_of(STATES[:3], taken)).taken
    assert found.tolist() == [[-1, -1], [0, 0], [1, 1]]


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1, -1e6, 1e-8])
def test_a_constant_feature_is_left_alone(value: float) -> None:
    # The mean of many equal numbers differs from them in the last bits.
    states = STATES.copy()
    states[:, 1] = value
    scaling = Scaling.identity(3, 1).with_features(states)
    assert (scaling.feature_mean[1], scaling.feature_scale[1]) == (0.0, 1.0)
    assert np.allclose(scaling.feature_mean[[0, 2]], states[:, [0, 2]].mean(axis=0))
    assert np.allclose(scaling.feature_scale[[0, 2]], states[:, [0, 2]].std(axis=0))


def test_a_small_feature_is_not_taken_for_a_constant() -> None:
    scaling = Scaling.identity(3, 1).with_features(STATES * 1e-6)
    assert np.allclose(scaling.feature_scale, STATES.std(axis=0) * 1e-6)

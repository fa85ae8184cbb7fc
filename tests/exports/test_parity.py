"""Every target gives what `predict` gives, wherever one asks."""

from pathlib import Path

import numpy as np
import pytest

from moie.exports.description import describe
from moie.policy.base import Array, Policy
from tests import tiny
from tests.exports import targets
from tests.exports.states import FILES, linear, load, network, states

DOUBLE, SINGLE = 1e-9, 1e-5


def expected(policy: Policy, rows: Array) -> Array:
    """What `predict` gives before it is rounded to single precision."""
    low, high = policy.bounds
    return np.minimum(np.maximum(policy.means(rows), low), high)


def check(policy: Policy, rows: Array, place: Path, single: Array | None = None) -> None:
    """All targets, in all of these states; prints the largest error of each. `single`: the states
    for targets in single precision, if not the same."""
    predicted, _ = policy.predict(rows.reshape(-1, *policy.observation_shape), deterministic=True)
    predicted = predicted.reshape(len(rows), -1)
    meant = expected(policy, rows)
    for target in targets.DOUBLE:
        found = target(policy, rows, place)
        error = np.abs(found - meant).max()
        print(f"\n{policy.task}: {target.__name__} {error:.1e}", end="")
        assert error <= DOUBLE, target.__name__
        rounded = found.astype(np.float32)
        last_bit = np.spacing(np.abs(predicted))
        assert (np.abs(rounded - predicted) <= last_bit).all(), target.__name__
    span = policy.action_high - policy.action_low
    if single is not None:
        rows, meant = single, expected(policy, single)
    for target in targets.SINGLE:
        error = (np.abs(target(policy, rows, place) - meant) / span).max()
        print(f"\n{policy.task}: {target.__name__} {error:.1e} of the action range", end="")
        assert error <= SINGLE, target.__name__


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_target_does_what_a_published_policy_does(file: Path, tmp_path: Path) -> None:
    policy = load(file)
    check(policy, states(policy), tmp_path)


def test_every_target_does_what_a_network_does(tmp_path: Path) -> None:
    policy = network()
    check(policy, states(policy), tmp_path)


@pytest.mark.parametrize(
    "name", ["halfcheetah-trpo-s1", "hopper-trpo-s2", "bipedal-walker-trpo-s0"]
)
def test_every_target_does_what_a_trained_network_does(name: str, tmp_path: Path) -> None:
    """Of the published networks, some whose actions at a million change by more than `SINGLE` when
    the observation alone is rounded. No target that takes single precision could do better there:
    those get observations that it holds."""
    policy = load(tiny.ROOT / "docs" / "results" / "policies" / f"{name}.safetensors")
    rows = states(policy)
    rounded = rows.astype(np.float32).astype(np.float64)
    span = policy.action_high - policy.action_low
    assert (np.abs(expected(policy, rounded) - expected(policy, rows)) / span).max() > SINGLE
    check(policy, rows, tmp_path, single=rounded)


def test_a_network_keeps_its_digits_where_features_are_large(tmp_path: Path) -> None:
    """Entirely in single precision, some of these actions are off by a thousandth."""
    policy = network()
    rows = np.random.default_rng(0).uniform(-1e6, 1e6, (20_000, 15))
    rows = rows.astype(np.float32).astype(np.float64)
    error = np.abs(targets.c_float(policy, rows, tmp_path) - expected(policy, rows))
    assert error.max() <= SINGLE


@pytest.mark.parametrize("policy", [linear(), network(hidden=(5,), features=1, actions=1)])
def test_every_target_does_what_a_small_policy_does(policy: Policy, tmp_path: Path) -> None:
    check(policy, states(policy, 1000), tmp_path)


def test_observations_and_actions_may_have_any_shape(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    policy = tiny.policy(
        "pendulum",
        feature_names=tuple("abcdef"),
        prototypes=rng.normal(size=(3, 6)),
        feature_mean=np.zeros(6),
        feature_scale=np.ones(6),
        observation_shape=(2, 3),
        action_names=("x", "y"),
        action_shape=(2, 1),
        actions=rng.normal(size=(3, 2)),
        **{name: np.full(2, v) for name, v in (("default_action", 0.1), ("log_std", 0.0))},
        action_low=np.array([-0.1, 0.3]),
        action_high=np.array([0.2, 0.3]),
    )
    rows = states(policy, 1000)
    for target in (*targets.DOUBLE, *targets.SINGLE):
        seen = rows.astype(np.float32).astype(np.float64)
        np.testing.assert_allclose(
            target(policy, seen, tmp_path), expected(policy, seen), atol=1e-6
        )


SMALL = pytest.mark.parametrize("policy", [tiny.policy("pendulum"), linear(), network(features=3)])
SOURCES = (*targets.DOUBLE, targets.c_float)


def safe_action(policy: Policy) -> Array:
    """What source code commands if nobody chose another action."""
    return np.clip(policy.default_action, *policy.bounds)


@SMALL
def test_a_number_that_is_not_finite_gives_the_safe_action(policy: Policy, tmp_path: Path) -> None:
    bad = [np.where(np.eye(3) == 1, value, 0.0) for value in (np.nan, np.inf, -np.inf)]
    rows = np.concatenate([*bad, np.full((1, 3), 0.5)])
    for target in SOURCES:
        found = target(policy, rows, tmp_path)
        real = np.float32 if target is targets.c_float else np.float64
        commanded = safe_action(policy).astype(real).astype(np.float64)
        assert (found[:-1] == commanded).all(), target.__name__
        np.testing.assert_allclose(found[-1:], expected(policy, rows[-1:]), atol=1e-6)
    found = targets.onnx(policy, rows, tmp_path)
    assert np.isnan(found[:-1]).all()
    assert np.isfinite(found[-1]).all()


@SMALL
def test_what_predict_refuses_gives_the_safe_action_in_double_precision(
    policy: Policy, tmp_path: Path
) -> None:
    rows = np.array([[0.0, 1e60, 0.0], [0.0, -1.1e60, 0.0]])
    meant = expected(policy, rows[:1])
    for target in targets.DOUBLE:
        found = target(policy, rows, tmp_path)
        np.testing.assert_allclose(found[:1], meant, atol=DOUBLE)
        assert (found[1] == safe_action(policy)).all(), target.__name__
    largest = float(np.finfo(np.float32).max)
    rows = np.array([[0.0, largest, -largest]])
    for target in targets.SINGLE:
        np.testing.assert_allclose(
            target(policy, rows, tmp_path), expected(policy, rows), atol=1e-5
        )


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_model_takes_any_batch(n: int, tmp_path: Path) -> None:
    policy = tiny.policy("pendulum")
    rows = states(policy, 100)[:n].astype(np.float32).astype(np.float64)
    found = targets.onnx(policy, rows, tmp_path)
    np.testing.assert_allclose(found, expected(policy, rows), atol=1e-6)


@pytest.mark.parametrize("policy", [tiny.policy("pendulum"), linear(), network()])
def test_the_description_is_the_policy(policy: Policy) -> None:
    rows = states(policy)
    found = describe(policy).act(rows)
    assert np.abs(found - expected(policy, rows)).max() <= DOUBLE
    single = describe(policy).act(rows.astype(np.float32), np.float32)
    meant = expected(policy, rows.astype(np.float32).astype(np.float64))
    assert 0 < np.abs(single - meant).max() <= SINGLE

"""The cycle of a gait, on memberships whose cycle is known."""

import numpy as np
import pytest

from moie.policy.cycle import BINS, activity, autocorrelation, find_cycle
from tests.explanation import recompute


def gait(period: float, steps: int, start: float, noise: float = 0.02) -> np.ndarray:
    """Three experts in turn: phases 0.1, 0.4 and 0.8 of a cycle; a fourth is never there."""
    phase = (np.arange(steps) / period + start) % 1.0
    centres = np.array([0.1, 0.4, 0.8])
    apart = np.abs(phase[:, None] - centres)
    bumps = np.exp(-40 * np.minimum(apart, 1 - apart) ** 2) * [0.9, 0.5, 0.6]
    jitter = noise * np.random.default_rng(0).random((steps, 3))
    return np.concatenate([0.8 * bumps + jitter, np.zeros((steps, 1))], axis=1)


@pytest.mark.parametrize("period", [8.0, 17.3, 60.0])
def test_a_known_gait_is_found(period: float) -> None:
    cycle = find_cycle([gait(period, 600, 0.0), gait(period, 400, 0.3)])
    assert cycle is not None
    assert cycle["period"] == pytest.approx(period, rel=0.03)
    assert cycle["leader"] == 0
    assert cycle["regularity"] > 0.8
    assert cycle["n_cycles"] >= 0.9 * 1000 / period - 4
    phases = [activity(np.asarray(cycle["profile"])[:, k])[0] for k in range(3)]
    # Expert 0 begins the cycle; the others follow it 0.3 and 0.7 later.
    assert (phases[1] - phases[0]) % 1 == pytest.approx(0.3, abs=0.06)
    assert (phases[2] - phases[0]) % 1 == pytest.approx(0.7, abs=0.06)
    assert activity(np.asarray(cycle["profile"])[:, 3]) == (0.0, 0.0)


def test_an_early_fall_does_not_hide_the_gait() -> None:
    alone = find_cycle([gait(60, 600, 0.0), gait(60, 600, 0.3)])
    fallen = find_cycle([gait(60, 600, 0.0), gait(60, 600, 0.3), gait(60, 40, 0.0)])
    assert alone is not None
    assert fallen is not None
    assert fallen["period"] == pytest.approx(alone["period"], abs=1.0)


@pytest.mark.parametrize("period", [8.0, 17.3])
def test_the_cycle_is_what_its_definition_says(period: float) -> None:
    episodes = [gait(period, 300, 0.0), gait(period, 200, 0.3), gait(period, 20, 0.0)]
    cycle, expected = find_cycle(episodes), recompute.cycle(episodes)
    assert cycle is not None
    assert (cycle["n_cycles"], cycle["leader"]) == (expected["n_cycles"], expected["leader"])
    assert cycle["period"] == pytest.approx(expected["period"])
    assert cycle["regularity"] == pytest.approx(expected["regularity"])
    np.testing.assert_allclose(cycle["profile"], expected["profile"], atol=1e-9)
    for k in range(3):
        found = activity(np.asarray(cycle["profile"])[:, k])[0]
        assert found == pytest.approx(recompute.phase(expected["profile"][:, k]))


def test_noise_and_rest_have_no_cycle() -> None:
    rng = np.random.default_rng(3)
    assert find_cycle([rng.random((500, 3)) / 3]) is None
    assert find_cycle([np.full((500, 3), 0.2)]) is None
    assert find_cycle([np.full((5, 3), 0.2)]) is None
    assert find_cycle([np.linspace(0, 0.5, 300)[:, None]]) is None


def test_autocorrelation_is_its_definition() -> None:
    values = np.random.default_rng(0).random((50, 2))
    centred = values - values.mean(axis=0)
    lags = [np.sum(centred[: 50 - k] * centred[k:]) / (50 - k) for k in range(25)]
    np.testing.assert_allclose(autocorrelation([values]), np.array(lags) / lags[0])


def test_activity_is_where_the_profile_is() -> None:
    profile = np.zeros(BINS)
    profile[5] = 0.3
    phase, concentration = activity(profile)
    assert phase == pytest.approx(5.5 / BINS)
    assert concentration == pytest.approx(1.0)
    assert activity(np.ones(BINS))[1] == pytest.approx(0.0, abs=1e-12)

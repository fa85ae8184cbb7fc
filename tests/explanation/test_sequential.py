"""A comparison says what holds, as often as it promises, and stops as soon as it can."""

import numpy as np
import pytest
from numpy.typing import NDArray

from moie.explanation.sequential import CHANCE, MARGIN, SHOWN, capitals, sizes, verdict
from tests.explanation import recompute

LOSS, CASES, LONGEST = 0.05, 400, 1000
MOST_WRONG = CHANCE + 3 * (CHANCE * (1 - CHANCE) / CASES) ** 0.5
"""A share of wrong verdicts that chance alone exceeds in one of a thousand tests."""


def walker(rng: np.random.Generator, falls: float, stands: float = 1800.0) -> NDArray[np.float64]:
    """Returns that are either of an episode on its feet, or of a fall."""
    has_fallen = rng.random(LONGEST) < falls
    return np.where(has_fallen, rng.uniform(100, 500, LONGEST), rng.normal(stands, 30, LONGEST))


def verdicts(falls: float, falls_of_other: float, sign: float = 1.0) -> dict[str, float]:
    """Shares of the verdicts over many comparisons of two walkers; without that sign, of costs."""
    rng = np.random.default_rng(0)
    cost = 0.0 if sign > 0 else 2000.0
    found = []
    for _ in range(CASES):
        whole, other = walker(rng, falls), walker(rng, falls_of_other)
        found.append(verdict(other - cost, whole - cost, LOSS))
    return {name: found.count(name) / CASES for name in ("enough", "not enough", "undecided")}


@pytest.mark.parametrize("falls", [0.0, 0.15])
def test_what_loses_just_more_than_allowed_is_seldom_called_enough(falls: float) -> None:
    whole = (1 - falls) * 1800 + falls * 300
    more_falls = LOSS * whole / 1500
    assert verdicts(falls, falls + more_falls)["enough"] <= MOST_WRONG


def test_what_loses_just_less_than_allowed_is_seldom_called_not_enough() -> None:
    whole = 0.85 * 1800 + 0.15 * 300
    assert verdicts(0.15, 0.15 + LOSS * whole / 1500)["not enough"] <= MOST_WRONG


def test_costs_are_compared_as_returns_are() -> None:
    """Returns of -200 and -1700: a loss of 5% is one of the mean cost."""
    more_falls = LOSS * (0.9 * 200 + 0.1 * 1700) / 1500
    found = verdicts(0.1, 0.1 + more_falls, sign=-1.0)
    assert found["enough"] <= MOST_WRONG
    assert found["not enough"] <= MOST_WRONG
    assert verdicts(0.1, 0.3, sign=-1.0)["not enough"] > 0.9


def test_what_is_clear_is_found() -> None:
    assert verdicts(0.05, 0.05)["enough"] > 0.9
    assert verdicts(0.15, 0.05)["enough"] > 0.9
    assert verdicts(0.15, 0.4)["not enough"] > 0.9


def test_few_episodes_without_a_fall_prove_nothing() -> None:
    """Rare falls may be missing from them: all that they agree on is not enough."""
    rng = np.random.default_rng(0)
    returns = rng.normal(1800, 1, 50)
    assert verdict(returns, returns, LOSS) == "undecided"
    returns = rng.normal(1800, 1, 200)
    assert verdict(returns, returns, LOSS) == "enough"
    assert verdict(0.5 * returns, returns, LOSS) == "not enough"


def test_a_verdict_stays_when_more_episodes_follow() -> None:
    rng = np.random.default_rng(1)
    whole, other = walker(rng, 0.1), walker(rng, 0.4)
    after = [verdict(other[:n], whole[:n], LOSS) for n in range(2, LONGEST)]
    first = after.index("not enough")
    assert set(after[:first]) == {"undecided"}
    assert set(after[first:]) == {"not enough"}


def test_a_stake_depends_on_earlier_pairs_only() -> None:
    """The first pairs show the range and win and lose nothing; then the stakes are a half and a
    quarter of what a loss of the range so far would take."""
    whole = [10.0] * (SHOWN + 2)
    enough, short = capitals([10.0] * SHOWN + [0.0, 0.0], whole, 0.0)
    np.testing.assert_array_equal(enough[:SHOWN], 1.0)
    np.testing.assert_allclose(enough[SHOWN:], [(0.5 + 0.75) / 2, (0.25 + 0.5625) / 2])
    np.testing.assert_allclose(short[SHOWN:], [(1.5 + 1.25) / 2, (2.25 + 1.5625) / 2])
    more, _ = capitals([10.0] * SHOWN + [40.0, 40.0], whole, 0.0)
    np.testing.assert_allclose(more[SHOWN:], [(2.5 + 1.75) / 2, (2.5 * 1.375 + 1.75 * 1.1875) / 2])


def test_no_loss_at_all_means_a_loss_that_can_be_told_apart() -> None:
    returns = [100.0] * 1000
    assert verdict(returns, returns, 0.0) == verdict(returns, returns, MARGIN) == "enough"
    worse = [100.0 * (1 - 2 * MARGIN)] * 1000
    assert verdict(worse, returns, 0.0) == "not enough"


def test_returns_of_nothing_decide_nothing() -> None:
    assert verdict([0.0] * 100, [0.0] * 100, LOSS) == "undecided"


def test_sizes_grow_up_to_the_limit() -> None:
    assert sizes(10, 30) == [10, 13, 17, 22, 28, 30]
    assert sizes(10, 10) == [10]
    assert sizes(2, 6) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("seed", range(20))
def test_verdicts_agree_with_wagers_that_are_kept_pair_by_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole, other = (walker(rng, falls)[:200] for falls in rng.uniform(0, 0.6, 2))
    known = recompute.compared(list(other), list(whole), LOSS)
    assert verdict(other, whole, LOSS) == known["verdict"]

"""Whether a policy loses more than it may: a comparison that takes as many episodes as it needs.

Two wagers watch pairs of episodes on the same seeds, one after the other. The first grows when the
policy loses less than it may, the second when it loses more. If in truth the mean loss is not below
what is allowed, the first one's capital is expected not to grow, and the chance that it ever
reaches 1 / `CHANCE` is at most `CHANCE` (Ville's inequality); for the second it is the other way
round. So one may look after each pair and stop as soon as either is there. Nothing is assumed about
how returns are spread, which matters for walkers, whose episodes end in one of two ways: on their
feet, or after a fall. What is assumed is that no episode is off by more than twice the range of the
returns before it, zero among them: an episode may lose all that there is, and as much again. The
first pairs show this range, and nothing is staked on them.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Verdict = Literal["enough", "not enough", "undecided"]
CHANCE = 0.05
"""Largest chance of calling a policy good enough that is not, and of the opposite."""
STAKES = np.array([0.5, 0.25])
"""Stakes on a pair, per range of returns; half the capital is on each. Returns of walkers that fall
now and then, and a loss of a few hundredths, make the best stake one between the two; of returns
that hardly vary, 170 pairs decide about a loss of 5%."""
SHOWN = 20
"""First pairs, on which nothing is staked."""
GROWTH = 1.25
"""Factor by which the number of episodes grows until there is a verdict."""
MARGIN = 0.01
"""Smallest share of the return that is told apart from no loss."""


def capitals(
    returns: Sequence[float], whole: Sequence[float], loss: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Capital of the wager on "enough", and of that on "not enough", after each pair of episodes.
    The stake on a pair depends on earlier pairs only."""
    before, after = np.asarray(whole, np.float64), np.asarray(returns, np.float64)
    spare = loss * np.sign(before.mean()) * before - (before - after)
    high = np.maximum.accumulate(np.maximum(np.maximum(before, after), 0.0))
    low = np.minimum.accumulate(np.minimum(np.minimum(before, after), 0.0))
    reach = np.append(0.0, (high - low)[:-1])
    is_staked = (reach > 0) & (np.arange(len(reach)) >= SHOWN)
    share = np.divide(spare, reach, out=np.zeros_like(spare), where=is_staked)
    wagers = (1.0 + STAKES[:, None] * sign * share for sign in (1.0, -1.0))
    enough, short = (np.maximum(w, 0.0).cumprod(axis=1).mean(axis=0) for w in wagers)
    return enough, short


def verdict(returns: Sequence[float], whole: Sequence[float], loss: float) -> Verdict:
    """What pairs of episodes say about a loss of at most the share `loss` of the whole's return:
    the wager that reaches its goal first decides."""
    goal = 1.0 / CHANCE
    enough, short = (capital >= goal for capital in capitals(returns, whole, max(loss, MARGIN)))
    if not (enough.any() or short.any()):
        return "undecided"
    first = int(np.argmax(enough | short))
    return "enough" if enough[first] else "not enough"


def sizes(first: int, most: int) -> list[int]:
    """Numbers of episodes after which there may be a verdict, the limit being the last."""
    found = [min(first, most)]
    while found[-1] < most:
        found.append(min(most, int(np.ceil(GROWTH * found[-1]))))
    return found

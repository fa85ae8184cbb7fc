"""Branch and bound: the largest slopes over the visited box, proved.

Bounds over a box hold in all of it, so the largest of the bounds over boxes that fill the visited
box is a bound over that. The boxes whose bounds are the largest are halved, again and again, each
along the feature that its bounds depend on most.
"""

import time
from dataclasses import dataclass

import numpy as np

from moie.policy.base import Array
from moie.sheet.bounds import slopes_over
from moie.sheet.parts import Parts

WORK = 3e7
"""Limit of boxes times joints times features times pairs of parts."""
MOST_BOXES = 8_000
AT_ONCE = 4e6
"""The same for the boxes that are looked at together."""
ENOUGH = 1.03
"""A bound within this factor of a slope that was found is not made better."""
REST = 0.5
"""A feature's slopes below this part of the joint's largest slope count as if they were that large:
nobody looks at them."""


@dataclass(frozen=True, eq=False)
class Branched:
    """What branch and bound proved."""

    bounds: Array
    """(A, F): a number that |d mu_j / d u_i| exceeds in no state of the visited box."""
    closed: Array
    """(A, F): the same by the closed form, over the whole box at once."""
    n_boxes: int
    ended: str
    """Why it ended: "tight", "boxes" or "seconds"."""


def branch(
    parts: Parts, features: list[int], found: Array, limits: Array, seconds: float
) -> Branched:
    """Proved bounds for all joints and these features; `found` (A, F) are slopes that occur,
    `limits` (n + 1, n + 1) those of `caps`.

    The number of boxes has a limit that depends on the policy alone, so that the result does, too;
    `seconds` is for slow machines.
    """
    began, joints = time.perf_counter(), list(range(parts.actions.shape[1]))
    goal = ENOUGH * np.maximum(found, REST * found.max(axis=1, keepdims=True))
    goal = np.maximum(goal, 1e-12)
    each = len(joints) * len(features) * parts.actions.shape[0] ** 2
    most = int(min(MOST_BOXES, max(100, WORK / each)))
    batch = int(np.clip(AT_ONCE / each / 2, 1, 256))
    low, high = (np.repeat(end[None], most, axis=0) for end in parts.box)
    bounds, pull = np.zeros((most, *found.shape)), np.zeros((most, low.shape[1]))
    bounds[:1], pull[:1] = slopes_over(parts, low[:1], high[:1], features, joints, limits)
    closed, n, ended = bounds[0].copy(), 1, "boxes"
    while n + 1 < most:
        if time.perf_counter() - began > seconds:
            ended = "seconds"
            break
        excess = (bounds[:n] / goal).reshape(n, -1)
        if excess.max() <= 1.0:
            ended = "tight"
            break
        chosen = _worst(excess, min(batch, most - n))
        axis = np.argmax(pull[chosen], axis=1)
        new = np.arange(n, n + len(chosen))
        low[new], high[new] = low[chosen], high[chosen]
        middle = (low[chosen, axis] + high[chosen, axis]) / 2
        high[chosen, axis], low[new, axis] = middle, middle
        both = np.concatenate([chosen, new])
        own, pull[both] = slopes_over(parts, low[both], high[both], features, joints, limits)
        bounds[both] = np.minimum(own, np.tile(bounds[chosen], (2, 1, 1)))
        n += len(chosen)
    return Branched(bounds[:n].max(axis=0), closed, n, ended)


def _worst(excess: Array, most: int) -> Array:
    """Boxes to split, of rows (n, pairs): of each pair of joint and feature the box with the
    largest bound, as long as it is too large, and then those that are too large for any."""
    first = np.argmax(excess, axis=0)[excess.max(axis=0) > 1.0]
    largest = excess.max(axis=1)
    others = np.argsort(-largest, kind="stable")[:most]
    order = np.concatenate([first[np.argsort(-largest[first], kind="stable")], others])
    _, at = np.unique(order, return_index=True)
    chosen = order[np.sort(at)][:most]
    return chosen[largest[chosen] > 1.0]

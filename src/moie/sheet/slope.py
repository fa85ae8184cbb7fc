"""The slopes of all commands: proved bounds beside the largest that were found, and the gap.

Slopes are per radius, so that features can be compared; `facts` has them in the task's units, too.
They are those of the mean action; clipping a command to its range makes no slope larger.
"""

from dataclasses import dataclass

import numpy as np

from moie.explanation.printed import printed
from moie.policy.base import Array
from moie.sheet.bounds import slopes_over
from moie.sheet.branching import branch
from moie.sheet.caps import caps
from moie.sheet.parts import Parts
from moie.sheet.steepest import steepest


@dataclass(frozen=True, eq=False)
class Slopes:
    """Of all joints and features, per radius."""

    matter: tuple[int, ...]
    """The features that matter, the one that matters most first, as `moie show` prints them."""
    closed: Array
    """(A, d): proved bounds of |d mu_j / d u_i| over the visited box by the closed form."""
    bounds: Array
    """(A, d): the same after branch and bound; it looks at what may be the largest, or matters."""
    found: Array
    """(A, d): the largest slope that a search found in the box."""
    n_boxes: int
    ended: str


def slopes(parts: Parts, seconds: float) -> Slopes:
    """The closed form for all, then branch and bound for the features that matter and for any other
    whose bound could be the largest of a joint."""
    everything = list(range(len(parts.radii)))
    joints = list(range(parts.actions.shape[1]))
    low, high = parts.box
    limits = caps(parts)
    closed = slopes_over(parts, low[None], high[None], everything, joints, limits)[0][0]
    found = steepest(parts, everything)
    matter = printed(parts.policy).features
    largest = (closed > found.max(axis=1, keepdims=True)).any(axis=0)
    chosen = sorted({*matter, *np.flatnonzero(largest).tolist()})
    if not chosen:  # nothing makes a slope
        return Slopes(matter, closed, closed, found, 1, "tight")
    bounds = closed.copy()
    made = branch(parts, chosen, found[:, chosen], limits, seconds)
    bounds[:, chosen] = made.bounds
    return Slopes(matter, closed, bounds, found, made.n_boxes, made.ended)

"""Test vectors: observations, and the actions that an export has to give for them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moie.errors import InputError
from moie.exports.description import SINGLE, Description, Experts, Layers, Real
from moie.exports.guard import OK, Guard
from moie.policy.base import Array

SOME = 8
MOST_CENTRES = 16
FAR = 1e6
MOST_RANGE = 1e4
"""An action range counts as at most so many times the largest action: of an action space that is as
good as unbounded, every error would be a small share."""
LEAST_RANGE = 1e-30
"""Below, actions are as good as zero: single precision has no digits for their errors."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Observations that single precision holds exactly, so that every target sees the same."""

    observations: Array
    statuses: NDArray[np.int64]
    """(N,): what is said of each: `guard.OK`, or why it gets the safe action."""
    actions: Array
    range: Array
    """(A,): what errors are compared with: the action range, or less where hardly any of it is
    used; one for an action that has one value only."""
    tolerance: float
    """The largest error of an action, as a share of the action range."""


def vectors_of(description: Description, guard: Guard, real: Real, tolerance: float) -> Vectors:
    """The vectors of an export that computes in this precision; InputError if that is too coarse
    for the policy, or for the ranges of its features."""
    observations = _guarded(_observations(description), guard)
    statuses = guard.statuses(observations, real)
    if (statuses != OK).all():
        raise InputError(
            "the ranges of the features hold no number in single precision, expected wider ranges"
        )
    is_safe = (statuses != OK)[:, None]
    meant, found = (
        np.where(is_safe, guard.safe, description.act(observations, one))
        for one in (np.float64, real)
    )
    vectors = Vectors(observations, statuses, meant, _range(description, meant), tolerance)
    error = np.abs(found - meant) / vectors.range
    if not error.max() <= vectors.tolerance:  # NaN neither
        raise InputError(
            f"single precision changes the policy's actions by {error.max():.1g} of their range, "
            f"expected at most {vectors.tolerance:g}: export with --precision double"
        )
    return vectors


def _guarded(observations: Array, guard: Guard) -> Array:
    """The observations within the ranges of their features, and two more for each range: the first
    one, but with a number below it, and with one above it."""
    low, high = _rounded(guard.low, np.inf), _rounded(guard.high, -np.inf)
    rows = _single(np.clip(observations, low, high))
    outside = np.repeat(rows[:1], 2 * guard.ranged.sum(), axis=0)
    with np.errstate(over="ignore"):  # infinity becomes the largest number again
        below = np.nextafter(low, -np.inf, dtype=np.float32)
        above = np.nextafter(high, np.inf, dtype=np.float32)
    step = (guard.high - guard.low) / 4
    for i, feature in enumerate(np.flatnonzero(guard.ranged)):
        outside[2 * i, feature] = min(below[feature], guard.low[feature] - step[feature])
        outside[2 * i + 1, feature] = max(above[feature], guard.high[feature] + step[feature])
    return np.concatenate([rows, _single(outside)])


def _single(rows: Array) -> Array:
    """The same as numbers that single precision holds."""
    return np.clip(rows, -SINGLE.max, SINGLE.max).astype(np.float32).astype(np.float64)


def _rounded(limits: Array, way: float) -> Array:
    """Limits that single precision holds, rounded that way where they are not exact."""
    near = np.clip(limits, -SINGLE.max, SINGLE.max).astype(np.float32)
    off = near < limits if way > 0 else near > limits
    return np.where(off, np.nextafter(near, np.float32(way)), near).astype(np.float64)


def _range(description: Description, actions: Array) -> Array:
    span = description.high - description.low
    largest = MOST_RANGE * np.abs(actions).max(axis=0)
    wide = (span > largest) & (largest > LEAST_RANGE)
    return np.where(wide, largest, np.where(span > 0, span, 1.0))


def _observations(description: Description) -> Array:
    """Zeros, what the policy knows best, states between and around these, and some far away."""
    rng = np.random.default_rng(0)
    centres, spread = _known(description, rng)
    first, second = rng.integers(len(centres), size=(2, SOME))
    share = rng.uniform(size=(SOME, 1))
    between = share * centres[first] + (1 - share) * centres[second]
    around = centres[first] + spread * rng.normal(size=(SOME, len(spread)))
    far = centres[second] + FAR * rng.choice([-1.0, 0.0, 1.0], size=(SOME, len(spread)))
    return _single(np.concatenate([np.zeros((1, len(spread))), centres, between, around, far]))


def _known(description: Description, rng: np.random.Generator) -> tuple[Array, Array]:
    """Observations to start from, and how far from them the action changes."""
    if isinstance(description, Experts):
        return description.prototypes[:MOST_CENTRES], description.scale
    assert isinstance(description, Layers)
    mean, scale = description.mean, description.scale
    return mean + scale * rng.normal(size=(SOME, len(mean))), scale

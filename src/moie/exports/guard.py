"""The guard of an export: which observations it takes, and what it commands for all others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.errors import InputError, require, shortened
from moie.exports.description import Real
from moie.policy.base import Array, Policy
from moie.policy.observation import LARGEST

OK, NOT_FINITE, OUT_OF_RANGE = range(3)
"""What an export says of an observation. Of one that is both, it says `NOT_FINITE`."""


@dataclass(frozen=True, eq=False)
class Guard:
    """The action for observations that are not to be used, and the range of each feature."""

    safe: Array
    """(A,)"""
    low: Array
    high: Array
    """(d,): the least and the largest number that are used; `LARGEST` where there is no range."""

    @property
    def ranged(self) -> NDArray[np.bool_]:
        """(d,): which features have a range."""
        return (self.low > -LARGEST) | (self.high < LARGEST)

    def limits(self, real: Real) -> tuple[Array, Array]:
        """The ranges as numbers of this precision."""
        top = min(LARGEST, float(np.finfo(real).max))
        low, high = (np.clip(limit, -top, top).astype(real) for limit in (self.low, self.high))
        return low.astype(np.float64), high.astype(np.float64)

    def statuses(self, observations: Array, real: Real) -> NDArray[np.int64]:
        """(N,): what is said of observations as rows (N, d), in this precision."""
        with np.errstate(all="ignore"):
            rows = np.asarray(observations).astype(real).astype(np.float64)
        low, high = self.limits(real)
        is_inside = ((rows >= low) & (rows <= high)).all(axis=1)
        unusable = np.where(np.isfinite(rows).all(axis=1), OUT_OF_RANGE, NOT_FINITE)
        return np.where(is_inside, OK, unusable)

    def facts(self, policy: Policy) -> dict[str, Any]:
        """The same for the manifest."""
        limits = zip(policy.feature_names, self.low, self.high, self.ranged, strict=True)
        ranges = {name: [float(low), float(high)] for name, low, high, known in limits if known}
        return {"safe_action": self.safe.tolist(), "feature_ranges": ranges}


def guard_of(
    policy: Policy,
    safe_action: Sequence[float] | None = None,
    feature_ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Guard:
    """The guard that a person asked for; InputError if it does not fit the policy. Default: the
    policy's default action within the action range, and no ranges."""
    low, high = policy.bounds
    safe = np.clip(policy.default_action, low, high)
    if safe_action is not None:
        safe = _safe_action(policy, safe_action)
    limit = np.full(len(policy.feature_names), LARGEST)
    guard = Guard(safe, -limit, limit)
    given_ranges = {} if feature_ranges is None else feature_ranges
    expected = "names with two numbers each"
    require(isinstance(given_ranges, Mapping), "feature_ranges", given_ranges, expected)
    for name, given in given_ranges.items():
        at = _feature(policy, name)
        guard.low[at], guard.high[at] = _range(name, given)
    return guard


def _safe_action(policy: Policy, given: Sequence[float]) -> Array:
    try:
        values = np.asarray(given, np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InputError(f"safe_action is {shortened(given)}, expected numbers") from error
    names = policy.action_names
    if len(values) != len(names):
        expected = f"{len(names)}: {', '.join(names)}"
        raise InputError(f"safe_action has {len(values)} numbers, expected {expected}")
    bounds = policy.action_low, policy.action_high
    for name, value, low, high in zip(names, values, *bounds, strict=True):
        expected = f"a number from {low:g} to {high:g}, the action range"
        require(low <= value <= high, f"safe_action of '{name}'", float(value), expected)
    return np.clip(values, *policy.bounds)  # which are rounded inwards


def _feature(policy: Policy, name: str) -> int:
    names = policy.feature_names
    if names.count(name) > 1:
        raise InputError(f"feature_ranges names '{name}', which several of the features are called")
    require(name in names, "a name in feature_ranges", name, f"one of {', '.join(names)}")
    return names.index(name)


def _range(name: str, given: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    is_range = -LARGEST <= low < high <= LARGEST
    expected = f"two numbers within {LARGEST:g}, the lower one first"
    require(is_range, f"the range of '{name}'", given, expected)
    return low, high

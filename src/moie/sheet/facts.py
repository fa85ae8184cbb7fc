"""All figures of a data sheet, as JSON has them.

What is proved is rounded outwards, so that the rounded figure is proved, too: `low` down, `high`
and bounds up.
"""

import math
from typing import Any

import numpy as np

from moie.environments.catalogue import unit
from moie.policy.base import Array
from moie.policy.reading import span
from moie.sheet.commands import command_range, deletions
from moie.sheet.leading import regions
from moie.sheet.parts import Parts
from moie.sheet.slope import Slopes
from moie.sheet.tolerance import tolerance
from moie.sheet.unfolded import microseconds, unfolded

SHARE = 0.01
"""Part of a radius, or of a command's range, to which proved ranges are rounded, or better."""
DIGITS = 3
"""Significant digits of slopes and shares."""


def outward(value: float, step: float, up: bool) -> float:
    """The value on a decimal grid no coarser than the step, rounded up or down."""
    places = max(0, math.ceil(-math.log10(step)))
    grid = 10.0**places
    nearest = round(value, places)
    if abs(nearest - value) <= 1e-12 * max(1.0, abs(value)):
        return nearest + 0.0
    return round((math.ceil if up else math.floor)(value * grid) / grid, places) + 0.0


def upward(value: float) -> float:
    """The value rounded up to a few significant digits."""
    if not value > 0:
        return 0.0
    return outward(value, 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1), up=True)


def facts(parts: Parts, slope: Slopes, episodes: int) -> dict[str, Any]:
    """Everything but the returns; `episodes` is how many the visited states are from."""
    policy = parts.policy
    features = list(slope.matter)
    return {
        "policy": {
            "task": policy.task,
            "n_experts": policy.n_experts,
            "n_features": len(policy.feature_names),
            "action_names": list(policy.action_names),
            "by": str(policy.trained.get("algorithm", "moie")),
        },
        "states": {"n": len(parts.states), "episodes": episodes},
        "features": [_feature(parts, i, i in features) for i in _order(parts, features)],
        "commands": _commands(parts),
        "leading": _leading(parts, _order(parts, features)),
        "tolerance": _tolerance(parts),
        "slope": _slope(parts, slope),
        "deletion": _deletion(parts),
        "size": _size(parts),
    }


def _order(parts: Parts, features: list[int]) -> list[int]:
    """Features that matter first."""
    return [*features, *(i for i in range(len(parts.radii)) if i not in features)]


def _feature(parts: Parts, i: int, matters: bool) -> dict[str, Any]:
    policy, values = parts.policy, parts.states[:, i]
    name = policy.feature_names[i]
    return {
        "name": name,
        "unit": unit(policy.task, name),
        "radius": float(policy.radii[i]),
        "matters": matters,
        "low": float(values.min()),
        "high": float(values.max()),
    }


def _commands(parts: Parts) -> list[dict[str, Any]]:
    policy, (low, high) = parts.policy, command_range(parts)
    steps = SHARE * span(policy)
    return [
        {
            "joint": name,
            "low": outward(low[j], steps[j], up=False),
            "high": outward(high[j], steps[j], up=True),
            "range": [float(policy.action_low[j]), float(policy.action_high[j])],
        }
        for j, name in enumerate(policy.action_names)
    ]


def _leading(parts: Parts, order: list[int]) -> dict[str, Any]:
    policy, can = parts.policy, parts.reading.can_lead
    leaders = tolerance(parts, parts.visited).leaders
    found = []
    for one in regions(parts):
        at = int(np.flatnonzero(parts.experts == one.expert)[0])
        mine = parts.states[leaders == at]
        ranges = [] if one.is_empty else [_range(parts, one.low, one.high, mine, i) for i in order]
        found.append(
            {
                "expert": one.expert,
                "name": policy.label(one.expert),
                "nowhere": one.is_empty,
                "leads": len(mine) / len(parts.states),
                "ranges": ranges,
            }
        )
    never = [policy.label(k) for k in range(policy.n_experts) if not can[k]]
    return {"never": never, "experts": found}


def _range(parts: Parts, low: Array, high: Array, seen: Array, i: int) -> dict[str, Any]:
    radius, name = float(parts.radii[i]), parts.policy.feature_names[i]
    return {
        "feature": name,
        "unit": unit(parts.policy.task, name),
        "low": outward(low[i] * radius, SHARE * radius, up=False),
        "high": outward(high[i] * radius, SHARE * radius, up=True),
        "share_of_box": float((high[i] - low[i]) / _width(parts, i)),
        "seen": [float(seen[:, i].min()), float(seen[:, i].max())] if len(seen) else None,
    }


def _width(parts: Parts, i: int) -> float:
    """The visited box's, in radii; one where a feature never changes."""
    low, high = parts.box
    return float(high[i] - low[i]) or 1.0


def _tolerance(parts: Parts) -> dict[str, Any]:
    found = tolerance(parts, parts.visited)
    least = np.argmin(found.alone, axis=1)
    ends = np.isfinite(found.alone[np.arange(len(least)), least])
    counts = np.bincount(least[ends], minlength=len(parts.radii))
    rows = []
    for i in np.argsort(-counts, kind="stable").tolist():
        name, values = parts.policy.feature_names[i], found.alone[:, i] * parts.radii[i]
        alone = np.sort(values)
        rows.append(
            {
                "feature": name,
                "unit": unit(parts.policy.task, name),
                "first": float(counts[i] / len(least)),
                "median": _finite(alone[len(alone) // 2]),
                "q05": _finite(alone[len(alone) // 20]),
                "smallest": _finite(alone[0]),
            }
        )
    together = found.together
    return {
        "n_states": len(together),
        "median": _finite(np.median(together)),
        "q05": _finite(np.sort(together)[len(together) // 20]),
        "smallest": _finite(together.min()),
        "features": rows,
    }


def _finite(value: float) -> float | None:
    """None where no change at all is enough."""
    return float(value) if np.isfinite(value) else None


def _slope(parts: Parts, slope: Slopes) -> dict[str, Any]:
    policy = parts.policy
    joints = []
    for j, joint in enumerate(policy.action_names):
        rows = [_slope_row(parts, slope, j, i) for i in _order(parts, list(slope.matter))]
        found = float(slope.found[j].max())
        bound = upward(float(slope.bounds[j].max()))
        first = rows[int(np.argmax([row["bound_per_radius"] for row in rows]))]
        joints.append(
            {
                "joint": joint,
                "feature": first["feature"],
                "bound": bound,
                "found": found,
                "gap": bound / found if found > 0 else None,
                "features": rows,
            }
        )
    return {"n_boxes": slope.n_boxes, "ended": slope.ended, "joints": joints}


def _slope_row(parts: Parts, slope: Slopes, j: int, i: int) -> dict[str, Any]:
    radius, name = float(parts.radii[i]), parts.policy.feature_names[i]
    return {
        "feature": name,
        "unit": unit(parts.policy.task, name),
        "matters": i in slope.matter,
        "bound": upward(float(slope.bounds[j, i]) / radius),
        "bound_per_radius": upward(float(slope.bounds[j, i])),
        "closed_form_per_radius": upward(float(slope.closed[j, i])),
        "found": float(slope.found[j, i]) / radius,
        "found_per_radius": float(slope.found[j, i]),
    }


def _deletion(parts: Parts) -> list[dict[str, Any]]:
    rounded = []
    for one in deletions(parts):
        change = [upward(value) for value in one.pop("largest_change")]
        shares = {name: upward(one[name]) for name in ("share_by_weight", "largest_share")}
        wide = np.argmax(np.asarray(change) / span(parts.policy))
        first = {"most": change[wide], "joint": parts.policy.action_names[wide]}
        rounded.append(one | shares | first | {"largest_change": change})
    return rounded


def _size(parts: Parts) -> dict[str, Any]:
    source = unfolded(parts.policy)
    return {
        "parameters": parts.policy.n_parameters,
        "bytes": len(source.encode()),
        "microseconds": microseconds(source, parts.states),
        "returns": None,
    }

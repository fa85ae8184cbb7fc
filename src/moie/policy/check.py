"""What a policy file must hold before its policy may act: a damaged file is refused, not followed.

The limits are far beyond what a learner can write (it computes in single precision), and such that
no product of these numbers overflows: every action is finite, in every state within `LARGEST`.
"""

import itertools
import math
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from moie.policy.base import Origin, Policy
from moie.policy.baselines import Network
from moie.policy.mixture import Mixture
from moie.policy.observation import LARGEST

COMMON = (
    "default_action",
    "log_std",
    "feature_mean",
    "feature_scale",
    "action_low",
    "action_high",
)
EXPERTS = ("prototypes", "weights", "actions", "share", "lead", "distances")
FACTOR = 1e30
"""Positive factors lie between this and its inverse."""
DEEPEST = 20
"""Lists and dictionaries inside each other."""
_LIMITS: dict[str, tuple[float, float]] = {
    "feature_scale": (1 / FACTOR, FACTOR),
    "metric": (1 / FACTOR, FACTOR),
    "log_std": (-math.log(LARGEST), math.log(LARGEST)),
    "weights": (0.0, LARGEST),
    "distances": (0.0, LARGEST),
    "share": (0.0, 1.001),  # a mean in single precision may be above one
    "lead": (0.0, 1.001),
}


def text_of(header: dict, name: str) -> str:
    """A text that is not empty."""
    return _text(header[name], name)


def names_of(header: dict, name: str) -> tuple[str, ...]:
    """At least one text."""
    return tuple(_text(one, f"one of {name}") for one in _list_of(header, name))


def shape_of(header: dict, name: str) -> tuple[int, ...]:
    """At least one positive whole number."""
    return tuple(_whole(size, f"a size in {name}", 1) for size in _list_of(header, name))


def origin_of(note: Any, actions: np.ndarray, k: int) -> Origin:
    """Where prototype k was visited."""
    names = ("iteration", "episode", "step", "seed")
    if not isinstance(note, dict) or set(note) != set(names):
        raise ValueError(f"origin {k} is {_shown(note)}, expected {', '.join(names)}")
    return Origin(
        **{name: _whole(note[name], f"{name} of origin {k}") for name in names}, actions=actions
    )


def number_of(header: dict, name: str) -> float:
    """A positive factor."""
    value = header[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 / FACTOR <= value <= FACTOR:
        raise ValueError(
            f"{name} is {_shown(value)}, expected a positive number from {1 / FACTOR:g} "
            f"to {FACTOR:g}"
        )
    return float(value)


def _shown(value: Any) -> str:
    return reprlib.repr(value)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} is {_shown(value)}, expected a text")
    return value


def _list_of(header: dict, name: str) -> list:
    value = header[name]
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name} is {_shown(value)}, expected a list that is not empty")
    return value


def _whole(value: Any, what: str, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"{what} is {_shown(value)}, expected a whole number from {least}")
    return value


def _shapes(policy: Policy) -> dict[str, tuple[int, ...]]:
    """The shape that each array must have."""
    d, a = len(policy.feature_names), len(policy.action_names)
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(COMMON, (a,))
    expected |= {"feature_mean": (d,), "feature_scale": (d,)}
    if isinstance(policy, Mixture):
        k = policy.weights.size
        expected |= dict.fromkeys(EXPERTS, (k,)) | {"prototypes": (k, d), "actions": (k, a)}
        if policy.metric is not None:
            expected["metric"] = (d,)
    elif isinstance(policy, Network):
        sizes = (d, *(bias.size for bias in policy.biases[:-1]), a)
        for layer, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            expected |= {f"matrix_{layer}": (n_out, n_in), f"bias_{layer}": (n_out,)}
    else:
        expected["matrix"] = (a, d)
    return expected


def _check_array(name: str, array: np.ndarray, shape: tuple[int, ...], dtype: type) -> None:
    if array.dtype != dtype:
        raise ValueError(f"{name} is of type {array.dtype}, expected {np.dtype(dtype)}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    low, high = map(np.float64, _LIMITS.get(name, (-LARGEST, LARGEST)))
    if low > 0 and not (array > 0).all():
        raise ValueError(f"{name} holds numbers that are not positive")
    if not ((array >= low) & (array <= high)).all():
        bad = array[(array < low) | (array > high)][0]
        raise ValueError(f"{name} holds {bad}, expected numbers from {low:.4g} to {high:.4g}")


def _check_origins(policy: Mixture) -> None:
    if len(policy.origins) != policy.n_experts:
        raise ValueError(f"it has {len(policy.origins)} origins, expected {policy.n_experts}")
    for k, origin in enumerate(policy.origins):
        if origin is not None:
            shape = (origin.step, len(policy.action_names))
            _check_array(f"origin_{k}_actions", origin.actions, shape, np.float32)


def _check_trained(policy: Policy) -> None:
    """What is said about the training: it is printed, and written again."""
    trained = policy.trained
    if not isinstance(trained, dict):
        raise ValueError(f"trained is {_shown(trained)}, expected names and values")
    for name in ("steps", "iterations"):
        _whole(trained.get(name, 0), f"trained {name}")
    _text(trained.get("algorithm", "moie"), "trained algorithm")
    if trained.get("seed") is not None:
        _whole(trained["seed"], "trained seed")
    if _depth([trained]) > DEEPEST:
        raise ValueError(f"trained is nested more than {DEEPEST} deep")
    pruned = trained.get("pruned")
    if pruned is not None and isinstance(policy, Mixture):
        kept = pruned.get("kept") if isinstance(pruned, dict) else None
        if not isinstance(kept, list) or len(kept) != policy.n_experts:
            raise ValueError(f"pruned is {_shown(pruned)}, expected the experts that were kept")
        for k in kept:
            _whole(k, "an expert that was kept")


def _depth(level: list) -> int:
    """How deep values are nested; level by level, since a recursion may not come back."""
    depth = 0
    while level and depth <= DEEPEST:
        depth += 1
        inner: Iterable[Any] = (one for one in level if isinstance(one, dict | list))
        level = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    return depth


def check(policy: Policy, arrays: dict[str, np.ndarray]) -> None:
    """ValueError unless shapes, types and sizes of all its numbers let the policy act."""
    d, a = len(policy.feature_names), len(policy.action_names)
    if math.prod(policy.observation_shape) != d or math.prod(policy.action_shape) != a:
        raise ValueError("the shapes of observation and action do not fit their names")
    for name, shape in _shapes(policy).items():
        _check_array(name, arrays[name], shape, np.float64)
    if (policy.action_low > policy.action_high).any():
        bad = int(np.argmax(policy.action_low > policy.action_high))
        bounds = f"{policy.action_low[bad]} to {policy.action_high[bad]}"
        raise ValueError(f"action {bad} ranges from {bounds}, expected the lower bound first")
    if isinstance(policy, Mixture):
        _check_origins(policy)
    _check_trained(policy)

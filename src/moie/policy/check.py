"""Checks of a policy file before its policy may act: a damaged file is refused, not followed.

The limits are far beyond what a learner can write (it computes in single precision), and such that
no product of these numbers overflows: every action is finite, in every state within `LARGEST`.
"""

import math
from typing import Any

import numpy as np

from moie.errors import shortened
from moie.policy.base import Origin, Policy
from moie.policy.baselines import Linear, Network
from moie.policy.handwork import DEEPEST, check_edits, check_labels, depth
from moie.policy.mixture import Mixture
from moie.policy.observation import LARGEST
from moie.policy.visited import Visited

COMMON = (
    "default_action",
    "log_std",
    "feature_mean",
    "feature_scale",
    "action_low",
    "action_high",
)
EXPERTS = ("prototypes", "weights", "actions", "share", "lead", "distances")
ORIGIN = ("iteration", "episode", "step", "seed")
VISITED = ("episodes", "total", "seed", "period", "phases")
FACTOR = 1e30
"""Positive factors lie between this and its inverse."""
MOST_VISITED = 100_000
"""Visited states of a file; this version keeps far fewer."""
LARGEST_STATE = 1000
"""Numbers of a simulator's state."""
_LIMITS: dict[str, tuple[float, float]] = {
    "feature_scale": (1 / FACTOR, FACTOR),
    "metric": (1 / FACTOR, FACTOR),
    "temperature": (1 / FACTOR, FACTOR),
    "log_std": (-math.log(LARGEST), math.log(LARGEST)),
    "weights": (0.0, LARGEST),
    "distances": (0.0, LARGEST),
    "share": (0.0, 1.001),  # a mean in single precision may be above one
    "lead": (0.0, 1.001),
}


def limits(name: str) -> tuple[float, float]:
    """The smallest and the largest number that an array may hold."""
    return _LIMITS.get(name, (-LARGEST, LARGEST))


def text(value: Any, what: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} is {shortened(value)}, expected a text")
    return value


def names(header: dict, name: str) -> tuple[str, ...]:
    """A list of at least one text."""
    return tuple(text(one, f"one of {name}") for one in _list(header[name], name))


def shape(header: dict, name: str) -> tuple[int, ...]:
    """A list of at least one positive whole number."""
    return tuple(_whole(size, f"a size in {name}", 1) for size in _list(header[name], name))


def factor(value: Any, what: str) -> float:
    """A positive number within the limits of a factor."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 / FACTOR <= value <= FACTOR:
        expected = f"a positive number from {1 / FACTOR:g} to {FACTOR:g}"
        raise ValueError(f"{what} is {shortened(value)}, expected {expected}")
    return float(value)


def origin(note: Any, tensors: dict[str, np.ndarray], k: int) -> Origin | None:
    """The origin of prototype k, if it is known."""
    if note is None:
        return None
    if not isinstance(note, dict) or set(note) != set(ORIGIN):
        raise ValueError(f"origin {k} is {shortened(note)}, expected {', '.join(ORIGIN)}")
    numbers: dict[str, Any] = {name: _whole(note[name], f"{name} of origin {k}") for name in ORIGIN}
    if f"origin_{k}_qpos" not in tensors:
        return Origin(**numbers, actions=tensors[f"origin_{k}_actions"])
    none = np.zeros((0, len(tensors["action_low"])), np.float32)
    return Origin(
        **numbers,
        actions=none,
        qpos=tensors[f"origin_{k}_qpos"],
        qvel=tensors[f"origin_{k}_qvel"],
    )


def origin_layout(one: Origin, k: int) -> dict[str, np.ndarray]:
    """The arrays of the origin of prototype k."""
    if one.qpos is None or one.qvel is None:
        return {f"origin_{k}_actions": one.actions}
    return {f"origin_{k}_qpos": one.qpos, f"origin_{k}_qvel": one.qvel}


def visited(note: Any, tensors: dict[str, np.ndarray]) -> Visited | None:
    """The states that the policy visited, if they are known."""
    if note is None and "visited" not in tensors:
        return None
    if not isinstance(note, dict) or set(note) != set(VISITED) or "visited" not in tensors:
        raise ValueError(f"visited is {shortened(note)}, expected {', '.join(VISITED)} and states")
    phases = note["phases"]
    if not isinstance(phases, list):
        raise ValueError(f"phases is {shortened(phases)}, expected a list")
    return Visited(
        tensors["visited"],
        _whole(note["episodes"], "episodes", 1),
        _whole(note["total"], "states in all", 1),
        _whole(note["seed"], "the seed of visited states"),
        _number(note["period"], "period"),
        tuple(_number(phase, "a phase") for phase in phases),
    )


def _number(value: Any, what: str) -> float | None:
    """A finite number that is not negative, or none."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= LARGEST:
        raise ValueError(f"{what} is {shortened(value)}, expected a number, zero or more")
    return float(value)


def _check_visited(policy: Mixture) -> None:
    if policy.visited is None:
        return
    states, n = policy.visited.states, len(policy.visited.states)
    if not 1 <= n <= min(policy.visited.total, MOST_VISITED):
        most = min(policy.visited.total, MOST_VISITED)
        raise ValueError(f"visited has {n} states, expected 1 to {most}")
    _check_array("visited", states, (n, len(policy.feature_names)), np.float32)
    if len(policy.visited.phases) not in (0, policy.n_experts):
        count = len(policy.visited.phases)
        raise ValueError(f"phases has {count} numbers, expected {policy.n_experts} or none")


def _list(value: Any, what: str) -> list:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{what} is {shortened(value)}, expected a list that is not empty")
    return value


def _whole(value: Any, what: str, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"{what} is {shortened(value)}, expected a whole number from {least}")
    return value


def layout(policy: Policy) -> dict[str, tuple[np.ndarray, tuple[int, ...]]]:
    """Every array of a policy by its name in the file, and the shape that it must have."""
    d, a = len(policy.feature_names), len(policy.action_names)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(COMMON, (a,))
    shapes |= {"feature_mean": (d,), "feature_scale": (d,)}
    if isinstance(policy, Mixture):
        k = policy.weights.size
        shapes |= dict.fromkeys(EXPERTS, (k,)) | {"prototypes": (k, d), "actions": (k, a)}
        if policy.metric is not None:
            shapes["metric"] = (d,)
    elif isinstance(policy, Linear):
        shapes["matrix"] = (a, d)
    arrays = {name: (getattr(policy, name), shape) for name, shape in shapes.items()}
    if isinstance(policy, Network):
        sizes = (d, *(bias.size for bias in policy.biases[:-1]), a)
        for layer, (matrix, bias) in enumerate(zip(policy.matrices, policy.biases, strict=True)):
            n_in, n_out = sizes[layer : layer + 2]
            arrays[f"matrix_{layer}"] = matrix, (n_out, n_in)
            arrays[f"bias_{layer}"] = bias, (n_out,)
    return arrays


def _check_array(name: str, array: np.ndarray, shape: tuple[int, ...], dtype: type) -> None:
    if array.dtype != dtype:
        raise ValueError(f"{name} is of type {array.dtype}, expected {np.dtype(dtype)}")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    low, high = map(np.float64, limits(name))
    bad = array[~((array >= low) & (array <= high))]
    if bad.size:
        raise ValueError(f"{name} holds {bad[0]}, expected numbers from {low:.4g} to {high:.4g}")


def _check_origins(policy: Mixture) -> None:
    if len(policy.origins) != policy.n_experts:
        raise ValueError(f"it has {len(policy.origins)} origins, expected {policy.n_experts}")
    for k, one in enumerate(policy.origins):
        if one is None:
            continue
        for name, array in origin_layout(one, k).items():
            if name.endswith("actions"):
                _check_array(name, array, (one.step, len(policy.action_names)), np.float32)
            else:
                _check_array(name, array, (min(array.size, LARGEST_STATE),), np.float64)


def _check_trained(policy: Policy) -> None:
    """The notes about the training are printed, and written again."""
    trained = policy.trained
    if not isinstance(trained, dict):
        raise ValueError(f"trained is {shortened(trained)}, expected names and values")
    for name in ("steps", "iterations"):
        _whole(trained.get(name, 0), f"trained {name}")
    text(trained.get("algorithm", "moie"), "trained algorithm")
    if trained.get("seed") is not None:
        _whole(trained["seed"], "trained seed")
    if depth(trained) > DEEPEST:
        raise ValueError(f"trained is nested more than {DEEPEST} deep")
    pruned = trained.get("pruned")
    if pruned is not None and isinstance(policy, Mixture):
        kept = pruned.get("kept") if isinstance(pruned, dict) else None
        if not isinstance(kept, list) or len(kept) != policy.n_experts:
            raise ValueError(f"pruned is {shortened(pruned)}, expected the experts that were kept")
        for k in kept:
            if k is not None:  # one that was made by hand
                _whole(k, "an expert that was kept")


def check(policy: Policy) -> None:
    """ValueError unless shapes, types and sizes of all its numbers let the policy act."""
    d, a = len(policy.feature_names), len(policy.action_names)
    if math.prod(policy.observation_shape) != d or math.prod(policy.action_shape) != a:
        raise ValueError("the shapes of observation and action do not fit their names")
    for name, (array, shape) in layout(policy).items():
        _check_array(name, array, shape, np.float64)
    if (policy.action_low > policy.action_high).any():
        bad = int(np.argmax(policy.action_low > policy.action_high))
        bounds = f"{policy.action_low[bad]} to {policy.action_high[bad]}"
        raise ValueError(f"action {bad} ranges from {bounds}, expected the lower bound first")
    if isinstance(policy, Mixture):
        _check_origins(policy)
        check_labels(policy.labels, policy.n_experts)
        check_edits(policy.edits, policy.n_experts)
        _check_visited(policy)
    _check_trained(policy)

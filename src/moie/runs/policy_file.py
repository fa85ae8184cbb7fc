"""The policy file: one safetensors file, its JSON part in the header. Loading executes nothing."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from moie.errors import InputError
from moie.rollout.baselines import Linear, Network
from moie.rollout.policy import Mixture, Origin, Policy
from moie.runs.files import write_bytes

FORMAT = "moie-policy"
VERSION, VERSION_WITH_METRIC = 1, 2
"""Written where there is no metric, and where there is one: a moie that knows of none would act
otherwise."""
COMMON = (
    "default_action",
    "log_std",
    "feature_mean",
    "feature_scale",
    "action_low",
    "action_high",
)
EXPERTS = ("prototypes", "weights", "actions", "share", "lead", "distances")
KINDS = {"mixture": Mixture, "network": Network, "linear": Linear}


def _arrays(policy: Policy) -> dict[str, np.ndarray]:
    """Every array of a policy, by name."""
    found = {name: getattr(policy, name) for name in COMMON}
    if isinstance(policy, Mixture):
        found |= {name: getattr(policy, name) for name in EXPERTS}
        if policy.metric is not None:
            found["metric"] = policy.metric
    elif isinstance(policy, Network):
        for layer, (matrix, bias) in enumerate(zip(policy.matrices, policy.biases, strict=True)):
            found |= {f"matrix_{layer}": matrix, f"bias_{layer}": bias}
    elif isinstance(policy, Linear):
        found["matrix"] = policy.matrix
    return found


def _origins(policy: Mixture) -> tuple[list[dict | None], dict[str, np.ndarray]]:
    """For the header, and the actions that lead to each."""
    notes: list[dict | None] = []
    actions = {}
    for k, origin in enumerate(policy.origins):
        if origin is None:
            notes.append(None)
            continue
        actions[f"origin_{k}_actions"] = origin.actions
        names = ("iteration", "episode", "step", "seed")
        notes.append({name: getattr(origin, name) for name in names})
    return notes, actions


def to_bytes(policy: Policy) -> bytes:
    """The same policy gives the same bytes, always."""
    tensors = _arrays(policy)
    header = {
        "format": FORMAT,
        "version": VERSION_WITH_METRIC if "metric" in tensors else VERSION,
        "kind": next(name for name, kind in KINDS.items() if type(policy) is kind),
        "task": policy.task,
        "feature_names": policy.feature_names,
        "action_names": policy.action_names,
        "observation_shape": policy.observation_shape,
        "action_shape": policy.action_shape,
        "trained": policy.trained,
    }
    if isinstance(policy, Mixture):
        origins, actions = _origins(policy)
        header |= {"temperature": policy.temperature, "origins": origins}
        tensors |= actions
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    # One entry: the order of several would differ from file to file.
    return save_tensors(tensors, metadata={"moie": json.dumps(header, sort_keys=True)})


def _header(content: bytes) -> dict:
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > len(content) - 8:
        raise ValueError("it is truncated")
    header = json.loads(content[8 : 8 + size])
    found = json.loads(header.get("__metadata__", {}).get("moie", "{}"))
    if found.get("format") != FORMAT:
        raise ValueError("it was not written by moie")
    if found.get("version") not in (VERSION, VERSION_WITH_METRIC):
        known = f"{VERSION} and {VERSION_WITH_METRIC}"
        raise ValueError(f"its version is {found.get('version')}, this moie reads {known}")
    return found


def _parts(kind: str, header: dict, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """What only this kind of policy has."""
    if kind == "mixture":
        origins = tuple(
            None if origin is None else Origin(**origin, actions=tensors[f"origin_{k}_actions"])
            for k, origin in enumerate(header["origins"])
        )
        tensors = {"distances": np.zeros(len(origins)), **tensors}
        arrays: dict[str, Any] = {name: tensors[name] for name in EXPERTS}
        arrays["metric"] = tensors.get("metric")
        return arrays | {"temperature": float(header["temperature"]), "origins": origins}
    if kind == "network":
        layers = range(sum(name.startswith("matrix_") for name in tensors))
        return {
            "matrices": tuple(tensors[f"matrix_{layer}"] for layer in layers),
            "biases": tuple(tensors[f"bias_{layer}"] for layer in layers),
        }
    return {"matrix": tensors["matrix"]}


def from_bytes(content: bytes, path: Path) -> Policy:
    """The policy of a file's content; `path` is for the error message."""
    try:
        header = _header(content)
        tensors = load_tensors(content)
        kind = header.get("kind", "mixture")
        if kind not in KINDS:
            raise ValueError(f"its kind is {kind!r}, expected one of {', '.join(KINDS)}")
        policy = KINDS[kind](
            task=header["task"],
            feature_names=tuple(header["feature_names"]),
            action_names=tuple(header["action_names"]),
            observation_shape=tuple(header["observation_shape"]),
            action_shape=tuple(header["action_shape"]),
            trained=header["trained"],
            **{name: tensors[name] for name in COMMON},
            **_parts(kind, header, tensors),
        )
        _check(policy)
        return policy
    except KeyError as error:
        raise InputError(f"{path} is not a moie policy file: {error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise InputError(f"{path} is not a moie policy file: {error}") from error


def _shapes(policy: Policy) -> dict[str, tuple[int, ...]]:
    """The shape that each array must have."""
    d, a = len(policy.feature_names), len(policy.action_names)
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(COMMON, (a,))
    expected |= {"feature_mean": (d,), "feature_scale": (d,)}
    if isinstance(policy, Mixture):
        k = len(policy.weights)
        expected |= dict.fromkeys(EXPERTS, (k,)) | {"prototypes": (k, d), "actions": (k, a)}
        if policy.metric is not None:
            expected["metric"] = (d,)
    elif isinstance(policy, Network):
        sizes = (d, *(len(bias) for bias in policy.biases[:-1]), a)
        for layer, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            expected |= {f"matrix_{layer}": (n_out, n_in), f"bias_{layer}": (n_out,)}
    else:
        expected["matrix"] = (a, d)
    return expected


def _check(policy: Policy) -> None:
    """Shapes that belong together, finite numbers: a damaged file must not act."""
    d, a = len(policy.feature_names), len(policy.action_names)
    if math.prod(policy.observation_shape) != d or math.prod(policy.action_shape) != a:
        raise ValueError("the shapes of observation and action do not fit their names")
    if isinstance(policy, Mixture) and len(policy.origins) != len(policy.weights):
        raise ValueError(f"it has {len(policy.origins)} origins, expected {len(policy.weights)}")
    arrays = _arrays(policy)
    for name, shape in _shapes(policy).items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    for name in ("feature_scale", "metric"):
        if name in arrays and not (arrays[name] > 0).all():
            raise ValueError(f"{name} holds numbers that are not positive")
    if isinstance(policy, Mixture) and not 0 < policy.temperature < math.inf:
        raise ValueError(f"temperature is {policy.temperature}, expected a positive number")
    steps = policy.trained.get("steps", 0)
    if not isinstance(steps, int):
        raise ValueError(f"trained steps is {steps!r}, expected a whole number")


def save_file(path: Path, policy: Policy) -> None:
    """Write a policy's file as a whole."""
    write_bytes(path, to_bytes(policy))


def read(path: Path) -> bytes:
    """A file's content."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def load_file(path: Path) -> Policy:
    """A policy from its file."""
    return from_bytes(read(path), path)

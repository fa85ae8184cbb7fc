"""The policy file: one safetensors file, its JSON part in the header. Loading executes nothing."""

import json
import math
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from moie.errors import InputError
from moie.rollout.policy import Origin, Policy

FORMAT = "moie-policy"
VERSION = 1
ARRAYS = (
    "prototypes",
    "weights",
    "actions",
    "default_action",
    "log_std",
    "feature_mean",
    "feature_scale",
    "action_low",
    "action_high",
    "share",
    "lead",
)


def to_bytes(policy: Policy) -> bytes:
    """The same policy gives the same bytes, always."""
    tensors = {name: np.ascontiguousarray(getattr(policy, name)) for name in ARRAYS}
    origins: list[dict | None] = []
    for k, origin in enumerate(policy.origins):
        if origin is None:
            origins.append(None)
            continue
        tensors[f"origin_{k}_actions"] = np.ascontiguousarray(origin.actions)
        origins.append(
            {name: getattr(origin, name) for name in ("iteration", "episode", "step", "seed")}
        )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "task": policy.task,
        "temperature": policy.temperature,
        "feature_names": policy.feature_names,
        "action_names": policy.action_names,
        "observation_shape": policy.observation_shape,
        "action_shape": policy.action_shape,
        "origins": origins,
        "trained": policy.trained,
    }
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
    if found.get("version") != VERSION:
        raise ValueError(f"its version is {found.get('version')}, this moie reads {VERSION}")
    return found


def from_bytes(content: bytes, path: Path) -> Policy:
    """The policy of a file's content; `path` is for the error message."""
    try:
        header = _header(content)
        tensors = load_tensors(content)
        arrays = {name: tensors[name] for name in ARRAYS}
        origins = tuple(
            None if origin is None else Origin(**origin, actions=tensors[f"origin_{k}_actions"])
            for k, origin in enumerate(header["origins"])
        )
        policy = Policy(
            task=header["task"],
            temperature=float(header["temperature"]),
            feature_names=tuple(header["feature_names"]),
            action_names=tuple(header["action_names"]),
            observation_shape=tuple(header["observation_shape"]),
            action_shape=tuple(header["action_shape"]),
            origins=origins,
            trained=header["trained"],
            **arrays,
        )
        _check(policy)
        return policy
    except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise InputError(f"{path} is not a moie policy file: {error}") from error


def _check(policy: Policy) -> None:
    """Shapes that belong together, finite numbers: a damaged file must not act."""
    k, d, a = len(policy.weights), len(policy.feature_names), len(policy.action_names)
    if math.prod(policy.observation_shape) != d or math.prod(policy.action_shape) != a:
        raise ValueError("the shapes of observation and action do not fit their names")
    if len(policy.origins) != k:
        raise ValueError(f"it has {len(policy.origins)} origins, expected {k}")
    expected = {
        "prototypes": (k, d),
        "weights": (k,),
        "actions": (k, a),
        "feature_mean": (d,),
        "feature_scale": (d,),
        "share": (k,),
        "lead": (k,),
    }
    for name in ARRAYS:
        array = getattr(policy, name)
        shape = expected.get(name, (a,))
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def load_file(path: Path) -> Policy:
    """A policy from its file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return from_bytes(content, path)

"""The policy file: one safetensors file, its JSON part in the header. Loading executes nothing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from moie.errors import FileError
from moie.files import read_file, write_bytes
from moie.policy import check as policy_check
from moie.policy.base import Policy
from moie.policy.baselines import Linear, Network
from moie.policy.check import COMMON, EXPERTS
from moie.policy.mixture import Mixture

FORMAT = "moie-policy"
VERSION, VERSION_WITH_METRIC = 1, 2
"""Written where there is no metric, and where there is one: a moie that knows of none would act
otherwise."""
LARGEST_FILE, LARGEST_HEADER = 2**30, 2**23
"""Bytes; beyond these a file is not read."""
DIGEST = "sha256"
"""Of all but the names, which a person may change. Files of earlier versions have none."""
NAMES = ("task", "feature_names", "action_names")
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
    header[DIGEST] = _digest(header, tensors)
    # One entry: the order of several would differ from file to file.
    return save_tensors(tensors, metadata={"moie": json.dumps(header, sort_keys=True)})


def _digest(header: dict, tensors: dict[str, np.ndarray]) -> str:
    """Of the rest of the header, and of every tensor with its name, type and shape."""
    rest = {name: value for name, value in header.items() if name not in (DIGEST, *NAMES)}
    found = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        found.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _header_size(content: bytes, n_bytes: int) -> int:
    """From the first bytes of a file of that size."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > n_bytes - 8:
        raise ValueError("it is truncated")
    if not 2 <= size <= LARGEST_HEADER:
        raise ValueError(f"its header has {size} bytes, expected 2 to {LARGEST_HEADER}")
    return size


def _header(content: bytes) -> dict:
    header = json.loads(content[8 : 8 + _header_size(content, len(content))])
    found = json.loads(header.get("__metadata__", {}).get("moie", "{}"))
    if found.get("format") != FORMAT:
        raise ValueError("it was not written by moie")
    if found.get("version") not in (VERSION, VERSION_WITH_METRIC):
        known = f"{VERSION} and {VERSION_WITH_METRIC}"
        raise ValueError(f"its version is {found.get('version')}, this moie reads {known}")
    return found


def _tensors(content: bytes, header: dict) -> dict[str, np.ndarray]:
    try:
        tensors = load_tensors(content)
    except KeyError as error:
        raise ValueError(f"it has tensors of type {error}, which NumPy does not know") from error
    if DIGEST in header and header[DIGEST] != _digest(header, tensors):
        raise ValueError("its content does not match its digest: it was damaged or changed")
    return tensors


def _parts(kind: str, header: dict, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """What only this kind of policy has."""
    if kind == "mixture":
        origins = tuple(
            None
            if note is None
            else policy_check.origin_of(note, tensors[f"origin_{k}_actions"], k)
            for k, note in enumerate(header["origins"])
        )
        tensors = {"distances": np.zeros(len(origins)), **tensors}
        arrays: dict[str, Any] = {name: tensors[name] for name in EXPERTS}
        arrays["metric"] = tensors.get("metric")
        temperature = policy_check.number_of(header, "temperature")
        return arrays | {"temperature": temperature, "origins": origins}
    if kind == "network":
        layers = range(sum(name.startswith("matrix_") for name in tensors))
        return {
            "matrices": tuple(tensors[f"matrix_{layer}"] for layer in layers),
            "biases": tuple(tensors[f"bias_{layer}"] for layer in layers),
        }
    return {"matrix": tensors["matrix"]}


def _policy(content: bytes) -> Policy:
    header = _header(content)
    tensors = _tensors(content, header)
    kind = header.get("kind", "mixture")
    if kind not in KINDS:
        raise ValueError(f"its kind is {kind!r}, expected one of {', '.join(KINDS)}")
    policy = KINDS[kind](
        task=policy_check.text_of(header, "task"),
        feature_names=policy_check.names_of(header, "feature_names"),
        action_names=policy_check.names_of(header, "action_names"),
        observation_shape=policy_check.shape_of(header, "observation_shape"),
        action_shape=policy_check.shape_of(header, "action_shape"),
        trained=header["trained"],
        **{name: tensors[name] for name in COMMON},
        **_parts(kind, header, tensors),
    )
    policy_check.check(policy, _arrays(policy))
    return policy


def _not_ours(path: Path, reason: object) -> FileError:
    """In one line, and not a long one: the reason may quote the file."""
    text = " ".join(str(reason).split())
    text = text if len(text) <= 300 else f"{text[:300]}..."
    return FileError(f"{path} is not a moie policy file: {text}")


def from_bytes(content: bytes, path: Path) -> Policy:
    """The policy of a file's content; `path` is for the error message."""
    try:
        return _policy(content)
    except KeyError as error:
        raise _not_ours(path, f"{error} is missing") from error
    except RecursionError as error:
        raise _not_ours(path, "its header is nested too deeply") from error
    except MemoryError as error:
        raise _not_ours(path, "it is too large for this machine's memory") from error
    except (ValueError, TypeError, AttributeError, OverflowError, SafetensorError) as error:
        raise _not_ours(path, error) from error


def save_file(path: Path, policy: Policy) -> None:
    """Write a policy's file as a whole."""
    write_bytes(path, to_bytes(policy))


def read(path: Path) -> bytes:
    """A file's content; one that can not be a policy is refused before it is read as a whole."""

    def check(start: bytes, n_bytes: int) -> None:
        try:
            _header_size(start, n_bytes)
        except ValueError as error:
            raise _not_ours(path, error) from error

    return read_file(path, LARGEST_FILE, check)


def load_file(path: Path) -> Policy:
    """A policy from its file."""
    return from_bytes(read(path), path)

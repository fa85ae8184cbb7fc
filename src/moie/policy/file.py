"""The policy file: one safetensors file, its JSON part in the header. Loading executes nothing."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from moie.files import LARGEST, read_file, reading, write_bytes
from moie.policy import check
from moie.policy.base import Policy
from moie.policy.baselines import Linear, Network
from moie.policy.mixture import Mixture

FORMAT = "moie-policy"
VERSION, VERSION_WITH_METRIC = 1, 2
"""Versions without and with a metric: a moie that knows no metric has to refuse the latter."""
LARGEST_HEADER = 2**23
"""Bytes; a file with a longer header is not read."""
DIGEST = "sha256"
"""Name of the digest of all but `NAMES`, which a person may change. Files of earlier versions have
none."""
NAMES = ("task", "feature_names", "action_names")
HANDWORK = ("labels", "edits")
"""What a person gave to a mixture."""
KINDS = {"mixture": Mixture, "network": Network, "linear": Linear}


def to_bytes(policy: Policy) -> bytes:
    """The same policy gives the same bytes, always."""
    tensors = {name: array for name, (array, _) in check.layout(policy).items()}
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
        known = {k: origin for k, origin in enumerate(policy.origins) if origin is not None}
        notes = {k: {name: getattr(one, name) for name in check.ORIGIN} for k, one in known.items()}
        header["temperature"] = policy.temperature
        header["origins"] = [notes.get(k) for k in range(len(policy.origins))]
        for k, one in known.items():
            tensors |= check.origin_layout(one, k)
        # Only where a person gave them: other policies keep their bytes.
        header |= {name: getattr(policy, name) for name in HANDWORK if getattr(policy, name)}
        if policy.visited is not None:
            tensors["visited"] = policy.visited.states
            header["visited"] = {name: getattr(policy.visited, name) for name in check.VISITED}
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    header[DIGEST] = _digest(header, tensors)
    # One entry: the order of several would differ from file to file.
    return save_tensors(tensors, metadata={"moie": json.dumps(header, sort_keys=True)})


def _digest(header: dict, tensors: dict[str, np.ndarray]) -> str:
    """The digest of the rest of the header and of every tensor with its name, type and shape."""
    rest = {name: value for name, value in header.items() if name not in (DIGEST, *NAMES)}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _header_size(content: bytes, n_bytes: int) -> int:
    """The header's size, from the first bytes of a file of `n_bytes`."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > n_bytes - 8:
        raise ValueError("it is truncated")
    if not 2 <= size <= LARGEST_HEADER:
        raise ValueError(f"its header has {size} bytes, expected 2 to {LARGEST_HEADER}")
    return size


def _header(content: bytes) -> dict:
    of_file = json.loads(content[8 : 8 + _header_size(content, len(content))])
    header = json.loads(of_file.get("__metadata__", {}).get("moie", "{}"))
    if header.get("format") != FORMAT:
        raise ValueError("it was not written by moie")
    if header.get("version") not in (VERSION, VERSION_WITH_METRIC):
        known = f"{VERSION} and {VERSION_WITH_METRIC}"
        raise ValueError(f"its version is {header.get('version')}, this moie reads {known}")
    return header


def _tensors(content: bytes, header: dict) -> dict[str, np.ndarray]:
    try:
        tensors = load_tensors(content)
    except KeyError as error:
        raise ValueError(f"it has tensors of type {error}, which NumPy does not know") from error
    except SafetensorError as error:
        raise ValueError(error) from error
    if DIGEST in header and header[DIGEST] != _digest(header, tensors):
        raise ValueError("its content does not match its digest: it was damaged or changed")
    return tensors


def _parts(kind: str, header: dict, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields that only this kind of policy has."""
    if kind == "mixture":
        notes = enumerate(header["origins"])
        origins = tuple(check.origin(note, tensors, k) for k, note in notes)
        tensors = {"distances": np.zeros(len(origins)), **tensors}
        return {name: tensors[name] for name in check.EXPERTS} | {
            "metric": tensors.get("metric"),
            "temperature": check.factor(header["temperature"], "temperature"),
            "origins": origins,
            **{name: _tuple(header.get(name, [])) for name in HANDWORK},
            "visited": check.visited(header.get("visited"), tensors),
        }
    if kind == "network":
        layers = range(max(1, sum(name.startswith("matrix_") for name in tensors)))
        return {
            "matrices": tuple(tensors[f"matrix_{layer}"] for layer in layers),
            "biases": tuple(tensors[f"bias_{layer}"] for layer in layers),
        }
    return {"matrix": tensors["matrix"]}


def _tuple(value: Any) -> Any:
    """A list as a tuple; `check` refuses anything else."""
    return tuple(value) if isinstance(value, list) else value


def _policy(content: bytes) -> Policy:
    header = _header(content)
    tensors = _tensors(content, header)
    kind = header.get("kind", "mixture")
    if kind not in KINDS:
        raise ValueError(f"its kind is {kind!r}, expected one of {', '.join(KINDS)}")
    policy = KINDS[kind](
        task=check.text(header["task"], "task"),
        feature_names=check.names(header, "feature_names"),
        action_names=check.names(header, "action_names"),
        observation_shape=check.shape(header, "observation_shape"),
        action_shape=check.shape(header, "action_shape"),
        trained=header["trained"],
        **{name: tensors[name] for name in check.COMMON},
        **_parts(kind, header, tensors),
    )
    check.check(policy)
    return policy


def from_bytes(content: bytes, path: Path) -> Policy:
    """The policy of a file's content; `path` is for the error message."""
    with reading(f"{path} is not a moie policy file"):
        return _policy(content)


def save_file(path: Path, policy: Policy) -> None:
    """Write a policy's file as a whole."""
    write_bytes(path, to_bytes(policy))


def read(path: Path) -> bytes:
    """A file's content; one that can not be a policy is refused before it is read as a whole."""

    def check_start(start: bytes, n_bytes: int) -> None:
        with reading(f"{path} is not a moie policy file"):
            _header_size(start, n_bytes)

    return read_file(path, LARGEST, check_start)


def load_file(path: Path) -> Policy:
    """A policy from its file."""
    return from_bytes(read(path), path)

"""Checkpoints: a folder with safetensors and JSON that appears as a whole; the last two are kept.

checkpoints/000030/learner.safetensors   every array of the learner's state
checkpoints/000030/policy.safetensors    the policy file of that moment
checkpoints/000030/evaluate-000020.safetensors   a policy whose evaluation is under way
checkpoints/000030/checkpoint.json       counters, rows of the metrics that wait for an evaluation,
                                         the run's configuration, a digest of each file, and one of
                                         all of that
"""

import hashlib
import json
import math
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from moie.errors import FileError, InputError, shortened
from moie.files import as_json, parse_json, read_bytes, reading, write_folder
from moie.learn.config import require
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.runs.config import RunConfig, from_json, to_json
from moie.runs.disk.directory import present

KEPT_CHECKPOINTS = 2
FORMAT, VERSION = "moie-checkpoint", 2
"""Version 1, which says nothing of its version, has no digest of all and no configuration."""
LEARNER, POLICY = "learner.safetensors", "policy.safetensors"
NAMES = re.compile(r"(learner|policy|evaluate-[0-9]{6,18})\.safetensors")
"""Files that a checkpoint may have."""
Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Counters:
    """Where a run stands: iterations and environment steps done, seconds spent on them."""

    iteration: int = 0
    steps: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("iteration", "steps"):
            value = getattr(self, name)
            good = type(value) is int and 0 <= value < 2**63
            require(good, name, value, "a whole number, zero or more")
        good = type(self.seconds) in (int, float) and 0 <= self.seconds < math.inf
        require(good, "seconds", self.seconds, "a number, zero or more")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run goes on from."""

    learner: dict[str, np.ndarray]
    policy: Policy
    counters: Counters
    waiting: tuple[tuple[dict[str, Any], Policy | None], ...] = ()
    """Rows of the metrics that are not written yet, with the policy that is being evaluated."""
    config: RunConfig | None = None
    """Of the run; older checkpoints have none."""


def to_arrays(tree: object) -> dict[str, np.ndarray]:
    """Every leaf of a pytree under its path; random keys as their data."""
    arrays = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        arrays[jax.tree_util.keystr(path)] = np.asarray(
            jax.random.key_data(leaf) if is_key else leaf
        )
    return arrays


def from_arrays(template: Tree, arrays: dict[str, np.ndarray]) -> Tree:
    """A tree of the template's structure with the leaves of `to_arrays`."""

    def leaf(path, like):
        name = jax.tree_util.keystr(path)
        is_key = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
        expected = jax.random.key_data(like) if is_key else like
        found = arrays.get(name)
        if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
            shape = None if found is None else found.shape
            raise FileError(
                f"the checkpoint does not fit the run's configuration: {name} has shape {shape}, "
                f"expected {expected.shape}"
            )
        value = jnp.asarray(found)
        return jax.random.wrap_key_data(value) if is_key else value

    return jax.tree_util.tree_map_with_path(leaf, template)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write one, then remove all but the last two."""
    files = {
        LEARNER: save_tensors(checkpoint.learner),
        POLICY: policy_file.to_bytes(checkpoint.policy),
    }
    waiting = []
    for row, policy in checkpoint.waiting:
        name = None if policy is None else f"evaluate-{row['iteration']:06d}.safetensors"
        waiting.append({"row": row, "policy": name})
        if policy is not None:
            files[str(name)] = policy_file.to_bytes(policy)
    note = {
        "format": FORMAT,
        "version": VERSION,
        "counters": asdict(checkpoint.counters),
        "waiting": waiting,
        "config": None if checkpoint.config is None else to_json(checkpoint.config),
        "sha256": {name: _digest(content) for name, content in files.items()},
    }
    files["checkpoint.json"] = as_json(note | {"digest": _digest_of_note(note)})
    path = folder / f"{checkpoint.counters.iteration:06d}"
    if path.exists():  # damaged: a whole one would have been gone on from
        shutil.rmtree(path)
    write_folder(path, files)
    for old in present(folder)[:-KEPT_CHECKPOINTS]:
        shutil.rmtree(old, ignore_errors=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of_note(note: dict[str, Any]) -> str:
    """Of all but the digest itself, however it is laid out in the file."""
    rest = {name: value for name, value in note.items() if name != "digest"}
    return _digest(json.dumps(rest, sort_keys=True).encode())


def load(path: Path) -> Checkpoint:
    """Read one; FileError if it is damaged or not ours."""
    with reading(f"{path} is not a moie checkpoint"):
        note = _note(path)
        files = _files(path, note)
        waiting = tuple(
            (dict(one["row"]), _policy(files, one["policy"], path))
            for one in note.get("waiting", ())
        )
        config = note.get("config")
        policy = _policy(files, POLICY, path)
        assert policy is not None
        found = Checkpoint(
            _tensors(files[LEARNER]),
            policy,
            Counters(**note["counters"]),
            waiting,
            None if config is None else from_json(config),
        )
        _check(found, path)
        return found


def _note(path: Path) -> dict[str, Any]:
    note = parse_json(read_bytes(path / "checkpoint.json"))
    if not isinstance(note, dict) or note.get("format") != FORMAT:
        raise ValueError("it was not written by moie")
    version = note.get("version", 1)
    if version not in (1, VERSION):
        raise ValueError(f"its version is {shortened(version)}, this moie reads 1 and {VERSION}")
    if (version == VERSION or "digest" in note) and note.get("digest") != _digest_of_note(note):
        raise ValueError("checkpoint.json is truncated or was changed")
    return note


def _files(path: Path, note: dict[str, Any]) -> dict[str, bytes]:
    """The content of all files, each as its digest says."""
    files = {}
    for name, digest in dict(note["sha256"]).items():
        if not NAMES.fullmatch(name):
            raise ValueError(f"it names a file {shortened(name)}, which no checkpoint has")
        files[name] = read_bytes(path / name)
        if _digest(files[name]) != digest:
            raise ValueError(f"{name} is truncated or was changed")
    return files


def _policy(files: dict[str, bytes], name: str | None, path: Path) -> Policy | None:
    return None if name is None else policy_file.from_bytes(files[name], path / name)


def _tensors(content: bytes) -> dict[str, np.ndarray]:
    """Of the learner; numbers that are not finite are nothing to go on from."""
    try:
        found = load_tensors(content)
    except SafetensorError as error:
        raise ValueError(f"{LEARNER} cannot be read: {error}") from error
    for name, array in found.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the learner's {name} holds numbers that are not finite")
    return found


def _check(found: Checkpoint, path: Path) -> None:
    """Folder, counters, learner, policy and waiting rows are of the same moment."""
    done, steps = found.counters.iteration, found.counters.steps
    learned = found.learner[".iteration"]
    trained = found.policy.trained
    said: dict[str, tuple[Any, Any]] = {
        "the folder's name": (path.name, f"{done:06d}"),
        "the learner's iteration": (learned.tolist(), done),
        "the policy's iterations": (trained.get("iterations", done), done),
        "the policy's steps": (trained.get("steps", steps), steps),
    }
    rows = [row for row, _ in found.waiting]
    if rows:
        numbers = [row["iteration"] for row in rows]
        first = done - len(rows)
        said["the iterations of waiting rows"] = (numbers, list(range(first, done)))
        said["the last waiting row's steps"] = (rows[-1]["steps"], steps)
    for what, (value, expected) in said.items():
        if value != expected:
            raise ValueError(f"{what}: {shortened(value)}, expected {expected} as the counters say")


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest one that is whole, and what was wrong with any newer ones.

    FileError where there are checkpoints but none is whole.
    """
    wrong: list[str] = []
    for path in reversed(present(folder)):
        try:
            return load(path), wrong
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        raise FileError(
            f"no checkpoint in {folder} can be read: {'; '.join(wrong)}; bring them back from a "
            "copy, or start another run"
        )
    return None, wrong

"""Checkpoints: a folder with safetensors and JSON that appears as a whole; the last two are kept.

checkpoints/000030/learner.safetensors   every array of the learner's state
checkpoints/000030/policy.safetensors    the policy file of that moment
checkpoints/000030/evaluate-000020.safetensors   a policy whose evaluation is under way
checkpoints/000030/checkpoint.json       counters, rows of the metrics that wait for an evaluation,
                                         the run's configuration, digests of each file and of all
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
from moie.runs.disk.metrics import Row

KEPT_CHECKPOINTS = 2
FORMAT, VERSION = "moie-checkpoint", 2
"""Version 1 names no version, and has neither a digest of all nor a configuration."""
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
    """The state of a run after an iteration, from which it can go on."""

    learner: dict[str, np.ndarray]
    policy: Policy
    counters: Counters
    waiting: tuple[tuple[Row, Policy | None], ...] = ()
    """Rows of the metrics that are not written yet, with the policy that is being evaluated."""
    config: RunConfig | None = None
    """Configuration of the run; older checkpoints have none."""


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
        array = arrays.get(name)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            shape = None if array is None else array.shape
            raise FileError(
                f"the checkpoint does not fit the run's configuration: {name} has shape {shape}, "
                f"expected {expected.shape}"
            )
        value = jnp.asarray(array)
        return jax.random.wrap_key_data(value) if is_key else value

    return jax.tree_util.tree_map_with_path(leaf, template)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove all but the last two."""
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
    if path.exists():  # it is damaged, or the run would have gone on from it
        shutil.rmtree(path)
    write_folder(path, files)
    for old in present(folder)[:-KEPT_CHECKPOINTS]:
        shutil.rmtree(old, ignore_errors=True)


def forget_newer(folder: Path, iteration: int) -> None:
    """Remove checkpoints of later iterations: the run is about to learn them again."""
    for path in reversed(present(folder)):
        if int(path.name) > iteration:
            shutil.rmtree(path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of_note(note: dict[str, Any]) -> str:
    """Digest of all but the digest itself, whatever the layout of the file."""
    rest = {name: value for name, value in note.items() if name != "digest"}
    return _digest(json.dumps(rest, sort_keys=True).encode())


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; FileError if it is damaged or not ours."""
    with reading(f"{path} is not a moie checkpoint"):
        note = _note(path)
        files = _files(path, note)
        policies = {
            name: policy_file.from_bytes(content, path / name)
            for name, content in files.items()
            if name != LEARNER
        }
        waiting = (
            (dict(one["row"]), None if one["policy"] is None else policies[one["policy"]])
            for one in note.get("waiting", ())
        )
        config = note.get("config")
        checkpoint = Checkpoint(
            _tensors(files[LEARNER]),
            policies[POLICY],
            Counters(**note["counters"]),
            tuple(waiting),
            None if config is None else from_json(config),
        )
        _check(checkpoint, path)
        return checkpoint


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
    """The content of all files, checked against their digests."""
    files = {}
    for name, digest in dict(note["sha256"]).items():
        if not NAMES.fullmatch(name):
            raise ValueError(f"it names a file {shortened(name)}, which no checkpoint has")
        files[name] = read_bytes(path / name)
        if _digest(files[name]) != digest:
            raise ValueError(f"{name} is truncated or was changed")
    return files


def _tensors(content: bytes) -> dict[str, np.ndarray]:
    """Arrays of the learner; a run cannot go on from numbers that are not finite."""
    try:
        arrays = load_tensors(content)
    except SafetensorError as error:
        raise ValueError(f"{LEARNER} cannot be read: {error}") from error
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the learner's {name} holds numbers that are not finite")
    return arrays


def _check(checkpoint: Checkpoint, path: Path) -> None:
    """ValueError unless folder, counters, learner, policy and waiting rows belong together."""
    done, steps = checkpoint.counters.iteration, checkpoint.counters.steps
    arrays = checkpoint.learner
    learned = arrays.get(".learner.iteration", arrays.get(".iteration"))
    trained = checkpoint.policy.trained
    said: dict[str, tuple[Any, Any]] = {
        "the folder's name": (path.name, f"{done:06d}"),
        "the learner's iteration": (None if learned is None else learned.tolist(), done),
        "the policy's iterations": (trained.get("iterations", done), done),
        "the policy's steps": (trained.get("steps", steps), steps),
    }
    rows = [row for row, _ in checkpoint.waiting]
    if rows:
        numbers, expected = [row["iteration"] for row in rows], range(done - len(rows), done)
        said["the iterations of waiting rows"] = (numbers, list(expected))
        said["the last waiting row's steps"] = (rows[-1]["steps"], steps)
    for what, (value, told) in said.items():
        if value != told:
            raise ValueError(f"{what}: {shortened(value)}, expected {told} as the counters say")


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest intact checkpoint, and the errors of newer ones; FileError if all are damaged."""
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

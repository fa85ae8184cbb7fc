"""Checkpoints: a folder with safetensors and JSON that appears as a whole; the last two are kept.

checkpoints/000030/learner.safetensors   every array of the learner's state
checkpoints/000030/policy.safetensors    the policy file of that moment
checkpoints/000030/evaluate-000020.safetensors   a policy whose evaluation is under way
checkpoints/000030/checkpoint.json       counters, rows of the metrics that wait for an evaluation,
                                         and a digest of each file
"""

import hashlib
import json
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

from moie.errors import InputError
from moie.rollout.policy import Policy
from moie.runs import policy_file
from moie.runs.files import as_json, write_folder

KEPT_CHECKPOINTS = 2
FORMAT = "moie-checkpoint"
Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Counters:
    """Where a run stands: iterations and environment steps done, seconds spent on them."""

    iteration: int = 0
    steps: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run goes on from."""

    learner: dict[str, np.ndarray]
    policy: Policy
    counters: Counters
    waiting: tuple[tuple[dict[str, Any], Policy | None], ...] = ()
    """Rows of the metrics that are not written yet, with the policy that is being evaluated."""


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
            raise InputError(
                f"the checkpoint does not fit the run's configuration: {name} has shape {shape}, "
                f"expected {expected.shape}"
            )
        value = jnp.asarray(found)
        return jax.random.wrap_key_data(value) if is_key else value

    return jax.tree_util.tree_map_with_path(leaf, template)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write one, then remove all but the last two."""
    files = {
        "learner.safetensors": save_tensors(checkpoint.learner),
        "policy.safetensors": policy_file.to_bytes(checkpoint.policy),
    }
    waiting = []
    for row, policy in checkpoint.waiting:
        name = None if policy is None else f"evaluate-{row['iteration']:06d}.safetensors"
        waiting.append({"row": row, "policy": name})
        if policy is not None:
            files[str(name)] = policy_file.to_bytes(policy)
    note = {
        "format": FORMAT,
        "counters": asdict(checkpoint.counters),
        "waiting": waiting,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    files["checkpoint.json"] = as_json(note)
    path = folder / f"{checkpoint.counters.iteration:06d}"
    if path.exists():  # damaged: a whole one would have been gone on from
        shutil.rmtree(path)
    write_folder(path, files)
    for old in present(folder)[:-KEPT_CHECKPOINTS]:
        shutil.rmtree(old, ignore_errors=True)


def present(folder: Path) -> list[Path]:
    """Checkpoints on disk, oldest first."""
    found = (path for path in folder.glob("[0-9]*") if path.is_dir())
    return sorted(found, key=lambda path: (len(path.name), path.name))


def load(path: Path) -> Checkpoint:
    """Read one; InputError if it is damaged or not ours."""
    try:
        note = json.loads((path / "checkpoint.json").read_text())
        if note.get("format") != FORMAT:
            raise ValueError("it was not written by moie")
        files = {name: (path / name).read_bytes() for name in note["sha256"]}
        for name, content in files.items():
            if hashlib.sha256(content).hexdigest() != note["sha256"][name]:
                raise ValueError(f"{name} is truncated or was changed")

        def policy(name: str) -> Policy:
            return policy_file.from_bytes(files[name], path / name)

        return Checkpoint(
            load_tensors(files["learner.safetensors"]),
            policy("policy.safetensors"),
            Counters(**note["counters"]),
            tuple(
                (dict(one["row"]), None if one["policy"] is None else policy(one["policy"]))
                for one in note.get("waiting", ())
            ),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise InputError(f"{path} is not a moie checkpoint: {error}") from error


def load_latest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest one that is whole, and what was wrong with any newer ones.

    InputError where there are checkpoints but none is whole.
    """
    wrong: list[str] = []
    for path in reversed(present(folder)):
        try:
            return load(path), wrong
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        raise InputError(f"no checkpoint in {folder} can be read: {'; '.join(wrong)}")
    return None, wrong

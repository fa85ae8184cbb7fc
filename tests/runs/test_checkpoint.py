"""Checkpoints: every array of the learner's state, bit for bit, whole or refused."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from moie.errors import InputError
from moie.learn import learner
from moie.learn.config import LearnerConfig
from moie.runs.disk import checkpoint
from moie.runs.disk.checkpoint import Checkpoint, Counters
from tests import tiny


def a_state(seed: int, experts: int = 10) -> learner.LearnerState:
    config = LearnerConfig()
    if experts != 10:
        policy = type(config.policy)(experts=experts)
        config = LearnerConfig(policy=policy)
    return learner.start(config, 3, 1, key=jax.random.key(seed))


def save(folder: Path, iteration: int, **arrays: np.ndarray) -> Checkpoint:
    arrays = checkpoint.to_arrays(a_state(iteration)) | arrays
    arrays[".iteration"] = np.array(iteration, np.int32)
    made = Checkpoint(arrays, tiny.policy("Pendulum-v1"), Counters(iteration, 7, 0.5))
    checkpoint.save(folder, made)
    return made


def test_the_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    made = save(tmp_path, 3)
    found, wrong = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert (found.counters, wrong) == (made.counters, [])
    state = checkpoint.from_arrays(a_state(8), found.learner)
    again = checkpoint.to_arrays(state)
    assert set(again) == set(made.learner)
    for name, array in made.learner.items():
        assert again[name].dtype == array.dtype
        assert np.array_equal(again[name], array)
    own, other = (jax.random.normal(key) for key in (state.key, a_state(3).key))
    assert own == other


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for iteration in (1, 2, 3, 10):
        save(tmp_path, iteration)
    assert [path.name for path in checkpoint.present(tmp_path)] == ["000003", "000010"]
    assert tiny.leftovers(tmp_path) == []
    found, _ = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.counters.iteration == 10


def test_none_is_no_error(tmp_path: Path) -> None:
    assert checkpoint.load_latest(tmp_path) == (None, [])


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    file = tmp_path / "000002" / "learner.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    found, wrong = checkpoint.load_latest(tmp_path)
    assert found is not None
    assert found.counters.iteration == 1
    assert len(wrong) == 1
    assert "learner.safetensors is truncated or was changed" in wrong[0]


@pytest.mark.parametrize("note", [None, [], {}, {"format": "other"}, {"format": "moie-checkpoint"}])
def test_a_foreign_note_is_refused(note: object, tmp_path: Path) -> None:
    save(tmp_path, 1)
    (tmp_path / "000001" / "checkpoint.json").write_text(json.dumps(note))
    with pytest.raises(InputError, match="is not a moie checkpoint"):
        checkpoint.load(tmp_path / "000001")


def test_another_shape_is_refused(tmp_path: Path) -> None:
    made = save(tmp_path, 1)
    with pytest.raises(InputError, match=r"has shape \(10, 3\), expected \(4, 3\)"):
        checkpoint.from_arrays(a_state(1, experts=4), made.learner)
    del made.learner[".own.n_swaps"]
    with pytest.raises(InputError, match=r"\.own\.n_swaps has shape None"):
        checkpoint.from_arrays(a_state(1), made.learner)

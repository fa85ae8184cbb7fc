"""The policy file: the same bytes for the same policy, and no bytes that execute."""

import hashlib
import json
import os
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import moie
from moie.errors import InputError
from moie.rollout.policy import Origin, Policy
from moie.runs import policy_file
from tests import tiny

HERE = Path("some.safetensors")


def a_policy() -> Policy:
    actions = np.random.default_rng(2).normal(size=(4, 1)).astype(np.float32)
    origins = (Origin(3, 1, 4, 77, actions), None, Origin(0, 0, 0, 5, actions[:0]))
    return tiny.policy("Pendulum-v1", origins=origins, trained={"seed": 1, "steps": 256})


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, Policy | Origin):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple) and one and isinstance(one[0], Origin):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_round_trip_bit_for_bit() -> None:
    policy = a_policy()
    content = policy_file.to_bytes(policy)
    again = policy_file.from_bytes(content, HERE)
    assert same(again, policy)
    assert {policy_file.to_bytes(again), policy_file.to_bytes(a_policy())} == {content}
    state = np.array([0.3, -0.2, 1.0])
    assert same(
        again.predict(state, deterministic=True)[0], policy.predict(state, None, None, True)[0]
    )
    assert again.explain(state).memberships == policy.explain(state).memberships


def test_a_metric_is_written_only_where_there_is_one() -> None:
    plain = a_policy()
    assert "metric" not in load_tensors(policy_file.to_bytes(plain))
    assert policy_file.from_bytes(policy_file.to_bytes(plain), HERE).metric is None
    policy = replace(plain, metric=np.array([0.5, 1.0, 3.0]))
    content = policy_file.to_bytes(policy)
    again = policy_file.from_bytes(content, HERE)
    assert same(again, policy)
    assert policy_file.to_bytes(again) == content
    tensors = load_tensors(content)
    assert same(tensors.pop("metric"), policy.metric)
    assert tensors.keys() == load_tensors(policy_file.to_bytes(plain)).keys()


def test_the_bytes_of_a_policy_without_a_metric_are_those_of_files_before_it() -> None:
    assert hashlib.sha256(policy_file.to_bytes(a_policy())).hexdigest() == (
        "2e5c001d2a90657956f779de65d385c28bea91f5b7436d4ac3a28c3ae3c1c2e1"
    )


def test_it_is_plain_safetensors_with_prototypes_as_the_task_has_them() -> None:
    policy = a_policy()
    assert same(load_tensors(policy_file.to_bytes(policy))["prototypes"], policy.prototypes)


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"{}",
        os.urandom(4000),
        pickle.dumps(Bomb()),
        b"PK\x03\x04" + bytes(1000),
        save_tensors({"a": np.zeros(3)}),
        save_tensors({"a": np.zeros(3)}, metadata={"moie": "{"}),
        save_tensors({"a": np.zeros(3)}, metadata={"moie": json.dumps({"format": "moie-policy"})}),
        save_tensors({"a": np.zeros(3)}, metadata={"moie": json.dumps([1])}),
    ],
    ids=["empty", "byte", "JSON", "noise", "pickle", "zip", "foreign", "half", "version", "list"],
)
def test_a_foreign_file_is_refused_and_nothing_is_executed(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "policy.safetensors"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"policy.safetensors is not a moie policy file: ."):
        moie.load(file)
    assert os.listdir(tmp_path) == ["policy.safetensors"]


def test_a_file_of_another_version_says_so() -> None:
    content = policy_file.to_bytes(a_policy())
    other = content.replace(b'\\"version\\": 1', b'\\"version\\": 9')
    assert other != content
    with pytest.raises(InputError, match="its version is 9, this moie reads 1"):
        policy_file.from_bytes(other, HERE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": np.array([1.0, np.nan, 0.0])}, "weights holds numbers that are not finite"),
        ({"weights": np.ones(2)}, "expected"),
        ({"actions": np.ones((3, 2))}, "actions has shape (3, 2), expected (3, 1)"),
        ({"observation_shape": (4,)}, "do not fit their names"),
        ({"action_shape": (2,)}, "do not fit their names"),
        ({"origins": (None,)}, "1 origins, expected 3"),
        ({"metric": np.ones(2)}, "metric has shape (2,), expected (3,)"),
        ({"metric": np.ones((3, 1))}, "metric has shape (3, 1), expected (3,)"),
        ({"metric": np.array([1.0, np.nan, 1.0])}, "metric holds numbers that are not finite"),
        ({"metric": np.array([1.0, np.inf, 1.0])}, "metric holds numbers that are not finite"),
        ({"metric": np.array([1.0, 0.0, 1.0])}, "metric holds numbers that are not positive"),
        ({"metric": np.array([1.0, -1.0, 1.0])}, "metric holds numbers that are not positive"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(changes: dict, words: str) -> None:
    content = policy_file.to_bytes(tiny.policy("Pendulum-v1", **changes))
    with pytest.raises(InputError) as caught:
        policy_file.from_bytes(content, HERE)
    assert words in str(caught.value)


def test_no_truncation_and_no_flipped_byte_does_more_than_an_error() -> None:
    content = policy_file.to_bytes(a_policy())
    rng = np.random.default_rng(4)
    damaged = [content[:n] for n in range(0, len(content), 7)]
    for place in rng.integers(len(content), size=400):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    refused = 0
    for one in damaged:
        try:
            policy_file.from_bytes(one, HERE)
        except InputError as error:
            refused += "\n" not in str(error)
    assert refused >= len(range(0, len(content), 7))

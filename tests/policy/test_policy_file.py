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
from moie.policy import file as policy_file
from moie.policy.base import Origin, Policy
from moie.policy.mixture import Mixture
from moie.policy.visited import visited_in
from tests import tiny
from tests.fuzzing import at_most

HERE = Path("some.safetensors")


AN_EDIT = {"part": "weight", "expert": 1, "name": None, "before": 1.0, "after": 2.5}
A_STEP = np.ones((1, 1), np.float32)


def nested(depth: int) -> list:
    """Lists inside each other."""
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def a_policy() -> Policy:
    actions = np.random.default_rng(2).normal(size=(4, 1)).astype(np.float32)
    origins = (Origin(3, 1, 4, 77, actions), None, Origin(0, 0, 0, 5, actions[:0]))
    return tiny.policy("Pendulum-v1", origins=origins, trained={"seed": 1, "steps": 256})


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, Policy | Origin):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple) and one and isinstance(one[0], Origin | np.ndarray):
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


def test_what_a_person_gave_is_written_only_where_there_is_any() -> None:
    plain = a_policy()
    content = policy_file.to_bytes(plain)
    assert b"labels" not in content
    assert b"edits" not in content
    named = replace(plain, labels=("push off", "", "fall"), edits=(AN_EDIT,))
    again = policy_file.from_bytes(policy_file.to_bytes(named), HERE)
    assert same(again, named)
    assert (again.labels, again.edits) == (("push off", "", "fall"), (AN_EDIT,))
    assert policy_file.to_bytes(replace(again, labels=(), edits=())) == content


def test_labels_are_read_where_experts_are() -> None:
    policy = tiny.policy("Pendulum-v1", labels=("push off", "", "fall"), edits=(AN_EDIT,))
    assert [policy.label(k) for k in range(3)] == [
        'expert 0 "push off"',
        "expert 1",
        'expert 2 "fall"',
    ]
    assert tiny.policy("Pendulum-v1").label(2) == "expert 2"
    assert [policy.by_hand(k) for k in range(3)] == [(), ("weight",), ()]
    why = str(policy.explain(policy.prototypes[0]))
    assert 'expert 0 "push off" leads; the state differs from its prototype by' in why
    columns = [line.index("membership") for line in why.splitlines() if "membership" in line]
    assert columns == [len('  expert 0 "push off" ')] * 4
    unnamed = str(tiny.policy("Pendulum-v1").explain(policy.prototypes[0]))
    assert "\n  expert 0   membership " in unnamed
    assert "\n  default    membership " in unnamed


def test_the_tensors_of_a_policy_have_the_bytes_of_files_before() -> None:
    content = policy_file.to_bytes(a_policy())
    tensors = content[8 + int.from_bytes(content[:8], "little") :]
    assert hashlib.sha256(tensors).hexdigest() == (
        "5341834ae96b0087f56768164a5714824ae0e7b29aa0bfee75507d2bb93fcb67"
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
        ({"weights": np.array([1.0, np.nan, 0.0])}, "weights holds nan, expected numbers from 0"),
        ({"weights": np.ones(2)}, "expected"),
        ({"actions": np.ones((3, 2))}, "actions has shape (3, 2), expected (3, 1)"),
        ({"observation_shape": (4,)}, "do not fit their names"),
        ({"action_shape": (2,)}, "do not fit their names"),
        ({"origins": (None,)}, "1 origins, expected 3"),
        ({"metric": np.ones(2)}, "metric has shape (2,), expected (3,)"),
        ({"metric": np.ones((3, 1))}, "metric has shape (3, 1), expected (3,)"),
        ({"metric": np.array([1.0, np.nan, 1.0])}, "metric holds nan, expected numbers"),
        ({"metric": np.array([1.0, np.inf, 1.0])}, "metric holds inf, expected numbers"),
        ({"metric": np.array([1.0, 0.0, 1.0])}, "metric holds 0.0, expected numbers from 1e-30"),
        ({"metric": np.array([1.0, -1.0, 1.0])}, "metric holds -1.0, expected numbers from 1e-30"),
        (
            {"metric": np.array([1.0, 1e-40, 1.0])},
            "metric holds 1e-40, expected numbers from 1e-30",
        ),
        ({"feature_scale": np.array([1, 5e-324, 1])}, "feature_scale holds 5e-324, expected"),
        ({"weights": np.array([1.0, -2.0, 0.0])}, "weights holds -2.0, expected numbers from 0 to"),
        ({"weights": np.array([1.0, 1e308, 0.0])}, "weights holds 1e+308, expected"),
        ({"weights": np.array([1, 2, 3])}, "weights is of type int64, expected float64"),
        ({"weights": np.array([True, False, True])}, "weights is of type bool, expected float64"),
        ({"actions": np.full((3, 1), 1e200)}, "actions holds 1e+200, expected numbers from -1e+60"),
        ({"log_std": np.array([800.0])}, "log_std holds 800.0, expected numbers from -138.2 to"),
        ({"share": np.array([0.5, 1.5, 0.0])}, "share holds 1.5, expected"),
        ({"distances": np.array([0.5, -1.5, 0.0])}, "distances holds -1.5, expected"),
        ({"action_low": np.array([3.0])}, "action 0 ranges from 3.0 to 2.0, expected the lower"),
        ({"temperature": 0.0}, "temperature is 0.0, expected a positive number"),
        ({"temperature": 10**400}, "temperature is 1000000000"),
        ({"temperature": True}, "temperature is True, expected a positive number"),
        ({"feature_names": ("a", 2, "c")}, "one of feature_names is 2, expected a text"),
        ({"action_names": ()}, "action_names is [], expected a list that is not empty"),
        ({"observation_shape": (-1, -3)}, "a size in observation_shape is -1, expected"),
        ({"observation_shape": (3.0,)}, "a size in observation_shape is 3.0, expected"),
        ({"trained": [1]}, "trained is [1], expected names and values"),
        ({"trained": {"steps": "many"}}, "trained steps is 'many', expected a whole number"),
        ({"trained": {"algorithm": 5}}, "trained algorithm is 5, expected a text"),
        ({"trained": {"pruned": {"kept": [0]}}}, "pruned is {'kept': [0]}, expected the experts"),
        ({"trained": {"x": nested(30)}}, "trained is nested more than 20 deep"),
        ({"labels": ("a", "b")}, "it has 2 labels, expected 3"),
        ({"labels": ("a", "", "a")}, "experts 0 and 2 have the label 'a'"),
        ({"labels": ("a", 5, "c")}, "the label of expert 1 is 5, expected a text of at most 80"),
        ({"labels": ("a", "b\n", "c")}, "the label of expert 1 is 'b\\n', expected"),
        ({"labels": ("a", " b", "c")}, "the label of expert 1 is ' b', expected"),
        ({"labels": ("a", "b" * 81, "c")}, "the label of expert 1 is 'bbb"),
        ({"labels": {"a": 1}}, "labels is {'a': 1}, expected a list of texts"),
        ({"edits": {"a": 1}}, "edits is {'a': 1}, expected a list of records"),
        ({"edits": ({},)}, "edit 0 is {}, expected part, expert, name, before, after"),
        ({"edits": (AN_EDIT, AN_EDIT | {"expert": 3})}, "the expert of edit 1 is 3, expected null"),
        ({"edits": (AN_EDIT | {"expert": True},)}, "the expert of edit 0 is True, expected null"),
        ({"edits": (AN_EDIT | {"part": ""},)}, "the part of edit 0 is '', expected a text"),
        ({"edits": (AN_EDIT | {"name": 7},)}, "the name in edit 0 is 7, expected a text or null"),
        ({"edits": (AN_EDIT | {"after": nested(30)},)}, "edit 0 is nested more than 20 deep"),
        (
            {"origins": (Origin(0, 0, 2, 1, A_STEP), None, None)},
            "has shape (1, 1), expected (2, 1)",
        ),
        (
            {"origins": (Origin(0, 0, 1, 1, A_STEP * np.nan), None, None)},
            "actions holds nan, expected",
        ),
        (
            {"origins": (Origin(0, 0, 1, -1, A_STEP), None, None)},
            "seed of origin 0 is -1, expected",
        ),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(changes: dict, words: str) -> None:
    content = policy_file.to_bytes(tiny.policy("Pendulum-v1", **changes))
    with pytest.raises(InputError) as caught:
        policy_file.from_bytes(content, HERE)
    assert words in str(caught.value)


HEADER_CHANGES: dict[str, tuple[bytes, bytes]] = {
    "deep": (b'\\"seed\\": 1', b'\\"seed\\": ' + b"[" * 50_000),
    "400 digits": (b'\\"temperature\\": 0.5', b'\\"temperature\\": ' + b"9" * 400),
    "5000 digits": (b'\\"steps\\": 256', b'\\"steps\\": ' + b"9" * 5000),
    "no task": (b'\\"task\\"', b'\\"tusk\\"'),
    "bfloat": (b'"F64"', b'"BF16"'),
}


@pytest.mark.parametrize("change", HEADER_CHANGES)
def test_a_header_that_cannot_be_read_is_an_input_error(change: str) -> None:
    content = policy_file.to_bytes(a_policy())
    size = int.from_bytes(content[:8], "little")
    old, new = HEADER_CHANGES[change]
    header = content[8 : 8 + size].replace(old, new)
    assert header != content[8 : 8 + size]
    damaged = len(header).to_bytes(8, "little") + header + content[8 + size :]
    with pytest.raises(InputError, match=r"^some.safetensors is not a moie policy file: [^\n]+$"):
        policy_file.from_bytes(damaged, HERE)


ACTIONS = {
    "mixture-v1": 0.023369029086970427,
    "mixture-v2-metric": 0.501860605310365,
    "mixture-edited": 0.5516095903351591,
    "linear-v1": -0.22406925054565374,
    "network-v1": 0.7334080099959218,
}
"""In the state (0.3, -0.2, 1), of files without a digest, as those of earlier versions are."""


@pytest.mark.parametrize("name", ACTIONS)
def test_files_of_earlier_versions_act_as_they_did(name: str) -> None:
    policy = moie.load(Path(__file__).parent.parent / "data" / f"{name}.safetensors")
    assert policy.mean_of(np.array([0.3, -0.2, 1.0]))[0] == pytest.approx(ACTIONS[name], rel=1e-12)
    assert policy.trained["steps"] == 256
    assert policy.feature_names == ("cos of angle", "sin of angle", "turning speed")
    assert same(policy_file.from_bytes(policy_file.to_bytes(policy), HERE), policy)


# --- special and huge files ----------------------------------------------------------------------


def test_special_and_huge_files_are_refused_at_once(tmp_path: Path) -> None:
    pipe, huge, zeros = tmp_path / "pipe", tmp_path / "huge", tmp_path / "zeros"
    os.mkfifo(pipe)
    for file, size in ((huge, 2**40), (zeros, 2**30)):  # sparse
        with open(file, "wb") as handle:
            handle.truncate(size)
    reasons = {
        Path("/dev/zero"): "cannot read /dev/zero: it is not a regular file",
        pipe: "pipe: it is not a regular file",
        huge: "huge: it has 1099511627776 bytes, expected at most 1073741824",
        zeros: "zeros is not a moie policy file: its header has 0 bytes, expected 2 to 8388608",
        tmp_path / "nowhere": "there is no run or policy file",
    }
    with at_most(2.0):
        for path, words in reasons.items():
            with pytest.raises(InputError) as caught:
                moie.load(path)
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


def test_states_beyond_single_precision_leave_a_file_that_is_read() -> None:
    states = np.full((4, 3), 1e50)
    policy = tiny.policy("Pendulum-v1")
    visited = visited_in([states], [policy.memberships(states)], 0)
    content = policy_file.to_bytes(tiny.policy("Pendulum-v1", visited=visited))
    read = policy_file.from_bytes(content, Path("huge.safetensors"))
    assert isinstance(read, Mixture)
    assert read.visited is not None
    assert np.isfinite(read.visited.states).all()

"""Drafts of a policy: what was not touched stays as it was, what was is recorded."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moie.policy import file as policy_file
from moie.policy.base import Origin
from moie.policy.mixture import Mixture
from moie.surgery.draft import Draft, built, problems
from tests import tiny

HERE = Path("some.safetensors")


def a_policy(**changes: object) -> Mixture:
    """Three experts of Pendulum, two of them with an origin."""
    steps = np.random.default_rng(2).normal(size=(4, 1)).astype(np.float32)
    origins = (Origin(3, 1, 4, 77, steps), None, Origin(0, 0, 0, 5, steps[:0]))
    values = {"origins": origins, "share": np.array([0.4, 0.3, 0.1])} | changes
    return tiny.policy("Pendulum-v1", **values)


def changed(array: np.ndarray, place: object, value: float) -> np.ndarray:
    """A copy with one number changed."""
    array = array.copy()
    array[place] = value
    return array


def loaded(policy: Mixture) -> Mixture:
    """The policy as its file gives it back: with all checks that loading makes."""
    again = policy_file.from_bytes(policy_file.to_bytes(policy), HERE)
    assert isinstance(again, Mixture)
    return again


def test_a_draft_without_a_change_is_the_policy_itself() -> None:
    policy = a_policy(metric=np.array([1.0, 2.0, 0.5]), labels=("a", "", "b"))
    draft = Draft.of(policy)
    assert problems(draft, policy) == []
    assert built(draft, policy) is policy
    plain = a_policy()
    assert built(replace(Draft.of(plain), metric=np.ones(3)), plain) is plain


def test_only_what_was_touched_changes_and_is_recorded() -> None:
    policy = a_policy()
    draft = Draft.of(policy)
    new = built(replace(draft, actions=changed(policy.actions, (2, 0), 1.5)), policy)
    assert [one | {} for one in new.edits] == [
        {
            "part": "action",
            "expert": 2,
            "name": "torque",
            "before": float(policy.actions[2, 0]),
            "after": 1.5,
        }
    ]
    assert new.by_hand(2) == ("action",)
    assert new.by_hand(0) == new.by_hand(1) == ()
    back = loaded(replace(new, actions=policy.actions, edits=()))
    assert policy_file.to_bytes(back) == policy_file.to_bytes(policy)
    assert loaded(new).origins[2].seed == 5  # the prototype is still a visited state


def test_a_changed_prototype_has_no_origin() -> None:
    policy = a_policy(distances=np.array([0.1, 0.2, 0.3]))
    draft = replace(Draft.of(policy), prototypes=changed(policy.prototypes, (0, 1), 0.25))
    new = loaded(built(draft, policy))
    assert new.origins[0] is None
    assert new.origins[2] is not None
    assert new.distances.tolist() == [0.0, 0.2, 0.3]
    assert new.by_hand(0) == ("prototype",)
    assert [one["name"] for one in new.edits] == ["sin of angle"]


def test_experts_are_deleted_added_and_moved() -> None:
    policy = a_policy(labels=("a", "b", "c"))
    draft = Draft(
        labels=("c", "new", "a"),
        prototypes=np.stack([policy.prototypes[2], [1.0, 0.0, 0.0], policy.prototypes[0]]),
        actions=np.array([policy.actions[2], [0.5], policy.actions[0]]),
        weights=np.array([policy.weights[2], 4.0, policy.weights[0]]),
        temperature=policy.temperature,
        metric=None,
        sources=(2, None, 0),
    )
    assert problems(draft, policy) == []
    new = loaded(built(draft, policy))
    assert new.labels == ("c", "new", "a")
    assert [one and one.seed for one in new.origins] == [5, None, 77]
    assert new.share.tolist() == [0.1, 0.0, 0.4]
    assert new.by_hand(1) == ("added",)
    assert [one["part"] for one in new.edits] == ["deleted", "order", "added"]
    gone = new.edits[0]["before"]
    assert (gone["expert"], gone["label"], gone["weight"]) == (1, "b", float(policy.weights[1]))
    assert gone["prototype"] == policy.prototypes[1].tolist()
    assert new.edits[1]["after"] == [2, None, 0]
    assert new.edits[2]["after"]["prototype"] == [1.0, 0.0, 0.0]


def test_a_second_edit_keeps_the_records_of_the_first_by_their_new_numbers() -> None:
    policy = a_policy()
    first = built(replace(Draft.of(policy), weights=changed(policy.weights, 2, 9.0)), policy)
    whole = Draft.of(first)
    kept = [1, 2]
    draft = replace(
        whole,
        labels=("", "slow"),
        prototypes=whole.prototypes[kept],
        actions=whole.actions[kept],
        weights=whole.weights[kept],
        sources=(1, 2),
    )
    second = loaded(built(draft, first))
    said = [(one["part"], one["expert"], one["after"]) for one in second.edits]
    assert said == [("weight", 1, 9.0), ("deleted", None, None), ("label", 1, "slow")]
    assert second.by_hand(1) == ("weight",)


def test_temperature_and_metric_are_recorded_and_what_is_pruned_stays_readable() -> None:
    policy = a_policy(trained={"pruned": {"from": 9, "kept": [1, 4, 8], "loss": 0.1}})
    draft = Draft.of(policy)
    draft = replace(
        draft,
        temperature=0.75,
        metric=np.array([1.0, 3.0, 1.0]),
        labels=("", "x"),
        prototypes=draft.prototypes[1:],
        actions=draft.actions[1:],
        weights=draft.weights[1:],
        sources=(1, None),
    )
    new = loaded(built(draft, policy))
    assert new.trained["pruned"]["kept"] == [4, None]
    assert new.temperature == 0.75
    last = [(one["part"], one["name"], one["before"], one["after"]) for one in new.edits[-2:]]
    assert last == [("temperature", None, 0.5, 0.75), ("metric", "sin of angle", 1.0, 3.0)]


def test_an_action_out_of_range_is_refused_unless_training_left_it_there() -> None:
    policy = a_policy(actions=np.array([[0.1], [2.5], [0.2]]))
    draft = Draft.of(policy)
    assert problems(draft, policy) == []
    assert problems(replace(draft, actions=changed(policy.actions, (1, 0), 2.6)), policy) == [
        "action 'torque' of expert 1 is 2.6, expected a number from -2 to 2"
    ]
    copied = replace(draft, sources=(0, None, 2))
    assert "action 'torque' of new expert is 2.5" in problems(copied, policy)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": ("a", "b", "a")}, "label is 'a', expected one that no other expert has"),
        ({"labels": ("a", "b", "c\n")}, r"label is 'c\n', expected a text"),
        ({"labels": ("a",)}, "there are 1 labels, expected 3"),
        ({"weights": np.array([1.0, -1.0, 0.0])}, "weight of expert 1 is -1.0, expected a number"),
        ({"weights": np.array([1.0, 2.0])}, "weights has shape (2,), expected (3,)"),
        ({"prototypes": np.full((3, 3), np.nan)}, "prototype 'cos of angle' of expert 0 is nan"),
        ({"temperature": 0.0}, "temperature is 0.0, expected a number from 1e-30 to 1e+30"),
        ({"metric": np.array([1.0, 0.0, 1.0])}, "metric of 'sin of angle' is 0.0, expected"),
        ({"metric": np.ones(4)}, "metric has shape (4,), expected (3,)"),
        ({"sources": (0, 1, 1)}, "expert 1 is there twice, expected once"),
        ({"sources": (0, 1, 7)}, "there is no expert 7, expected a number from 0 to 2"),
        ({"sources": ()}, "there is no expert, expected at least one"),
    ],
)
def test_what_is_wrong_is_said(changes: dict, words: str) -> None:
    policy = a_policy()
    assert words in problems(replace(Draft.of(policy), **changes), policy)[0]


def test_all_mistakes_are_named_at_once() -> None:
    policy = a_policy()
    draft = replace(
        Draft.of(policy),
        labels=("a", "a", ""),
        temperature=-1.0,
        weights=np.array([-1.0, 1.0, np.inf]),
        actions=np.full((3, 1), 5.0),
    )
    assert len(problems(draft, policy)) == 1 + 1 + 2 + 3

"""Random edits of the file: each is accepted with exactly that change, or refused with its line."""

import math
import re
import tomllib
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moie.errors import InputError
from moie.policy import file as policy_file
from moie.policy.handwork import ADDED, DELETED, ORDER
from moie.policy.mixture import Mixture
from moie.surgery.draft import built
from moie.surgery.from_toml import from_toml
from moie.surgery.to_toml import to_toml
from tests.fuzzing import at_most
from tests.surgery.test_draft import HERE, a_policy

POLICY = a_policy(
    labels=("push off", "", "fall"),
    metric=np.array([1.0, 2.0, 0.5]),
    actions=np.array([[0.1], [2.5], [-1.0]]),  # training left one out of range
)
TEXT = to_toml(POLICY)
FEATURES, JOINTS = POLICY.feature_names, POLICY.action_names
LIMITS = {"prototype": (-1e60, 1e60), "action": (-2.0, 2.0), "weight": (0.0, 1e60)}
LIMITS |= {"temperature": (1e-30, 1e30), "metric": (1e-30, 1e30)}

Place = tuple[int | None, str, str | None]  # expert, part, feature or joint


def places() -> list[Place]:
    found: list[Place] = [(None, "temperature", None), *((None, "metric", f) for f in FEATURES)]
    for k in range(3):
        found += [(k, "weight", None), *((k, "prototype", f) for f in FEATURES)]
        found += [(k, "action", j) for j in JOINTS]
    return found


NUMBERS = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, 2.0, -2.0, 2.5, 1e-31, 1e31, 1e61, float("nan"), float("inf")]
    ),
    st.floats(-3, 3),
    st.floats(),
)
LABELS = st.one_of(
    st.sampled_from(["", "fall", "push off", "mine", " ", "a\nb", "x" * 81]), st.text(max_size=5)
)
EDITS = st.fixed_dictionaries(
    {
        "numbers": st.dictionaries(st.sampled_from(places()), NUMBERS, max_size=4),
        "labels": st.dictionaries(st.integers(0, 2), LABELS, max_size=2),
        "deleted": st.sets(st.integers(0, 2), max_size=2),
        "added": st.booleans(),
        "reversed": st.booleans(),
    }
)


def line_at(lines: list[str], place: Place) -> int:
    """Where a number stands in the file as it was written."""
    expert, part, name = place
    start = 0
    if expert is not None:
        start = lines.index(f"id = {expert}")
        part = part if part == "weight" else f"[expert.{part}]"
    elif part == "metric":
        part = "[metric]"
    at = next(i for i in range(start, len(lines)) if lines[i].startswith(part))
    if name is None:
        return at
    return next(i for i in range(at, len(lines)) if lines[i].startswith(f'"{name}"'))


def edited(edits: dict[str, Any]) -> str:
    """The file after a person has been at it."""
    lines = TEXT.split("\n")
    for place, value in edits["numbers"].items():
        at = line_at(lines, place)
        lines[at] = lines[at].split(" = ")[0] + f" = {value!r}"
    for k, label in edits["labels"].items():
        quoted = "".join(f"\\U{ord(one):08x}" for one in label)
        lines[lines.index(f"id = {k}") + 1] = f'label = "{quoted}"'
    start, *blocks = ("\n".join(lines) + "\n").split("[[expert]]")
    kept = [blocks[k] for k in range(3) if k not in edits["deleted"]]
    if edits["added"]:
        new = re.sub('id = 1|label = ".*"', "", TEXT.split("[[expert]]")[2] + "\n")
        kept.append(re.sub('"torque" = .*', '"torque" = 1.5', new))
    return "[[expert]]".join([start, *(reversed(kept) if edits["reversed"] else kept)])


def holds(policy: Mixture, text: str) -> bool:
    """Whether a policy is what a file says, as `tomllib` reads it, to the last bit."""
    content = tomllib.loads(text)
    experts = in_order(content)
    rows: dict[str, Any] = {
        "prototypes": [[one["prototype"][name] for name in FEATURES] for one in experts],
        "actions": [[one["action"][name] for name in JOINTS] for one in experts],
        "weights": [one["weight"] for one in experts],
        "metric": [content.get("metric", {}).get(name, 1.0) for name in FEATURES],
    }
    ones = np.ones(len(FEATURES))
    arrays = {name: getattr(policy, name) for name in rows}
    arrays["metric"] = ones if policy.metric is None else policy.metric
    labels = tuple(one.get("label", "") for one in experts)
    return (
        all(np.array(rows[name], float).tobytes() == arrays[name].tobytes() for name in rows)
        and policy.temperature == content["temperature"]
        and (policy.labels or ("",) * len(experts)) == labels
    )


def sources(text: str) -> list[int | None]:
    return [one.get("id") for one in in_order(tomllib.loads(text))]


def in_order(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The experts by their ids, new ones last: where a block stands does not matter."""
    return sorted(content["expert"], key=lambda one: one.get("id", math.inf))


def check_rest(new: Mixture, text: str) -> None:
    """What was not touched is as it was, and every difference is recorded."""
    found = {(one["expert"], one["part"], one["name"]) for one in new.edits}
    known = [k for k in sources(text) if k is not None]
    assert ((None, ORDER, None) in found) == (known != sorted(known))
    gone = {one["before"]["expert"] for one in new.edits if one["part"] == DELETED}
    assert gone == set(range(3)) - set(known)
    for i, k in enumerate(sources(text)):
        assert ((i, ADDED, None) in found) == (k is None)
        if k is None:
            assert new.origins[i] is None
            continue
        same = new.prototypes[i].tobytes() == POLICY.prototypes[k].tobytes()
        assert same == (not any((i, "prototype", name) in found for name in FEATURES))
        origin, before = new.origins[i], POLICY.origins[k]
        assert origin is before if same or before is None else origin is None
        for part, one, other in (
            ("action", new.actions[i, 0], POLICY.actions[k, 0]),
            ("weight", new.weights[i], POLICY.weights[k]),
        ):
            name = "torque" if part == "action" else None
            assert ((i, part, name) in found) == (one.tobytes() != other.tobytes())
        assert ((i, "label", None) in found) == ((*new.labels, *[""] * 9)[i] != POLICY.labels[k])
    assert ((None, "temperature", None) in found) == (new.temperature != POLICY.temperature)
    again = policy_file.from_bytes(policy_file.to_bytes(new), HERE)
    assert policy_file.to_bytes(again) == policy_file.to_bytes(new)


def bad_places(edits: dict[str, Any]) -> list[Place]:
    """Numbers that have to be refused, in experts that are still there."""
    found = []
    for place, value in edits["numbers"].items():
        expert, part, _ = place
        low, high = LIMITS[part]
        slack = 4e-6 if part == "action" else 0.0
        is_old = part == "action" and value == POLICY.actions[expert or 0, 0]
        if expert not in edits["deleted"] and not low - slack <= value <= high + slack:
            found += [] if is_old else [place]
    return found


def bad_labels(edits: dict[str, Any]) -> bool:
    labels = {k: edits["labels"].get(k, POLICY.labels[k]) for k in range(3)}
    here = [label for k, label in labels.items() if k not in edits["deleted"] and label]
    odd = [one for one in here if len(one) > 80 or not one.isprintable() or one != one.strip()]
    return bool(odd) or len(set(here)) < len(here)


@settings(max_examples=500, deadline=None)
@given(edits=EDITS)
def test_an_edit_is_that_change_or_is_refused_with_its_lines(edits: dict[str, Any]) -> None:
    text = edited(edits)
    lines = text.split("\n")
    bad, are_labels_bad = bad_places(edits), bad_labels(edits)
    try:
        new = built(from_toml(text, POLICY, "mine.toml"), POLICY)
    except InputError as error:
        said = {int(number) for number in re.findall(r"line (\d+): ", str(error))}
        expected = {line_at(lines, place) + 1 for place in bad}
        assert expected <= said
        assert all("label = " in lines[line - 1] for line in said - expected)
        assert bad or are_labels_bad
        assert bool(said - expected) == are_labels_bad
        return
    assert not bad
    assert not are_labels_bad
    assert holds(new, text)
    if new is not POLICY:
        check_rest(new, text)


@st.composite
def damage(draw: st.DrawFn) -> str:
    """The file with some characters or lines lost, doubled, moved or put in."""
    text = TEXT
    for _ in range(draw(st.integers(1, 3))):
        join = draw(st.sampled_from(["", "\n"]))
        units: list[str] = (text.split(join) if join else list(text)) or [""]
        at, to = (draw(st.integers(0, len(units) - 1)) for _ in range(2))
        odd = st.sampled_from(["[", "]", '"', "'", "=", "#", "\n", "\x00", "9", "-", "e", "{", "ü"])
        new = draw(st.one_of(odd, st.sampled_from(units), st.text(max_size=3)))
        way = draw(st.sampled_from(["lose", "double", "move", "put in"]))
        if way == "lose":
            del units[at : at + 3]
        elif way == "double":
            units = [*units[:at], units[at], *units[at:]]
        elif way == "move":
            units.insert(to, units.pop(at))
        else:
            units.insert(at, new)
        text = join.join(units)
    return text


@settings(max_examples=500, deadline=None)
@given(text=damage())
@example(TEXT)
@example("")
@example("expert = [[]]\ntemperature = 1")
def test_a_damaged_file_is_what_it_says_or_is_refused_with_a_line(text: str) -> None:
    with at_most(2.0):
        try:
            new = built(from_toml(text, POLICY, "mine.toml"), POLICY)
        except InputError as error:
            numbers = [int(number) for number in re.findall(r"line (\d+): ", str(error))]
            assert numbers
            assert all(1 <= number <= text.count("\n") + 1 for number in numbers)
            return
    assert holds(new, text)
    if new is not POLICY:
        check_rest(new, text)

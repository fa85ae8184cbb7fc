"""What a person gave to a mixture: labels of its experts, and a record of each change made by hand.

A record is a dictionary that JSON can hold: the `part` that changed, the number of the `expert` it
belongs to (None: to no expert that is still there), the `name` of the feature or the joint where
there is one, and its value `before` and `after`.
"""

from collections.abc import Sequence
from typing import Any

from moie.errors import shortened
from moie.terminal import printable

LONGEST_LABEL = 80
"""Characters of a label."""
DEEPEST = 20
"""Levels of lists and dictionaries inside each other."""
RECORD = ("part", "expert", "name", "before", "after")
ADDED, DELETED, ORDER = "added", "deleted", "order"
"""Parts of records about whole experts; the others are named as what they are about."""
ACTING = (ADDED, "prototype", "action", "weight")
"""Parts that make an expert act otherwise than it was trained to."""

Record = dict[str, Any]


def named(expert: str, label: str) -> str:
    """What an expert is called wherever a person reads of it: "expert 3", and its label."""
    return f'{expert} "{label}"' if label else expert


def expert_name(k: int, labels: Sequence[str]) -> str:
    """The same for one of several experts; `labels` may be empty."""
    return named(f"expert {k}", labels[k] if labels else "")


def label_problem(label: Any) -> str | None:
    """What is wrong with a label; None if nothing is. An empty one is none."""
    is_short = isinstance(label, str) and len(label) <= LONGEST_LABEL
    if is_short and label.isprintable() and label == label.strip():
        return None
    expected = f"a text of at most {LONGEST_LABEL} printable characters, no space at either end"
    return f"is {shortened(label)}, expected {expected}"


def check_labels(labels: Sequence[Any], n_experts: int) -> None:
    """ValueError unless there are none, or one for each expert and no two the same."""
    if not isinstance(labels, list | tuple):
        raise ValueError(f"labels is {shortened(labels)}, expected a list of texts")
    if labels and len(labels) != n_experts:
        raise ValueError(f"it has {len(labels)} labels, expected {n_experts}")
    for k, label in enumerate(labels):
        if problem := label_problem(label):
            raise ValueError(f"the label of expert {k} {problem}")
        if label and label in labels[:k]:
            raise ValueError(f"experts {labels.index(label)} and {k} have the label {label!r}")


def check_edits(edits: Sequence[Any], n_experts: int) -> None:
    """ValueError unless all of these are records about experts that are there."""
    if not isinstance(edits, list | tuple):
        raise ValueError(f"edits is {shortened(edits)}, expected a list of records")
    for i, record in enumerate(edits):
        if not isinstance(record, dict) or set(record) != set(RECORD):
            raise ValueError(f"edit {i} is {shortened(record)}, expected {', '.join(RECORD)}")
        part, expert, name = (record[key] for key in RECORD[:3])
        if not isinstance(part, str) or not part:
            raise ValueError(f"the part of edit {i} is {shortened(part)}, expected a text")
        is_number = isinstance(expert, int) and not isinstance(expert, bool)
        if expert is not None and not (is_number and 0 <= expert < n_experts):
            expected = f"null or a number below {n_experts}"
            raise ValueError(f"the expert of edit {i} is {shortened(expert)}, expected {expected}")
        if name is not None and not isinstance(name, str):
            raise ValueError(f"the name in edit {i} is {shortened(name)}, expected a text or null")
        if depth(record) > DEEPEST:
            raise ValueError(f"edit {i} is nested more than {DEEPEST} deep")


def depth(value: Any) -> int:
    """The depth of nested values; one for a value that holds no others."""
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 1


def kept_labels(labels: Sequence[str], sources: Sequence[int]) -> tuple[str, ...]:
    """The labels of experts that are taken over, by their numbers before; none if all are empty."""
    found = tuple(labels[k] for k in sources) if labels else ()
    return found if any(found) else ()


def kept_edits(edits: Sequence[Record], sources: Sequence[int | None]) -> tuple[Record, ...]:
    """The records of experts that are taken over, by their new numbers, and of the whole policy.
    Records of experts that are gone go with them."""
    new = {k: number for number, k in enumerate(sources) if k is not None}
    whole_or_kept = [one for one in edits if one["expert"] is None or one["expert"] in new]
    return tuple(
        one if one["expert"] is None else one | {"expert": new[one["expert"]]}
        for one in whole_or_kept
    )


def hand_parts(edits: Sequence[Record], k: int) -> tuple[str, ...]:
    """The parts of an expert that act by a person's hand, each once."""
    found = {one["part"] for one in edits if one["expert"] == k}
    return tuple(part for part in ACTING if part in found)


def listed(edits: Sequence[Record], labels: Sequence[str], most: int = 20) -> list[str]:
    """Records in a line each; of many, the first."""
    said = [described(one, labels) for one in edits]
    return said if len(said) <= most else [*said[: most - 1], f"and {len(said) - most + 1} more"]


def described(record: Record, labels: Sequence[str]) -> str:
    """A record in one line: "expert 2: action 'torque' from 0.5 to 1.5"."""
    part, expert, name, before, after = (record[key] for key in RECORD)
    if part == DELETED and isinstance(before, dict):
        gone = named(f"expert {before.get('expert')}", str(before.get("label", "")))
        return printable(f"{gone} deleted")
    # Of a label, the one before and the one after are told anyway.
    who = "" if expert is None else expert_name(expert, [] if part == "label" else labels)
    if part == ADDED:
        return printable(f"{who} added")
    if part == ORDER:
        return "experts put in another order"
    what = f"{part} {name!r}" if name is not None else part
    change = f"from {shortened(before, 40)} to {shortened(after, 40)}"
    return printable(f"{who}: {what} {change}" if who else f"{what} {change}")

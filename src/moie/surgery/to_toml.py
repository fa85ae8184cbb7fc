"""A mixture as a TOML file that a person can edit. Numbers are written so that they are read back
to the last bit."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from moie.errors import InputError
from moie.explanation.origins import origin_said, use_said
from moie.policy import file as policy_file
from moie.policy.base import Array, Policy
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading
from moie.terminal import printable

HOW = """\
# Change numbers and labels as you like, and read the file back with: moie edit RUN FILE
# Experts come in order of use. Where a block stands does not matter: its id says which it is.
# An expert is deleted with its whole block. One without an id is made by hand: it needs a weight,
# a prototype and an action. Whatever stays as it is keeps its bytes and its origin."""


def mixture(policy: Policy) -> Mixture:
    """The policy; InputError if it has no experts."""
    if not isinstance(policy, Mixture):
        learner = printable(policy.trained.get("algorithm", "another learner"))
        raise InputError(f"this policy of {learner} has no experts: there is nothing to edit")
    return policy


def digest(policy: Policy) -> str:
    """What tells a policy from every other."""
    return hashlib.sha256(policy_file.to_bytes(policy)).hexdigest()[:16]


def keys(names: Sequence[str]) -> list[str]:
    """The names of features or joints as keys: each in one line, and no two alike."""
    found: list[str] = []
    for name in map(printable, names):
        key, number = name, 2
        while key in found:
            key, number = f"{name} ({number})", number + 1
        found.append(key)
    return found


def quoted(text: str) -> str:
    """A text between quotation marks, as TOML has it."""
    # JSON's escapes are TOML's, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(names: Sequence[str], values: Array, notes: Iterable[str]) -> list[str]:
    cells = [
        f"{quoted(key)} = {value!r}"
        for key, value in zip(keys(names), values.tolist(), strict=True)
    ]
    wide = max(map(len, cells))
    rows = zip(cells, notes, strict=True)
    return [f"{cell:<{wide}}  # {note}" if note else cell for cell, note in rows]


def to_toml(policy: Mixture) -> str:
    """The whole file; `from_toml` reads it."""
    steps = policy.trained.get("steps", 0)
    nothing = [""] * len(policy.feature_names)
    lines = [
        f"# {printable(policy.task)}: {policy.n_experts} experts, learned from {steps:,} steps",
        HOW,
        "",
        f"policy = {quoted(digest(policy))}  # what this file was written from",
        f"temperature = {policy.temperature!r}  # the higher, the closer a state must be",
    ]
    if policy.metric is not None:
        lines += ["", "[metric]  # how much each feature counts; all alike without this table"]
        lines += _table(policy.feature_names, policy.metric, nothing)
    bounds = zip(policy.action_low.tolist(), policy.action_high.tolist(), strict=True)
    ranges = [f"from {low:g} to {high:g}" for low, high in bounds]
    reading = Reading(policy)
    for k in reading.order:
        use = use_said(reading, k)
        lines += [
            "",
            f"[[expert]]  # {f'{use}, ' if use else ''}{origin_said(policy, k)}",
            f"id = {k}",
            f"label = {quoted(policy.labels[k] if policy.labels else '')}",
            f"weight = {float(policy.weights[k])!r}",
            "[expert.prototype]",
            *_table(policy.feature_names, policy.prototypes[k], nothing),
            "[expert.action]",
            *_table(policy.action_names, policy.actions[k], ranges),
        ]
    return "\n".join(lines)

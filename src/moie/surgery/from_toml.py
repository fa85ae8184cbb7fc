"""The draft in a TOML file that a person has edited, or all that is wrong with it, line by line."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from moie.errors import InputError, shortened
from moie.policy.base import Array
from moie.policy.handwork import named
from moie.policy.mixture import Mixture
from moie.surgery.heirs import passed_on
from moie.surgery.lines import Lines, NotTomlError, Path, parsed
from moie.surgery.mistakes import Place, mistakes
from moie.surgery.parts import Draft
from moie.surgery.to_toml import digest, keys
from moie.surgery.values import Values

TOP = ("policy", "temperature", "metric", "heirs", "expert")
EXPERT = ("id", "label", "weight", "prototype", "action")


def from_toml(text: str, original: Mixture, what: str) -> Draft:
    """The draft; InputError with all mistakes and their lines. `what` is the file's name."""
    try:
        content = parsed(text)
    except NotTomlError as mistake:
        raise InputError(_report(what, [(mistake.line, f"not TOML: {mistake}")])) from mistake
    values = Values()
    _check_policy(content.get("policy"), original, values)
    # Of a file of another policy, nothing else can be said.
    draft = None if values.mistakes else _draft(content, original, values)
    lines = Lines(text)
    found = sorted({(lines[path], said) for path, said in values.mistakes})
    if found or draft is None:
        raise InputError(_report(what, found))
    return draft


def _report(what: str, found: list[tuple[int, str]]) -> str:
    said = [f"line {line}: {said}" for line, said in found]
    if len(said) == 1:
        return f"{what}, {said[0]}"
    return "\n  ".join([f"{what} has {len(said)} mistakes; nothing was written", *said])


def _draft(content: dict[str, Any], original: Mixture, values: Values) -> Draft | None:
    """The draft; None where no expert can be read. Whether it is one to use, `values` knows."""
    features, joints = keys(original.feature_names), keys(original.action_names)
    values.known(content, TOP, (), "key")
    given = content.get("temperature")
    temperature = values.number(given, ("temperature",), "temperature", original.temperature)
    metric = None
    if "metric" in content:
        ones = np.ones(len(features))
        metric = values.row(content["metric"], features, ("metric",), "metric", ones)
    blocks = values.tables(content.get("expert", []), ("expert",), "expert")
    found = [(n, _expert(block, n, original, values)) for n, block in blocks.items()]
    # By their ids, those that are new last: the order of the blocks has no meaning.
    found.sort(key=lambda one: math.inf if one[1].source is None else one[1].source)
    numbers, experts = [n for n, _ in found], [expert for _, expert in found]
    if not experts:
        values.add(("expert",), "there is no expert, expected at least one: [[expert]]")
        return None
    sources = tuple(one.source for one in experts)
    weights = np.array([one.weight for one in experts])
    draft = Draft(
        labels=tuple(one.label for one in experts),
        prototypes=np.stack([one.prototype for one in experts]),
        actions=np.stack([one.action for one in experts]),
        weights=passed_on(content.get("heirs", {}), weights, sources, original, values),
        temperature=temperature,
        metric=metric,
        sources=sources,
    )
    names = {"metric": features, "prototype": features, "action": joints}
    for mistake in mistakes(draft, original):
        values.add(_path(mistake.place, numbers, names), mistake.said)
    return draft


def _check_policy(given: Any, original: Mixture, values: Values) -> None:
    if given is None or given == digest(original):
        return
    values.add(
        ("policy",),
        f"policy is {shortened(given)}, expected {digest(original)!r}: this file was written from "
        "another policy; write it again with moie show RUN --format toml",
    )


@dataclass(frozen=True)
class Expert:
    """An expert as the file has it."""

    source: int | None
    label: str
    weight: float
    prototype: Array
    action: Array


def _expert(block: dict[str, Any], number: int, original: Mixture, values: Values) -> Expert:
    path: Path = ("expert", number)
    values.known(block, EXPERT, path, "key")
    source, label = block.get("id"), block.get("label", "")
    if source is not None and type(source) is not int:
        values.add((*path, "id"), f"id is {shortened(source)}, expected the number of an expert")
        source = None
    if not isinstance(label, str):
        values.add((*path, "label"), f"label is {shortened(label)}, expected a text")
        label = ""
    name = named("new expert" if source is None else f"expert {source}", label)
    middle = (original.action_low + original.action_high) / 2
    weight, prototype, action = 1.0, np.zeros(len(original.feature_names)), middle
    if source is not None and 0 <= source < original.n_experts:
        weight = float(original.weights[source])
        prototype, action = original.prototypes[source], original.actions[source]
    rows = {}
    for key, names, otherwise in (
        ("prototype", original.feature_names, prototype),
        ("action", original.action_names, action),
    ):
        what = f"{key} of {name}"
        rows[key] = values.row(block.get(key), keys(names), (*path, key), what, otherwise)
    weight = values.number(block.get("weight"), (*path, "weight"), f"weight of {name}", weight)
    return Expert(source, label, weight, rows["prototype"], rows["action"])


def _path(place: Place, numbers: list[int], names: dict[str, list[str]]) -> Path:
    """Where a part of a draft stands in its file."""
    path = list(place)
    if path[:1] == ["expert"]:
        path[1] = numbers[int(path[1])]
    if len(path) > 1 and path[-2] in names:
        path[-1] = names[str(path[-2])][int(path[-1])]
    return tuple(path)

"""What is wrong with a draft: all of it at once."""

from dataclasses import dataclass

import numpy as np

from moie.policy.check import limits
from moie.policy.handwork import label_problem
from moie.policy.mixture import Mixture
from moie.policy.truth import inside
from moie.surgery.parts import Draft, same_bits

Place = tuple[str | int, ...]
"""Where a mistake is: ("temperature",), ("metric", FEATURE), ("expert", NUMBER, "weight") or
("expert", NUMBER, "action", JOINT), with numbers as they are in the draft."""


@dataclass(frozen=True)
class Mistake:
    """What is wrong, in a sentence, and where."""

    place: Place
    said: str


def mistakes(draft: Draft, original: Mixture) -> list[Mistake]:
    """All that keeps a draft from becoming a policy."""
    found = _misfits(draft, original)
    if found:
        return found  # nothing else can be said
    found = _bad_experts(draft, original)
    low, high = limits("temperature")
    if not low <= draft.temperature <= high:
        found.append(Mistake(("temperature",), _said("temperature", draft.temperature, low, high)))
    low, high = limits("metric")
    for j, factor in enumerate([] if draft.metric is None else draft.metric.tolist()):
        if not low <= factor <= high:
            what = f"metric of {original.feature_names[j]!r}"
            found.append(Mistake(("metric", j), _said(what, factor, low, high)))
    return found


def _said(what: str, value: float, low: float, high: float) -> str:
    return f"{what} is {value!r}, expected a number from {low:g} to {high:g}"


def _misfits(draft: Draft, original: Mixture) -> list[Mistake]:
    """Parts whose sizes do not belong together."""
    k, d, a = len(draft.sources), len(original.feature_names), len(original.action_names)
    if not k:
        return [Mistake((), "there is no expert, expected at least one")]
    shapes = {"prototypes": (k, d), "actions": (k, a), "weights": (k,), "metric": (d,)}
    found = (
        [] if len(draft.labels) == k else [f"there are {len(draft.labels)} labels, expected {k}"]
    )
    for name, shape in shapes.items():
        array = getattr(draft, name)
        if array is not None and np.shape(array) != shape:
            found.append(f"{name} has shape {np.shape(array)}, expected {shape}")
    return [Mistake((), said) for said in found]


def _bad_experts(draft: Draft, original: Mixture) -> list[Mistake]:
    found = []
    for i, (label, source) in enumerate(zip(draft.labels, draft.sources, strict=True)):
        place = ("expert", i)
        is_known = source is None or 0 <= source < original.n_experts
        if not is_known:
            last = original.n_experts - 1
            said = f"there is no expert {source}, expected a number from 0 to {last}"
            found.append(Mistake((*place, "id"), said))
        elif source is not None and source in draft.sources[:i]:
            found.append(Mistake((*place, "id"), f"expert {source} is there twice, expected once"))
        if problem := label_problem(label):
            found.append(Mistake((*place, "label"), f"label {problem}"))
        elif label and label in draft.labels[:i]:
            said = f"label is {label!r}, expected one that no other expert has"
            found.append(Mistake((*place, "label"), said))
        if is_known:
            found += _bad_numbers(draft, original, i, draft.name(i))
    return found


def _bad_numbers(draft: Draft, original: Mixture, i: int, name: str) -> list[Mistake]:
    """Numbers of one expert that no policy may have, and actions that nobody can carry out. An
    action that training left outside the range may stay as it is."""
    found, place = [], ("expert", i)
    low, high = limits("weights")
    if not low <= draft.weights[i] <= high:
        said = _said(f"weight of {name}", float(draft.weights[i]), low, high)
        found.append(Mistake((*place, "weight"), said))
    low, high = limits("prototypes")
    for j, value in enumerate(draft.prototypes[i].tolist()):
        if not low <= value <= high:
            said = _said(f"prototype {original.feature_names[j]!r} of {name}", value, low, high)
            found.append(Mistake((*place, "prototype", j), said))
    source = draft.sources[i]
    unchanged = np.zeros(draft.actions.shape[1], dtype=bool)
    if source is not None:
        unchanged = same_bits(draft.actions[i], original.actions[source])
    for j in np.flatnonzero(~(inside(original, draft.actions[i]) | unchanged)).tolist():
        what = f"action {original.action_names[j]!r} of {name}"
        bounds = float(original.action_low[j]), float(original.action_high[j])
        said = _said(what, float(draft.actions[i, j]), *bounds)
        found.append(Mistake((*place, "action", j), said))
    return found

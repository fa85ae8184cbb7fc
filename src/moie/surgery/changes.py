"""The difference between a draft and the policy it was made of, as records for the policy file."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from moie.policy.base import Array
from moie.policy.handwork import ADDED, DELETED, ORDER, Record
from moie.policy.mixture import Mixture
from moie.surgery.parts import Draft, factors, same_bits


def _record(part: str, expert: int | None, name: str | None, before: Any, after: Any) -> Record:
    return {"part": part, "expert": expert, "name": name, "before": before, "after": after}


def changes(draft: Draft, original: Mixture) -> list[Record]:
    """A record of every difference between the two."""
    known = [k for k in draft.sources if k is not None]
    records = []
    for k in sorted(set(range(original.n_experts)) - set(known)):
        gone = {"expert": k} | _whole(Draft.of(original), k)
        records.append(_record(DELETED, None, None, gone, None))
    if known != sorted(known):
        records.append(_record(ORDER, None, None, None, list(draft.sources)))
    for i, source in enumerate(draft.sources):
        if source is None:
            records.append(_record(ADDED, i, None, None, _whole(draft, i)))
        else:
            records += _expert_changes(draft, original, i, source)
    if draft.temperature != original.temperature:
        temperatures = original.temperature, float(draft.temperature)
        records.append(_record("temperature", None, None, *temperatures))
    n = len(original.feature_names)
    before, after = factors(original.metric, n), factors(draft.metric, n)
    return records + _differences("metric", None, original.feature_names, before, after)


def _whole(draft: Draft, i: int) -> dict[str, Any]:
    """All of an expert."""
    return {
        "label": draft.labels[i],
        "weight": float(draft.weights[i]),
        "prototype": draft.prototypes[i].tolist(),
        "action": draft.actions[i].tolist(),
    }


def _expert_changes(draft: Draft, original: Mixture, i: int, source: int) -> list[Record]:
    records = []
    label = original.labels[source] if original.labels else ""
    if draft.labels[i] != label:
        records.append(_record("label", i, None, label, draft.labels[i]))
    features, joints = original.feature_names, original.action_names
    before, after = original.prototypes[source], draft.prototypes[i]
    records += _differences("prototype", i, features, before, after)
    records += _differences("action", i, joints, original.actions[source], draft.actions[i])
    weights = original.weights[[source]], draft.weights[[i]]
    return records + _differences("weight", i, (None,), *weights)


def _differences(
    part: str, expert: int | None, names: Sequence[str | None], before: Array, after: Array
) -> list[Record]:
    """A record for each number that is not the same."""
    changed = np.flatnonzero(~same_bits(before, after)).tolist()
    return [_record(part, expert, names[j], float(before[j]), float(after[j])) for j in changed]

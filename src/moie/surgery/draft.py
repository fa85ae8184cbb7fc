"""A mixture as a person may change it: a draft, what is wrong with it, and the policy made of it.

What a draft leaves as it was keeps its bytes and its origin; what it changes is recorded in the
policy's `edits`, and a prototype that was changed has no origin any more. How much each expert is
used is known from training only: those that are kept keep it, one that was added has none.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from moie.policy.base import Origin
from moie.policy.handwork import kept_edits
from moie.policy.mixture import Mixture
from moie.surgery.changes import changes
from moie.surgery.mistakes import mistakes
from moie.surgery.parts import Draft, factors, same_bits

__all__ = ["Draft", "built", "problems"]


def problems(draft: Draft, original: Mixture) -> list[str]:
    """All that keeps a draft from becoming a policy, in sentences; empty if nothing does."""
    return [mistake.said for mistake in mistakes(draft, original)]


def built(draft: Draft, original: Mixture) -> Mixture:
    """The policy of a draft without `problems`; the original itself if nothing was changed."""
    records = changes(draft, original)
    if not records:
        return original
    n, d = len(draft.sources), len(original.feature_names)
    share, lead, distances = np.zeros((3, n))
    origins: list[Origin | None] = [None] * n
    for i, source in enumerate(draft.sources):
        if source is None:
            continue
        share[i], lead[i] = original.share[source], original.lead[source]
        if same_bits(draft.prototypes[i], original.prototypes[source]).all():
            origins[i] = original.origins[source]
            distances[i] = original.distances[source]
    metric = draft.metric
    if same_bits(factors(metric, d), factors(original.metric, d)).all():
        metric = original.metric
    return replace(
        original,
        prototypes=np.array(draft.prototypes, dtype=np.float64),
        actions=np.array(draft.actions, dtype=np.float64),
        weights=np.array(draft.weights, dtype=np.float64),
        temperature=float(draft.temperature),
        metric=None if metric is None else np.array(metric, dtype=np.float64),
        origins=tuple(origins),
        share=share,
        lead=lead,
        distances=distances,
        labels=draft.labels if any(draft.labels) else (),
        edits=(*kept_edits(original.edits, draft.sources), *records),
        trained=_trained(original, draft.sources),
        visited=None if original.visited is None else original.visited.changed(),
    )


def _trained(original: Mixture, sources: tuple[int | None, ...]) -> dict[str, Any]:
    """The notes about the training; those about pruning count the experts."""
    pruned = original.trained.get("pruned")
    if pruned is None:
        return original.trained
    kept = [None if k is None else pruned["kept"][k] for k in sources]
    return original.trained | {"pruned": pruned | {"kept": kept}}

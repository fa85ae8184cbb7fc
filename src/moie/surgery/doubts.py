"""What a person should know of a policy that they have changed: it works, but is it meant?"""

from collections.abc import Iterator, Sequence

import numpy as np

from moie.policy.handwork import ADDED, Record
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading, percent

DOMINATES = 0.95
"""Share of the visited states from which on an expert leads nearly everywhere."""


def doubts(policy: Mixture, records: Sequence[Record]) -> list[str]:
    """Sentences about the experts that some records changed: prototypes outside of what was ever
    visited, weights that cannot matter or that dominate."""
    touched: dict[int, set[str]] = {}
    for one in records:
        if one["expert"] is not None:
            touched.setdefault(one["expert"], set()).add(one["part"])
    reading, found = Reading(policy), list[str]()
    for k, parts in sorted(touched.items()):
        if {"prototype", ADDED} & parts:
            found += _outside(policy, k)
        if {"prototype", "weight", ADDED} & parts:
            found += _weight(reading, k)
    return found


def _outside(policy: Mixture, k: int) -> Iterator[str]:
    if policy.visited is None:
        return
    states = policy.visited.features
    low, high = states.min(axis=0), states.max(axis=0)
    slack = 0.01 * np.maximum(high - low, np.abs(policy.radii))
    at = policy.prototypes[k]
    for i in np.flatnonzero((at < low - slack) | (at > high + slack)).tolist():
        yield (
            f"{policy.label(k)}: {policy.feature_names[i]} {at[i]:.4g} was never visited; there it "
            f"goes from {low[i]:.4g} to {high[i]:.4g}"
        )


def _weight(reading: Reading, k: int) -> Iterator[str]:
    policy = reading.policy
    name, weight = policy.label(k), policy.weights[k]
    if weight <= 1:
        most = percent(reading.most[k])
        yield (
            f"{name}: with weight {weight:.4g} it can never lead, and has at most {most} of a "
            "command; a weight above 1 leads near its prototype"
        )
    elif not reading.can_lead[k]:
        yield f"{name}: it can never lead, others outweigh it all over its reach"
    elif reading.leads is not None and reading.leads[k] >= DOMINATES:
        yield (
            f"{name}: with weight {weight:.4g} it leads in {percent(reading.leads[k])} of the "
            "visited states: hardly anything else acts"
        )

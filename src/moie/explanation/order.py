"""The order in which experts go: each time the one whose removal changes the action least over the
visited states."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.explanation.bound import largest_change, shares
from moie.explanation.facts.schema import Removal
from moie.policy.base import Array
from moie.policy.handwork import kept_edits, kept_labels
from moie.policy.mixture import Mixture

COMPARED = 4000  # most visited states in which the next removal is found
TIED = 1e-3
"""Changes of the action, root mean square as shares of its range, that count as the same. Which of
them is smaller depends on the visited states more than on the policy, so the one that is proved to
change least in any state goes first."""


def _difference(policy: Mixture, actions: NDArray[Any], others: NDArray[Any]) -> float:
    """Root mean square difference of actions, as a share of their range; where only one value is
    allowed, there is none."""
    span = policy.action_high - policy.action_low
    return float(np.sqrt(np.mean(((actions - others) / np.where(span > 0, span, 1.0)) ** 2)))


def change(policy: Mixture, other: Mixture, states: Array) -> float:
    """Difference of the mean actions as the environment gets them."""
    actions, others = (one.clipped(one.means(states)) for one in (policy, other))
    return _difference(policy, actions, others)


def without(policy: Mixture, expert: int, heir: int | None) -> Mixture:
    """The policy without an expert, whose weight goes to the heir."""
    weights = policy.weights.copy()
    if heir is not None:
        weights[heir] += weights[expert]
    kept = [k for k in range(policy.n_experts) if k != expert]
    rows = ("prototypes", "actions", "share", "lead", "distances")
    parts: dict[str, Any] = {name: getattr(policy, name)[kept] for name in rows}
    parts |= {"labels": kept_labels(policy.labels, kept), "edits": kept_edits(policy.edits, kept)}
    parts["visited"] = None if policy.visited is None else policy.visited.changed()
    origins = tuple(policy.origins[k] for k in kept)
    return replace(policy, **parts, weights=weights[kept], origins=origins)


def _least(policy: Mixture, states: Array, wanted: Array) -> tuple[int, int | None]:
    """The expert and its heir whose removal leaves the mean actions closest to the wanted ones; of
    those that are tied, the one that is proved to change least.

    With one prototype at the same place as another the heir makes the removal exact: what counts
    is the sum of their weights.
    """
    activation = policy.activations(states)
    strength = policy.weights * activation
    offsets = policy.actions - policy.default_action
    total, pull = strength.sum(axis=1) + 1.0, strength @ offsets
    found: list[tuple[float, int, int | None]] = []
    for k in range(policy.n_experts):
        rest, rest_pull = total - strength[:, k], pull - strength[:, k, None] * offsets[k]
        for heir in (None, *(j for j in range(policy.n_experts) if j != k)):
            new_total, new_pull = rest, rest_pull
            if heir is not None:
                gained = policy.weights[k] * activation[:, heir]
                new_total, new_pull = rest + gained, rest_pull + gained[:, None] * offsets[heir]
            action = policy.default_action + new_pull / new_total[:, None]
            found.append((_difference(policy, policy.clipped(action), wanted), k, heir))
    least = min(difference for difference, _, _ in found)
    tied = [(k, heir) for difference, k, heir in found if difference <= least + TIED]
    return min(tied, key=lambda one: largest_change(policy, *one))


def removals(policy: Mixture, states: Array) -> Iterator[tuple[Mixture, Removal]]:
    """The whole policy, then one expert less after the other, down to the last."""
    some = states[:: -(-len(states) // COMPARED)]
    wanted = policy.clipped(policy.means(some)).astype(np.float64)
    whole = policy.clipped(policy.means(states))
    smaller, kept, bound = policy, list(range(policy.n_experts)), 0.0
    nothing: Removal = {
        "removed": None,
        "heir": None,
        "change": 0.0,
        "largest": 0.0,
        "bound": 0.0,
        "kept": kept.copy(),
    }
    yield policy, nothing
    while smaller.n_experts > 1:
        expert, heir = _least(smaller, some, wanted)
        # The way from the whole policy is no longer than all steps together.
        bound = min(1.0, bound + largest_change(smaller, expert, heir))
        smaller = without(smaller, expert, heir)
        heir = None if heir is None else kept[heir]
        removed, actions = kept.pop(expert), smaller.clipped(smaller.means(states))
        yield (
            smaller,
            {
                "removed": removed,
                "heir": heir,
                "change": _difference(policy, actions, whole),
                "largest": float(shares(policy, actions - whole).max()),
                "bound": bound,
                "kept": kept.copy(),
            },
        )

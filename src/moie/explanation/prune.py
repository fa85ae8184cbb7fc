"""Make a policy smaller: the automatic form of the paper's manual selection of experts.

Experts go one at a time, each time the one whose removal changes the action least over the visited
states. What the smaller policies earn is measured on the same seeds as what the whole one earns;
the smallest that is good enough is confirmed on seeds that had no part in choosing it.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.errors import InputError
from moie.explanation.facts.schema import Losses, Pruning, Removal, Removed, Smaller
from moie.policy.base import Array
from moie.policy.handwork import kept_edits, kept_labels
from moie.policy.mixture import Mixture
from moie.runs.evaluation import paired_difference, standard_error

SAME = 1e-7
"""A change of the action, as a share of its range, below which a policy is the same: single
precision, in which the environment gets it, cannot tell the two apart."""
Returns = dict[str, list[float]]  # returns on some seeds, by kind of actions
Measure = Callable[[Mixture, int, int], Returns]
"""Returns of a policy, from the number of a set of seeds and a number of episodes."""


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
    """The expert and its heir whose removal leaves the mean actions closest to the wanted ones.

    With one prototype at the same place as another the heir makes the removal exact: what counts
    is the sum of their weights.
    """
    activation = policy.activations(states)
    strength = policy.weights * activation
    offsets = policy.actions - policy.default_action
    total, pull = strength.sum(axis=1) + 1.0, strength @ offsets
    best: tuple[float, int, int | None] = (np.inf, 0, None)
    for k in range(policy.n_experts):
        rest, rest_pull = total - strength[:, k], pull - strength[:, k, None] * offsets[k]
        for heir in (None, *(j for j in range(policy.n_experts) if j != k)):
            new_total, new_pull = rest, rest_pull
            if heir is not None:
                gained = policy.weights[k] * activation[:, heir]
                new_total, new_pull = rest + gained, rest_pull + gained[:, None] * offsets[heir]
            action = policy.default_action + new_pull / new_total[:, None]
            difference = _difference(policy, policy.clipped(action), wanted)
            if difference < best[0] - 1e-12:
                best = (difference, k, heir)
    return best[1], best[2]


def removals(policy: Mixture, states: Array) -> Iterator[tuple[Mixture, Removal]]:
    """The whole policy, then one expert less after the other, down to the last."""
    wanted = policy.clipped(policy.means(states)).astype(np.float64)
    smaller, kept = policy, list(range(policy.n_experts))
    yield policy, {"removed": None, "heir": None, "change": 0.0, "kept": kept.copy()}
    while smaller.n_experts > 1:
        expert, heir = _least(smaller, states, wanted)
        smaller = without(smaller, expert, heir)
        heir = None if heir is None else kept[heir]
        removed, moved = kept.pop(expert), change(policy, smaller, states)
        yield smaller, {"removed": removed, "heir": heir, "change": moved, "kept": kept.copy()}


def _losses(returns: list[float], whole: list[float], loss: float) -> Losses:
    """Losses of a smaller policy, seed by seed; good enough is at most the share `loss` less, or
    less by no more than the error of the difference."""
    lost, error = paired_difference(returns, whole)
    allowed = max(loss * abs(float(np.mean(whole))), error)
    return {
        "return": float(np.mean(returns)),
        "error": standard_error(returns),
        "loss": lost,
        "loss_error": error,
        "allowed": allowed,
        "within": lost <= allowed,
    }


def prune(
    policy: Mixture,
    states: Array,
    loss: float,
    episodes: int,
    measure: Measure,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Pruning, Mixture]:
    """The curve of return against number of experts, and the smallest policy within the loss: the
    first of the candidates, from the smallest on, that is good enough on other seeds, too."""
    if policy.n_experts < 1:
        raise InputError("the policy has no experts: there is nothing to prune")

    @functools.cache
    def measured(one: Mixture, series: int) -> Returns:
        return measure(one, series, (1 + series) * episodes)

    def compared(smaller: Mixture, change: float, series: int) -> Smaller:
        whole = measured(policy, series)
        returns = whole if change < SAME else measured(smaller, series)
        sampled, mean = (_losses(returns[kind], whole[kind], loss) for kind in ("sampled", "mean"))
        return {
            "n_experts": smaller.n_experts,
            "sampled": sampled,
            "mean": mean,
            "within": sampled["within"] and mean["within"],
        }

    policies: list[Mixture] = []
    curve: list[Removed] = []
    for smaller, removal in removals(policy, states):
        row = compared(smaller, removal["change"], 0)
        policies.append(smaller)
        curve.append({**row, **removal})
        tell(f"{row['n_experts']} experts: return {row['sampled']['return']:.1f}")
    confirmation, chosen = [], 0
    for i in reversed(range(1, len(curve))):
        if curve[i]["within"]:
            tell(f"confirming {curve[i]['n_experts']} experts on other seeds")
            confirmation.append(compared(policies[i], curve[i]["change"], 1))
            if confirmation[-1]["within"]:
                chosen = i
                break
    pruning: Pruning = {
        "loss": loss,
        "episodes": episodes,
        "curve": curve,
        "confirmation": confirmation,
        "n_experts": policies[chosen].n_experts,
        "kept": curve[chosen]["kept"],
        "n_parameters": policies[chosen].n_parameters,
    }
    pruned = {"from": policy.n_experts, "kept": pruning["kept"], "loss": loss}
    return pruning, replace(
        _with_use(policies[chosen], states), trained=policy.trained | {"pruned": pruned}
    )


def _with_use(policy: Mixture, states: Array) -> Mixture:
    """The policy with its use of experts as it is over these states."""
    memberships = policy.memberships(states)
    lead = np.bincount(np.argmax(memberships, axis=1), minlength=policy.n_experts)
    return replace(policy, share=memberships.mean(axis=0), lead=lead / len(states))

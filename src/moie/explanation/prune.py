"""Make a policy smaller: the automatic form of the paper's manual selection of experts.

Experts go one at a time, each time the one whose removal changes the action least over the visited
states. What the smaller policies earn is measured on the same seeds as what the whole one earns;
the smallest that is good enough is confirmed on seeds that had no part in choosing it.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.errors import InputError
from moie.explanation.facts.schema import Losses, Pruning, Removed, Smaller
from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.runs.evaluation import standard_error

SAME = 1e-7
"""A change of the action, as a share of its range, below which a policy is the same: single
precision, in which the environment gets it, cannot tell the two apart."""
Returns = dict[str, list[float]]
"""Returns on some seeds, by kind of actions."""
Measure = Callable[[Mixture, int, int], Returns]
"""Returns of a policy, from the number of a set of seeds and a number of episodes."""


@dataclass(frozen=True)
class Removal:
    """One expert less; none less for the whole policy."""

    expert: int | None
    """Its number in the whole policy."""
    heir: int | None
    """The expert that takes over its weight."""
    change: float
    """Change of the mean action by this removal and all before: root mean square over visited
    states, as a share of the action's range."""
    policy: Mixture
    kept: tuple[int, ...]


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


def removals(policy: Mixture, states: Array) -> Iterator[Removal]:
    """One expert after the other, down to the last."""
    wanted = policy.clipped(policy.means(states)).astype(np.float64)
    smaller, kept = policy, list(range(policy.n_experts))
    while smaller.n_experts > 1:
        expert, heir = _least(smaller, states, wanted)
        smaller = without(smaller, expert, heir)
        inherits = None if heir is None else kept[heir]
        number = kept.pop(expert)
        yield Removal(number, inherits, change(policy, smaller, states), smaller, tuple(kept))


def _losses(returns: list[float], whole: list[float], loss: float) -> Losses:
    """What a smaller policy loses, seed by seed; good enough is at most the share `loss` less, or
    less by no more than the error of the difference."""
    lost = np.subtract(whole, returns)
    error = standard_error(lost.tolist())
    allowed = max(loss * abs(float(np.mean(whole))), error)
    return {
        "return": float(np.mean(returns)),
        "error": standard_error(returns),
        "loss": float(lost.mean()),
        "loss_error": error,
        "allowed": allowed,
        "within": bool(lost.mean() <= allowed),
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
    nothing = Removal(None, None, 0.0, policy, tuple(range(policy.n_experts)))

    @functools.cache
    def measured(one: Mixture, series: int) -> Returns:
        return measure(one, series, (1 + series) * episodes)

    def compared(step: Removal, series: int) -> Smaller:
        whole = measured(policy, series)
        returns = whole if step.change < SAME else measured(step.policy, series)
        sampled, mean = (_losses(returns[kind], whole[kind], loss) for kind in ("sampled", "mean"))
        return {
            "n_experts": step.policy.n_experts,
            "sampled": sampled,
            "mean": mean,
            "within": sampled["within"] and mean["within"],
        }

    curve: list[Removed] = []
    steps = [nothing, *removals(policy, states)]
    for step in steps:
        row = compared(step, 0)
        curve.append(
            {
                **row,
                "removed": step.expert,
                "heir": step.heir,
                "change": step.change,
                "kept": list(step.kept),
            }
        )
        tell(f"{row['n_experts']} experts: return {row['sampled']['return']:.1f}")
    confirmation, chosen = [], nothing
    for step, row in reversed(list(zip(steps[1:], curve[1:], strict=True))):
        if row["within"]:
            tell(f"confirming {row['n_experts']} experts on other seeds")
            confirmation.append(compared(step, 1))
            if confirmation[-1]["within"]:
                chosen = step
                break
    pruning: Pruning = {
        "loss": loss,
        "episodes": episodes,
        "curve": curve,
        "confirmation": confirmation,
        "n_experts": chosen.policy.n_experts,
        "kept": list(chosen.kept),
        "n_parameters": chosen.policy.n_parameters,
    }
    return pruning, _signed(chosen, policy, loss, states)


def _signed(chosen: Removal, whole: Mixture, loss: float, states: Array) -> Mixture:
    """The chosen policy with its use of experts as it is now, and where it comes from."""
    memberships = chosen.policy.memberships(states)
    lead = np.bincount(np.argmax(memberships, axis=1), minlength=chosen.policy.n_experts)
    pruned = {"from": whole.n_experts, "kept": list(chosen.kept), "loss": loss}
    return replace(
        chosen.policy,
        share=memberships.mean(axis=0),
        lead=lead / len(states),
        trained=whole.trained | {"pruned": pruned},
    )

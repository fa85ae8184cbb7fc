"""Make a policy smaller: the automatic form of the paper's manual selection of experts.

Experts go one at a time, each time the one whose removal changes the action least over the visited
states. What the smaller policies earn is measured on the same seeds as what the whole one earns;
the smallest that is good enough is confirmed on seeds that had no part in choosing it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.errors import InputError
from moie.policy.mixture import Mixture
from moie.runs.evaluation import standard_error

Array = NDArray[np.float64]
NO_HEIR = -1
SAME = 1e-7
"""A change of the action, as a share of its range, below which a policy is the same: what single
precision, in which the environment gets it, can not tell apart."""
Returns = dict[str, list[float]]
"""Of some seeds, by kind of actions."""
Measure = Callable[[Mixture, int, int], Returns]
"""A policy, the number of a set of seeds and how many episodes: what it earns."""


@dataclass(frozen=True)
class Removal:
    """One expert less."""

    expert: int
    """Its number in the whole policy."""
    heir: int
    """The expert that takes over its weight, or NO_HEIR."""
    change: float
    """Of the mean action by this removal and all before: root mean square over visited states,
    as a share of the action's range."""
    policy: Mixture
    kept: tuple[int, ...]


def _spans(policy: Mixture) -> Array:
    """Of each action; one where only one value is allowed, which no expert changes."""
    span = policy.action_high - policy.action_low
    return np.where(span > 0, span, 1.0)


def change(policy: Mixture, other: Mixture, states: Array) -> float:
    """Root mean square difference of the mean actions as the environment gets them, as a share of
    their range."""
    difference = policy.clipped(policy.means(states)) - other.clipped(other.means(states))
    return float(np.sqrt(np.mean((difference / _spans(policy)) ** 2)))


def without(policy: Mixture, expert: int, heir: int) -> Mixture:
    """The policy without an expert, whose weight goes to the heir."""
    weights = policy.weights.copy()
    if heir != NO_HEIR:
        weights[heir] += weights[expert]
    kept = [k for k in range(policy.n_experts) if k != expert]
    rows = ("prototypes", "actions", "share", "lead", "distances")
    parts: dict[str, Any] = {name: getattr(policy, name)[kept] for name in rows}
    origins = tuple(policy.origins[k] for k in kept)
    return replace(policy, **parts, weights=weights[kept], origins=origins)


def _least(policy: Mixture, states: Array, wanted: Array) -> tuple[int, int]:
    """The expert and its heir whose removal leaves the mean actions closest to the wanted ones.

    With one prototype at the same place as another the heir makes the removal exact: what counts
    is the sum of their weights.
    """
    activation = policy.activations(states)
    strength = policy.weights * activation
    offsets = policy.actions - policy.default_action
    total, pull = strength.sum(axis=1) + 1.0, strength @ offsets
    best: tuple[float, int, int] = (np.inf, 0, NO_HEIR)
    for k in range(policy.n_experts):
        rest, rest_pull = total - strength[:, k], pull - strength[:, k, None] * offsets[k]
        for heir in (NO_HEIR, *(j for j in range(policy.n_experts) if j != k)):
            gained = policy.weights[k] * activation[:, heir] if heir != NO_HEIR else 0.0 * rest
            action = rest_pull + gained[:, None] * offsets[heir]
            action = policy.default_action + action / (rest + gained)[:, None]
            difference = (policy.clipped(action) - wanted) / _spans(policy)
            found = float(np.sqrt(np.mean(difference**2)))
            if found < best[0] - 1e-12:
                best = (found, k, heir)
    return best[1], best[2]


def removals(policy: Mixture, states: Array) -> Iterator[Removal]:
    """One expert after the other, down to the last."""
    wanted = policy.clipped(policy.means(states)).astype(np.float64)
    smaller, kept = policy, list(range(policy.n_experts))
    while smaller.n_experts > 1:
        expert, heir = _least(smaller, states, wanted)
        smaller = without(smaller, expert, heir)
        number = kept[expert]
        inherits = NO_HEIR if heir == NO_HEIR else kept[heir]
        kept.pop(expert)
        yield Removal(number, inherits, change(policy, smaller, states), smaller, tuple(kept))


def _row(n_experts: int, returns: Returns, whole: Returns, loss: float) -> dict[str, Any]:
    """What a smaller policy earns beside the whole one, seed by seed; and whether that is enough:
    at most `loss` less, or less by no more than the error of the difference."""
    kinds = {}
    for kind, values in returns.items():
        lost = np.subtract(whole[kind], values)
        error = standard_error(lost.tolist())
        allowed = max(loss * abs(float(np.mean(whole[kind]))), error)
        kinds[kind] = {
            "return": float(np.mean(values)),
            "error": standard_error(values),
            "loss": float(lost.mean()),
            "loss_error": error,
            "allowed": allowed,
            "within": bool(lost.mean() <= allowed),
        }
    return {
        "n_experts": n_experts,
        **kinds,
        "within": all(kind["within"] for kind in kinds.values()),
    }


def prune(
    policy: Mixture,
    states: Array,
    loss: float,
    episodes: int,
    measure: Measure,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[dict[str, Any], Mixture]:
    """The curve of return against number of experts, and the smallest policy within the loss."""
    if policy.n_experts < 1:
        raise InputError("the policy has no experts: there is nothing to prune")
    whole = measure(policy, 0, episodes)
    first = _row(policy.n_experts, whole, whole, loss)
    steps = list(removals(policy, states))
    curve = [first | {"removed": None, "heir": None, "change": 0.0, "kept": _range(policy)}]
    for step in steps:
        n, same = step.policy.n_experts, step.change < SAME
        row = _row(n, whole if same else measure(step.policy, 0, episodes), whole, loss)
        heir = None if step.heir == NO_HEIR else step.heir
        row |= {"removed": step.expert, "heir": heir, "change": step.change}
        curve.append(row | {"kept": list(step.kept)})
        tell(f"{n} experts: return {row['sampled']['return']:.1f}")
    tried = _confirm(
        policy,
        [s for s, row in zip(steps, curve[1:], strict=True) if row["within"]],
        loss,
        2 * episodes,
        measure,
        tell,
    )
    confirmed = [row for row, _ in tried if row["within"]]
    chosen = tried[-1][1] if confirmed else policy
    n_chosen = chosen.n_experts
    result = {
        "loss": loss,
        "episodes": episodes,
        "curve": curve,
        "confirmation": [row for row, _ in tried],
        "n_experts": n_chosen,
        "kept": next(row["kept"] for row in curve if row["n_experts"] == n_chosen),
        "n_parameters": chosen.n_parameters,
    }
    return result, _signed(chosen, policy, result, states)


def _range(policy: Mixture) -> list[int]:
    return list(range(policy.n_experts))


def _confirm(
    policy: Mixture,
    steps: list[Removal],
    loss: float,
    episodes: int,
    measure: Measure,
    tell: Callable[[str], None],
) -> list[tuple[dict[str, Any], Mixture]]:
    """Candidates on other seeds, the smallest first, until one is good enough there too."""
    tried: list[tuple[dict[str, Any], Mixture]] = []
    whole: Returns = {}
    for step in reversed(steps):
        tell(f"confirming {step.policy.n_experts} experts on other seeds")
        whole = whole or measure(policy, 1, episodes)
        returns = whole if step.change < SAME else measure(step.policy, 1, episodes)
        row = _row(step.policy.n_experts, returns, whole, loss)
        tried.append((row, step.policy))
        if row["within"]:
            break
    return tried


def _signed(chosen: Mixture, whole: Mixture, result: dict[str, Any], states: Array) -> Mixture:
    """The chosen policy with its use of experts as it is now, and where it comes from."""
    memberships = chosen.memberships(states)
    lead = np.bincount(np.argmax(memberships, axis=1), minlength=chosen.n_experts)
    pruned = {"from": whole.n_experts, "kept": result["kept"], "loss": result["loss"]}
    return replace(
        chosen,
        share=memberships.mean(axis=0),
        lead=lead / len(states),
        trained=whole.trained | {"pruned": pruned},
    )

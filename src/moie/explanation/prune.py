"""Make a policy smaller: the automatic form of the paper's manual selection of experts.

Experts go one at a time, each time the one whose removal changes the action least over the visited
states. What hardly changes the action goes without simulation. After that, each smaller policy is
compared with the whole one on the same seeds, on as many of them as it takes, until one is not
found good enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from moie.errors import InputError
from moie.explanation.facts.schema import Answer, Kind, Losses, Pruning, Removal, Removed
from moie.explanation.order import removals
from moie.explanation.sequential import CHANCE, MARGIN, sizes, verdict
from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.policy.truth import TOLERANCE
from moie.runs.evaluation import paired_difference, standard_error

ALIKE = 0.01
"""Share of the action's range. A removal that moves no command by more than this is made without
simulation: it is a fifth of what counts as the same action wherever programs are read."""
KINDS: tuple[Kind, ...] = ("sampled", "mean")
Measure = Callable[[Mixture, Kind, int, int], list[float]]
"""Returns of a policy with one kind of actions: number of the first episode, and how many."""


@dataclass
class _Simulated:
    """Returns by policy and kind of actions; simulated once they are asked for."""

    measure: Measure
    known: dict[tuple[Mixture, Kind], list[float]] = field(default_factory=dict)

    def returns(self, policy: Mixture, kind: Kind, count: int) -> list[float]:
        """The returns of the first episodes."""
        known = self.known.setdefault((policy, kind), [])
        if len(known) < count:
            known += self.measure(policy, kind, len(known), count - len(known))
        return known[:count]


def _alike(removal: Removal) -> Answer | None:
    """Why a policy acts as the whole one does, without simulation; None if it may not. What was
    only seen in visited states must be proved to stay the same action in all others."""
    if removal["removed"] is None:
        return "whole"
    if removal["bound"] <= ALIKE:
        return "proved"
    return "seen" if removal["largest"] <= ALIKE and removal["bound"] <= TOLERANCE else None


def _losses(returns: list[float], whole: list[float], loss: float) -> Losses:
    """Losses of a smaller policy, seed by seed."""
    lost, error = paired_difference(returns, whole)
    return {
        "return": float(np.mean(returns)),
        "error": standard_error(returns),
        "episodes": len(returns),
        "loss": lost,
        "loss_error": error,
        "allowed": loss * abs(float(np.mean(whole))),
        "verdict": verdict(returns, whole, loss),
    }


def _compared(
    smaller: Mixture, whole: Mixture, loss: float, counts: list[int], simulated: _Simulated
) -> dict[Kind, Losses]:
    """Losses with both kinds of actions, after as many of some numbers of episodes as it takes: a
    kind that is decided has no more of them, and one that is not enough decides for both."""
    found: dict[Kind, Losses] = {}
    for count in counts:
        for kind in KINDS:
            if kind not in found or found[kind]["verdict"] == "undecided":
                before = simulated.returns(whole, kind, count)
                found[kind] = _losses(simulated.returns(smaller, kind, count), before, loss)
        if _answer(found) != "undecided":
            break
    return found


def _answer(losses: dict[Kind, Losses]) -> Answer:
    """What both kinds of actions say together."""
    verdicts = [one["verdict"] for one in losses.values()]
    if "not enough" in verdicts:
        return "not enough"
    return "undecided" if "undecided" in verdicts else "enough"


def prune(
    policy: Mixture,
    states: Array,
    loss: float,
    episodes: tuple[int, int],
    measure: Measure,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Pruning, Mixture]:
    """The curve of return against number of experts, and the smallest policy that acts alike or was
    found good enough, all larger ones being so, too. `episodes` of a comparison: those that it
    begins with, and the most.

    Since the search ends at the first policy that is not found good enough, the chance that the
    chosen one loses more than it may is no larger than that of a single comparison.
    """
    if policy.n_experts < 1:
        raise InputError("the policy has no experts: there is nothing to prune")
    margin, counts, simulated = max(loss, MARGIN), sizes(*episodes), _Simulated(measure)
    steps = list(removals(policy, states))
    curve: list[Removed] = []
    chosen, is_over = 0, False
    for i, (smaller, removal) in enumerate(steps):
        answer, losses = _alike(removal), dict[Kind, Losses]()
        if answer is None:
            some = counts[:1] if is_over else counts
            losses = _compared(smaller, policy, margin, some, simulated)
            answer = "not tried" if is_over else _answer(losses)
        is_over = is_over or answer in ("not enough", "undecided")
        chosen = chosen if is_over else i
        curve.append(
            {
                **removal,
                "n_experts": smaller.n_experts,
                "answer": answer,
                "sampled": losses.get("sampled"),
                "mean": losses.get("mean"),
            }
        )
        tell(f"{smaller.n_experts} experts: {answer}")
    for kind in KINDS:
        simulated.returns(policy, kind, counts[0])
        returns = simulated.known[policy, kind]  # of the longest comparison
        curve[0][kind] = {**_losses(returns, returns, margin), "verdict": "enough"}
    smallest = steps[chosen][0]
    pruning: Pruning = {
        "loss": loss,
        "margin": margin,
        "chance": CHANCE,
        "alike": ALIKE,
        "tolerance": TOLERANCE,
        "n_states": len(states),
        "episodes": counts[0],
        "most_episodes": counts[-1],
        "simulated": sum(map(len, simulated.known.values())),
        "curve": curve,
        "n_experts": smallest.n_experts,
        "kept": curve[chosen]["kept"],
        "n_parameters": smallest.n_parameters,
    }
    pruned = {"from": policy.n_experts, "kept": pruning["kept"], "loss": loss}
    return pruning, replace(smallest, trained=policy.trained | {"pruned": pruned})


def with_use(policy: Mixture, states: Array) -> Mixture:
    """The policy with its use of experts as it is over these states."""
    memberships = policy.memberships(states)
    lead = np.bincount(np.argmax(memberships, axis=1), minlength=policy.n_experts)
    return replace(policy, share=memberships.mean(axis=0), lead=lead / len(states))

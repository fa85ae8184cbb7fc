"""What a policy does over some episodes, in one structure from which everything else is drawn.

All numbers come from the policy file and from episodes that repeat; the states of the episodes are
the *visited states*. Distances are those of the policy: of scaled features, by its metric.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.explanation.cycle import Cycle, activity, find_cycle
from moie.explanation.program import by_metric
from moie.explanation.visited import Visited
from moie.policy.mixture import Mixture
from moie.policy.truth import TOLERANCE
from moie.rollout.episode import Episode
from moie.runs.evaluation import Evaluation, standard_error
from moie.runs.truth import Truth

Array = NDArray[np.float64]
UNFAMILIAR = 0.5
"""Default share from which on a state counts as unfamiliar ground."""
MOMENTS = 8
"""Unfamiliar moments that are listed."""
CURVE = 200
"""Points of the default share over time, at most."""


def gather(policy: Mixture, episodes: Sequence[Episode], kind: str, truth: Truth) -> dict[str, Any]:
    """Everything but scenes, pruning and training; plain JSON. `kind`: of the actions."""
    visited = Visited.of(policy, episodes)
    cycle = find_cycle(visited.by_episode(visited.memberships))
    return {
        "format": "moie-facts",
        "version": 1,
        "policy": describe(policy),
        "evaluation": {"actions": kind} | _evaluation(episodes),
        "truth": literal(truth),
        "experts": _experts(policy, visited, cycle),
        "overlap": overlap(policy, visited.states).tolist(),
        "default": _default(policy, visited),
        "cycle": None if cycle is None else _cycle(cycle),
        "features": _features(policy, visited),
        "closeness": _closeness(policy, visited),
        "spacing": spacing(policy, visited.states),
        "shown": _shown(policy, visited),
    }


def describe(policy: Mixture) -> dict[str, Any]:
    """The policy itself."""
    return {
        "task": policy.task,
        "algorithm": policy.trained.get("algorithm", "moie"),
        "trained": {"steps": 0, "seed": None} | policy.trained,
        "n_experts": policy.n_experts,
        "n_features": len(policy.feature_names),
        "n_parameters": policy.n_parameters,
        "temperature": policy.temperature,
        "metric": None if policy.metric is None else policy.metric.tolist(),
        "radii": policy.radii.tolist(),
        "feature_names": list(policy.feature_names),
        "action_names": list(policy.action_names),
        "default_action": policy.default_action.tolist(),
        "action_low": policy.action_low.tolist(),
        "action_high": policy.action_high.tolist(),
        "std": np.exp(policy.log_std).tolist(),
    }


def _evaluation(episodes: Sequence[Episode]) -> dict[str, Any]:
    returns = [float(e.rewards.sum()) for e in episodes]
    return {
        "run_seed": episodes[0].job.run_seed,
        "n_episodes": len(episodes),
        "n_states": sum(e.length for e in episodes),
        "return": float(np.mean(returns)),
        "return_error": standard_error(returns),
        "episodes": [
            {
                "seed": e.job.seed,
                "length": e.length,
                "return": total,
                "distance": e.distance,
                "terminated": e.terminated,
            }
            for e, total in zip(episodes, returns, strict=True)
        ],
    }


def literal(truth: Truth) -> dict[str, Any]:
    """How literally the program may be taken: over episodes with mean actions."""

    def earned(some: Evaluation) -> dict[str, Any]:
        return {
            "return": some.mean,
            "error": some.standard_error,
            "ratio": truth.ratio(some),
            "kept": truth.kept(some),
        }

    return {
        "in_range": truth.in_range,
        "coverage": truth.coverage,
        "attention": truth.attention,
        "largest_action": truth.largest_action,
        "tolerance": TOLERANCE,
        "n_episodes": len(truth.whole.returns),
        "reading": truth.reading,
        "whole": earned(truth.whole),
        "alone": earned(truth.alone),
        "pair": earned(truth.pair),
        "default": earned(truth.default),
    }


def by_use(policy: Mixture, memberships: Array) -> list[int]:
    """Experts in order of use: by the share of steps they lead, then by share of membership."""
    lead = np.bincount(np.argmax(memberships, axis=1), minlength=policy.n_experts)
    return [int(k) for k in np.lexsort((-memberships.mean(axis=0), -lead))]


def _experts(policy: Mixture, visited: Visited, cycle: Cycle | None) -> list[dict[str, Any]]:
    """In order of use."""
    nearest = [_nearest(policy, visited, k) for k in range(policy.n_experts)]
    found = []
    for k in by_use(policy, visited.memberships):
        leads = visited.leader == k
        stretches = [_stretches(part) for part in visited.by_episode(leads)]
        lengths = [n for some in stretches for n in some]
        phase, concentration = (None, None) if cycle is None else activity(cycle.profile[:, k])
        origin = policy.origins[k]
        found.append(
            {
                "expert": k,
                "weight": float(policy.weights[k]),
                "prototype": policy.prototypes[k].tolist(),
                "action": policy.actions[k].tolist(),
                "share": float(visited.memberships[:, k].mean()),
                "lead": float(leads.mean()),
                "peak": float(visited.memberships[:, k].max()),
                "stretch": float(np.mean(lengths)) if lengths else 0.0,
                "phase": phase,
                "concentration": concentration,
                "distance": nearest[k]["distance"],
                "nearest": nearest[k],
                "replay": None,
                "distance_in_training": float(policy.distances[k]),
                "origin": None
                if origin is None
                else {
                    name: getattr(origin, name) for name in ("iteration", "episode", "step", "seed")
                },
            }
        )
    return found


def _stretches(leads: NDArray[np.bool_]) -> list[int]:
    """Lengths of the stretches of steps in which an expert leads."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], leads, [False]]).astype(np.int8)))
    return (edges[1::2] - edges[::2]).tolist()


def _nearest(policy: Mixture, visited: Visited, k: int) -> dict[str, Any]:
    """The visited state that is nearest to a prototype."""
    scaled = (visited.states - policy.prototypes[k]) / policy.closeness_scale
    squared = np.einsum("nd,nd->n", scaled, scaled)
    row = int(np.argmin(squared))
    return {
        "episode": int(visited.episode[row]),
        "step": int(visited.step[row]),
        "distance": float(np.sqrt(squared[row])),
    }


def overlap(policy: Mixture, states: Array) -> Array:
    """(K, K): sum over states of the smaller of two activations, by that of the larger; one if two
    experts are always active together, zero if never."""
    activations = policy.activations(states)
    found = np.eye(policy.n_experts)
    for i in range(policy.n_experts):
        for j in range(i):
            a, b = activations[:, i], activations[:, j]
            either = np.maximum(a, b).sum()
            found[i, j] = found[j, i] = np.minimum(a, b).sum() / either if either > 0 else 0.0
    return found


def _default(policy: Mixture, visited: Visited) -> dict[str, Any]:
    """How much is left to the default, over time, and the moments where that is the most."""
    default = visited.default
    longest = max(e.length for e in visited.episodes)
    width = -(-longest // CURVE)
    bins = visited.step // width
    counts = np.bincount(bins)
    curve = np.bincount(bins, weights=default) / counts
    return {
        "share": float(default.mean()),
        "unfamiliar": float((default >= UNFAMILIAR).mean()),
        "threshold": UNFAMILIAR,
        "curve_step": width,
        "curve": curve.tolist(),
        "curve_episodes": [
            sum(e.length > i * width for e in visited.episodes) for i in range(len(curve))
        ],
        "moments": _moments(policy, visited, default),
    }


def _moments(policy: Mixture, visited: Visited, default: Array) -> list[dict[str, Any]]:
    """The most unfamiliar moments, no two within fifty steps of one episode."""
    found: list[dict[str, Any]] = []
    for row in np.argsort(-default, kind="stable"):
        episode, step = int(visited.episode[row]), int(visited.step[row])
        if any(m["episode"] == episode and abs(m["step"] - step) < 50 for m in found):
            continue
        why = policy.explain(visited.states[row].reshape(policy.observation_shape))
        nearest = why.experts.index(why.nearest)
        found.append(
            {
                "episode": episode,
                "step": step,
                "default": float(default[row]),
                "nearest": why.nearest,
                "distance": why.distances[nearest],
                "differences": [[name, value] for name, value in why.differences[:3]],
            }
        )
        if len(found) == MOMENTS:
            break
    return found


def _cycle(cycle: Cycle) -> dict[str, Any]:
    return {
        "period": cycle.period,
        "n_cycles": cycle.n_cycles,
        "regularity": cycle.regularity,
        "leader": cycle.leader,
        "profile": cycle.profile.tolist(),
    }


def _features(policy: Mixture, visited: Visited) -> list[dict[str, Any]]:
    """The range of the visited states."""
    quantiles = np.quantile(visited.states, (0.0, 0.05, 0.5, 0.95, 1.0), axis=0).T
    names = ("low", "q05", "median", "q95", "high")
    return [
        {"name": name, **dict(zip(names, map(float, row), strict=True))}
        for name, row in zip(policy.feature_names, quantiles, strict=True)
    ]


def _closeness(policy: Mixture, visited: Visited) -> list[dict[str, Any]] | None:
    """What counts as close, the feature that counts the most first; None where nothing was
    learned about that. `span`: of the middle 90% of the visited states, in radii."""
    if policy.metric is None:
        return None
    low, high = np.quantile(visited.states, (0.05, 0.95), axis=0)
    return [
        {
            "feature": i,
            "metric": float(policy.metric[i]),
            "radius": float(policy.radii[i]),
            "span": float((high[i] - low[i]) / policy.radii[i]),
        }
        for i in by_metric(policy)
    ]


def spacing(policy: Mixture, states: Array) -> float | None:
    """Median distance of a visited state to the nearest other: what "near" means here. Of at most
    200 states, spread evenly."""
    if len(states) < 2:
        return None
    found = []
    for row in range(0, len(states), -(-len(states) // 200)):
        scaled = (np.delete(states, row, axis=0) - states[row]) / policy.closeness_scale
        found.append(np.sqrt(np.min(np.einsum("nd,nd->n", scaled, scaled))))
    return float(np.median(found))


def _shown(policy: Mixture, visited: Visited) -> dict[str, Any]:
    """The episode of median return, step by step: what the player shows."""
    returns = [float(e.rewards.sum()) for e in visited.episodes]
    number = int(np.argsort(returns, kind="stable")[(len(returns) - 1) // 2])
    episode = visited.episodes[number]
    memberships = visited.by_episode(visited.memberships)[number]
    distances = np.sqrt(policy.squared_distances(episode.observations[:-1]))
    nearest = np.argmin(distances, axis=1)
    return {
        "episode": number,
        "seed": episode.job.seed,
        "length": episode.length,
        "return": returns[number],
        "rewards": episode.rewards.round(4).tolist(),
        "actions": policy.clipped(episode.taken).astype(float).round(4).tolist(),
        "memberships": [[float(f"{x:.6g}") for x in row] for row in memberships],
        "leader": np.argmax(memberships, axis=1).tolist(),
        "nearest": nearest.tolist(),
        "nearest_distance": distances[np.arange(len(nearest)), nearest].round(4).tolist(),
    }

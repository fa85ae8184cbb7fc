"""The behaviour of a policy over some episodes.

All numbers come from the policy file and from episodes that repeat; the states of the episodes are
the *visited states*. Distances are the policy's: of scaled features, by its metric.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.explanation.facts import schema
from moie.explanation.facts.schema import Behaviour, Kind
from moie.explanation.program import by_metric
from moie.policy.base import Array
from moie.policy.cycle import Cycle, activity, find_cycle
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading, leaders
from moie.policy.truth import NEAR, TOLERANCE
from moie.rollout.episode import Episode
from moie.runs.evaluation import Interval, standard_error
from moie.runs.truth import Raw, Truth

HALF = 0.5  # default share from which on the default leads for certain
MOMENTS = 8  # moments of the largest default share in the facts
ORIGIN = ("iteration", "episode", "step", "seed")  # facts about the visit of a prototype
LISTED = (
    *("temperature", "metric", "radii", "feature_names", "action_names"),
    *("default_action", "action_low", "action_high"),
)
"""Fields of a policy that the facts have as they are, arrays as lists."""
FIDELITY = ("near_alone", "near_pair", "wrong_side")
CURVE = 200  # most points of the default share over time


class Visited:
    """The states of some episodes in which an action was taken, end to end: N in all."""

    def __init__(self, policy: Mixture, episodes: Sequence[Episode]):
        self.episodes, lengths = episodes, [e.length for e in episodes]
        self.states = np.concatenate([e.observations[:-1] for e in episodes])  # (N, d)
        self.memberships = policy.memberships(self.states)  # (N, K)
        self.default = 1.0 - self.memberships.sum(axis=1)
        self.leader = leaders(policy, self.states)  # K is the default
        self.episode = np.repeat(np.arange(len(episodes)), lengths)
        self.step = np.concatenate([np.arange(n) for n in lengths])

    def by_episode(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows of an (N, ...) array, episode by episode."""
        return np.split(values, np.cumsum([e.length for e in self.episodes])[:-1])


def behaviour(policy: Mixture, episodes: Sequence[Episode], kind: Kind, truth: Truth) -> Behaviour:
    """The facts that episodes with one kind of actions show, without pruning."""
    visited = Visited(policy, episodes)
    cycle = find_cycle(visited.by_episode(visited.memberships))
    return {
        "format": "moie-facts",
        "version": 1,
        "policy": _policy(policy),
        "evaluation": _evaluation(episodes, kind),
        "truth": _truth(truth),
        "experts": _experts(policy, visited, cycle),
        "overlap": _overlap(policy.activations(visited.states)).tolist(),
        "default": _default(policy, visited),
        "cycle": cycle,
        "features": _features(policy, visited),
        "closeness": _closeness(policy, visited),
        "spacing": _spacing(policy, visited.states),
        "shown": _shown(policy, visited),
    }


def _policy(policy: Mixture) -> dict[str, Any]:
    """The policy itself, with the standard deviation of its sampled actions."""
    return {
        "task": policy.task,
        "algorithm": policy.trained.get("algorithm", "moie"),
        "trained": {"steps": 0, "seed": None} | policy.trained,
        "n_experts": policy.n_experts,
        "n_features": len(policy.feature_names),
        "n_parameters": policy.n_parameters,
        **{name: np.asarray(getattr(policy, name)).tolist() for name in LISTED},
        "std": np.exp(policy.log_std).tolist(),
    }


def _evaluation(episodes: Sequence[Episode], kind: Kind) -> dict[str, Any]:
    returns = [float(e.rewards.sum()) for e in episodes]
    return {
        "actions": kind,
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
                "distance": e.distance,  # metres, in tasks that know them
                "terminated": e.terminated,  # by the task, not by time
            }
            for e, total in zip(episodes, returns, strict=True)
        ],
    }


def _truth(truth: Truth) -> dict[str, Any]:
    """The measured truth, with the return of each part of the program that acts alone."""
    parts = {part: getattr(truth, part) for part in ("whole", "alone", "pair", "default")}
    return {
        "in_range": truth.in_range,
        "coverage": truth.coverage,
        "attention": truth.attention,
        "largest_action": truth.largest_action,
        "tolerance": TOLERANCE,
        "n_episodes": len(truth.whole.returns),
        "reading": truth.reading,
        **{name: _interval(getattr(truth, name)) for name in FIDELITY},
        "near": NEAR,
    } | {
        part: {
            "return": earned.mean,
            "error": earned.standard_error,
            "ratio": truth.ratio(earned),
            "kept": truth.kept(earned),
        }
        for part, earned in parts.items()
    }


def _interval(of: Interval) -> dict[str, float]:
    """A share of states, and its interval over episodes."""
    return {"share": of.mean, "low": max(of.low, 0.0), "high": min(of.high, 1.0)}


def raw_facts(raw: Raw) -> dict[str, Any]:
    """Returns with raw actions, as facts."""
    each = {"sampled": raw.sampled, "mean": raw.mean}
    return {"learned_raw": raw.learned_raw, "differs": raw.differs} | {
        kind: {"return": earned.mean, "error": earned.standard_error}
        for kind, earned in each.items()
    }


def _experts(policy: Mixture, visited: Visited, cycle: Cycle | None) -> list[schema.Expert]:
    """The experts in order of use, as `moie show` has them."""
    reading = Reading(policy)
    return [_expert(reading, visited, cycle, k) for k in reading.order]


def _expert(reading: Reading, visited: Visited, cycle: Cycle | None, k: int) -> schema.Expert:
    policy = reading.policy
    membership, leads, origin = visited.memberships[:, k], visited.leader == k, policy.origins[k]
    assert reading.leads is not None
    parts = visited.by_episode(leads)
    lengths = [len(list(some)) for part in parts for is_led, some in groupby(part) if is_led]
    phase, concentration = (
        (None, None) if cycle is None else activity(np.asarray(cycle["profile"])[:, k])
    )
    squared = _squared_distances(policy, visited.states, policy.prototypes[k])
    row = int(np.argmin(squared))
    distance = float(np.sqrt(squared[row]))
    return {
        "expert": k,
        "label": policy.labels[k] if policy.labels else "",
        "by_hand": list(policy.by_hand(k)),
        "weight": float(policy.weights[k]),
        "prototype": policy.prototypes[k].tolist(),
        "action": policy.actions[k].tolist(),
        "share": float(reading.share[k]),
        "lead": float(reading.leads[k]),
        "can_lead": bool(reading.can_lead[k]),
        "reach": None if np.isnan(reading.reach[k]) else float(reading.reach[k]),
        "most": float(reading.most[k]),
        "peak": float(membership.max()),
        "stretch": float(np.mean(lengths)) if lengths else 0.0,
        "phase": phase,
        "concentration": concentration,
        "distance": distance,
        "nearest": {
            "episode": int(visited.episode[row]),
            "step": int(visited.step[row]),
            "distance": distance,
        },
        "replay": None,
        "distance_in_training": float(policy.distances[k]),
        "origin": None if origin is None else {name: getattr(origin, name) for name in ORIGIN},
    }


def _squared_distances(policy: Mixture, states: Array, point: Array) -> Array:
    scaled = (states - point) / policy.closeness_scale
    return np.einsum("nd,nd->n", scaled, scaled)


def _overlap(activations: Array) -> Array:
    """(K, K): sum over states of the smaller of two activations (N, K), by that of the larger."""
    overlap = np.eye(activations.shape[1])
    for i in range(len(overlap)):
        for j in range(i):
            a, b = activations[:, i], activations[:, j]
            either = np.maximum(a, b).sum()
            overlap[i, j] = overlap[j, i] = np.minimum(a, b).sum() / either if either > 0 else 0.0
    return overlap


def _default(policy: Mixture, visited: Visited) -> schema.Default:
    default, reading = visited.default, Reading(policy)
    assert reading.leads is not None
    width = -(-max(e.length for e in visited.episodes) // CURVE)
    bins = visited.step // width
    curve = np.bincount(bins, weights=default) / np.bincount(bins)
    return {
        "share": 1.0 - float(reading.share.sum()),
        "lead": float(reading.leads[-1]),
        "half": float((default >= HALF).mean()),
        "threshold": HALF,
        "curve_step": width,
        "curve": curve.tolist(),
        "curve_episodes": [
            sum(e.length > i * width for e in visited.episodes) for i in range(len(curve))
        ],
        "moments": _moments(policy, visited, default),
    }


def _moments(policy: Mixture, visited: Visited, default: Array) -> list[schema.Moment]:
    """The moments with the largest default share, no two within fifty steps of one episode."""
    moments: list[schema.Moment] = []
    for row in np.argsort(-default, kind="stable"):
        episode, step = int(visited.episode[row]), int(visited.step[row])
        if any(m["episode"] == episode and abs(m["step"] - step) < 50 for m in moments):
            continue
        why = policy.explain(visited.states[row].reshape(policy.observation_shape))
        moments.append(
            {
                "episode": episode,
                "step": step,
                "default": float(default[row]),
                "strongest": why.experts[0],
                "distance": why.distances[0],
                "reach": why.reach[0],
                "differences": list(why.differences[:3]),
            }
        )
        if len(moments) == MOMENTS:
            break
    return moments


def _features(policy: Mixture, visited: Visited) -> list[schema.Feature]:
    quantiles = np.quantile(visited.states, (0.0, 0.05, 0.5, 0.95, 1.0), axis=0).T.tolist()
    return [
        {"name": name, "low": low, "q05": q05, "median": median, "q95": q95, "high": high}
        for name, (low, q05, median, q95, high) in zip(policy.feature_names, quantiles, strict=True)
    ]


def _closeness(policy: Mixture, visited: Visited) -> list[dict[str, Any]] | None:
    """How much each feature counts; `span` is the middle 90% of the visited states, in radii."""
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


def _spacing(policy: Mixture, states: Array) -> float | None:
    """Median distance of a visited state to the nearest other, over at most 200 states, spread
    evenly: what "near" means here."""
    if len(states) < 2:
        return None
    nearest = [
        np.sqrt(np.min(_squared_distances(policy, np.delete(states, row, axis=0), states[row])))
        for row in range(0, len(states), -(-len(states) // 200))
    ]
    return float(np.median(nearest))


def _shown(policy: Mixture, visited: Visited) -> schema.Shown:
    returns = [float(e.rewards.sum()) for e in visited.episodes]
    number = int(np.argsort(returns, kind="stable")[(len(returns) - 1) // 2])
    episode = visited.episodes[number]
    memberships = visited.by_episode(visited.memberships)[number]
    states = episode.observations[:-1]
    distances = np.sqrt(policy.temperature * policy.squared_distances(states))
    strongest = np.argmax(memberships, axis=1)
    return {
        "episode": number,
        "seed": episode.job.seed,
        "length": episode.length,
        "return": returns[number],
        "rewards": episode.rewards.round(4).tolist(),
        "actions": episode.given(policy).astype(float).round(4).tolist(),
        "memberships": [[float(f"{x:.6g}") for x in row] for row in memberships],
        "leader": leaders(policy, states).tolist(),
        "strongest": strongest.tolist(),
        "distance": distances[np.arange(len(states)), strongest].round(4).tolist(),
    }

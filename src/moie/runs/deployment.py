"""From the learner's policy to the one that acts: units, names, origins of prototypes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import jax
import numpy as np

from moie.core.network import LinearPolicy, NetworkPolicy
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.selection import KEPT
from moie.environments import spaces
from moie.learn.learner import Report
from moie.policy.base import Origin, Policy
from moie.policy.baselines import Linear, Network
from moie.policy.mixture import Mixture
from moie.policy.visited import Visited, visited_in
from moie.rollout.episode import Episode, Steps
from moie.rollout.scaling import Scaling
from moie.runs.config import RunConfig


def first_policy(config: RunConfig, env: gymnasium.Env, learned: GaussianPolicy) -> Policy:
    """The policy before anything was learned."""
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)  # spaces.check has made sure
    low, high = (np.asarray(b, dtype=np.float64).reshape(-1) for b in (space.low, space.high))
    n_features = int(np.prod(env.observation_space.shape or ()))
    scaling = Scaling.identity(n_features, len(low))
    if config.scales_actions:
        scaling = Scaling.of_range(n_features, low, high)
    features, actions = spaces.names(env, config.feature_names, config.action_names)
    origin: dict[str, Any] = {"algorithm": config.learner.algorithm, "seed": config.seed}
    if config.actions == "raw":  # policies that learned with clipped actions do not say so
        origin["actions"] = config.actions
    common: dict[str, Any] = {
        "task": config.task,
        "default_action": scaling.action_centre,
        "action_low": low,
        "action_high": high,
        "feature_names": features,
        "action_names": actions,
        "observation_shape": tuple(env.observation_space.shape or ()),
        "action_shape": tuple(space.shape),
        "trained": {**origin, "iterations": 0, "steps": 0},
    }
    parts = _in_task_units(learned, scaling)
    if isinstance(learned, MixturePolicy):
        k = len(parts["weights"])
        parts |= {name: np.zeros(k) for name in ("share", "lead", "distances")}
        parts |= {"temperature": config.learner.policy.temperature, "origins": (None,) * k}
        return Mixture(**common, **parts)
    return (Network if isinstance(learned, NetworkPolicy) else Linear)(**common, **parts)


def _in_task_units(policy: GaussianPolicy, scaling: Scaling) -> dict[str, Any]:
    """The learned numbers in the task's own units."""
    learned = jax.tree.map(lambda x: np.asarray(x, dtype=np.float64), policy)
    centre, scale = scaling.action_centre, scaling.action_scale
    parts: dict[str, Any] = {
        "log_std": learned.log_std + np.log(scale),
        "feature_mean": scaling.feature_mean,
        "feature_scale": scaling.feature_scale,
    }
    if isinstance(policy, MixturePolicy):
        parts |= {
            "prototypes": scaling.feature_mean + scaling.feature_scale * learned.prototypes,
            "weights": np.abs(learned.weights),
            "actions": centre + scale * learned.actions,
            "metric": learned.metric,
        }
    elif isinstance(policy, NetworkPolicy):
        *matrices, last = learned.network.matrices
        *biases, offset = learned.network.biases
        parts["matrices"] = (*matrices, scale[:, None] * last)
        parts["biases"] = (*biases, centre + scale * offset)
    elif isinstance(policy, LinearPolicy):
        parts["matrix"] = scale[:, None] * learned.matrix
    return parts


def scaling_of(policy: Policy, config: RunConfig) -> Scaling:
    """The scaling of a policy in the task's units; its action scale follows from the bounds."""
    scale = np.ones_like(policy.default_action)
    if config.scales_actions:
        scale = (policy.action_high - policy.action_low) / 2
    return Scaling(policy.feature_mean, policy.feature_scale, policy.default_action, scale)


Visit = Callable[[int, int], tuple[Any, Origin]]
"""The state of a row of the batch that became prototype k, and where it was visited."""


def visits(policy: Policy, steps: Steps, episodes: list[Episode]) -> Visit:
    """The rows of a batch whose episodes can be repeated."""

    def at(k: int, row: int) -> tuple[Any, Origin]:
        episode, step = episodes[steps.episode[row]], int(steps.step[row])
        job = episode.job
        actions = episode.given(policy)[:step]
        return steps.states[row], Origin(job.iteration, job.number, step, job.seed, actions)

    return at


def _visited(before: Mixture, report: Report, visit: Visit) -> dict[str, Any]:
    """Prototypes that are states of a batch, to the last bit, and where each was visited."""
    prototypes, origins = before.prototypes.copy(), list(before.origins)
    for k, row in enumerate(np.asarray(report.rows)):
        if row != KEPT:
            prototypes[k], origins[k] = visit(k, row)
    return {"prototypes": prototypes, "origins": tuple(origins)}


def deploy(
    before: Policy,
    learned: GaussianPolicy,
    report: Report,
    scaling: Scaling,
    visit: Visit,
    trained: dict[str, int],
) -> Policy:
    """The learned policy in the task's own units, with the origin of every prototype. `trained`:
    iterations and steps."""
    parts = _in_task_units(learned, scaling)
    parts["trained"] = before.trained | trained
    if isinstance(before, Mixture):
        for name in ("share", "lead", "distances"):
            parts[name] = np.asarray(getattr(report, name), dtype=np.float64)
        if report.rows is not None:
            parts |= _visited(before, report, visit)
    return replace(before, **parts)


def visited_by(policy: Mixture, episodes: Sequence[Episode]) -> Visited:
    """States of episodes with mean actions."""
    states = [episode.observations[:-1] for episode in episodes]
    memberships = [policy.memberships(some) for some in states]
    return visited_in(states, memberships, episodes[0].job.run_seed)


def with_visited(policy: Policy, episodes: Sequence[Episode]) -> Policy:
    """A mixture with states of its episodes with mean actions; any other policy as it is."""
    if not isinstance(policy, Mixture):
        return policy
    return replace(policy, visited=visited_by(policy, episodes))

"""Between the learner's policy and the one that acts: units, names, origins of prototypes."""

from dataclasses import replace
from typing import Any

import gymnasium
import jax
import numpy as np

from moie.core.selection import KEPT
from moie.learn.learner import LearnerState, Report
from moie.rollout import tasks
from moie.rollout.episode import Episode, Steps
from moie.rollout.policy import Origin, Policy
from moie.rollout.scaling import Scaling
from moie.runs.config import RunConfig


def first_policy(config: RunConfig, env: gymnasium.Env) -> Policy:
    """The policy before anything was learned: the default action, whatever the state."""
    low, high = (np.asarray(b, dtype=np.float64).reshape(-1) for b in _bounds(env))
    n_features = int(np.prod(env.observation_space.shape or ()))
    scaling = Scaling.identity(n_features, len(low))
    if config.standardise:
        scaling = Scaling.of_range(n_features, low, high)
    experts = config.learner.policy.experts
    return Policy(
        task=config.task,
        prototypes=np.zeros((experts, n_features)),
        weights=np.zeros(experts),
        actions=np.tile(scaling.action_centre, (experts, 1)),
        default_action=scaling.action_centre,
        log_std=np.log(config.learner.policy.initial_std * scaling.action_scale),
        temperature=config.learner.policy.temperature,
        feature_mean=scaling.feature_mean,
        feature_scale=scaling.feature_scale,
        action_low=low,
        action_high=high,
        feature_names=tasks.feature_names(config.task, n_features),
        action_names=tasks.joint_names(config.task, len(low)),
        origins=(None,) * experts,
        observation_shape=tuple(env.observation_space.shape or ()),
        action_shape=tuple(env.action_space.shape or ()),
        share=np.zeros(experts),
        lead=np.zeros(experts),
        trained={"seed": config.seed, "iterations": 0, "steps": 0},
    )


def _bounds(env: gymnasium.Env) -> tuple[Any, Any]:
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)  # check_spaces has seen to it
    return space.low, space.high


def scaling_of(policy: Policy, config: RunConfig) -> Scaling:
    """Of a policy in the task's units; its action scale follows from the bounds."""
    scale = np.ones_like(policy.default_action)
    if config.standardise:
        scale = (policy.action_high - policy.action_low) / 2
    return Scaling(policy.feature_mean, policy.feature_scale, policy.default_action, scale)


def _origin(steps: Steps, episodes: list[Episode], row: int, policy: Policy) -> Origin:
    episode, step = episodes[steps.episode[row]], int(steps.step[row])
    job = episode.job
    actions = policy.clipped(episode.taken[:step])
    return Origin(job.iteration, job.number, step, job.seed, actions)


def deploy(
    before: Policy,
    state: LearnerState,
    report: Report,
    scaling: Scaling,
    steps: Steps,
    episodes: list[Episode],
    n_steps: int,
) -> Policy:
    """The learned policy in the task's own units, with the origin of every prototype."""
    prototypes, origins = before.prototypes.copy(), list(before.origins)
    for k, row in enumerate(np.asarray(report.rows)):
        if row != KEPT:
            prototypes[k] = steps.states[row]
            origins[k] = _origin(steps, episodes, row, before)
    learned = jax.tree.map(lambda x: np.asarray(x, dtype=np.float64), state.policy)
    return replace(
        before,
        prototypes=prototypes,
        weights=learned.weights,
        actions=scaling.action_centre + scaling.action_scale * learned.actions,
        log_std=learned.log_std + np.log(scaling.action_scale),
        feature_mean=scaling.feature_mean,
        feature_scale=scaling.feature_scale,
        origins=tuple(origins),
        share=np.asarray(report.share, dtype=np.float64),
        lead=np.asarray(report.lead, dtype=np.float64),
        trained={**before.trained, "iterations": int(state.iteration), "steps": n_steps},
    )

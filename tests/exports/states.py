"""Policies to export, and the states in which exports are compared with them."""

import itertools
from pathlib import Path

import numpy as np

import moie
from moie.environments import tasks
from moie.environments.catalogue import TASKS
from moie.policy.base import Array, Policy
from moie.policy.baselines import Linear, Network
from moie.policy.mixture import Mixture
from tests import tiny
from tests.simulators import installed

DATA = tiny.ROOT / "tests" / "data"
MIXTURE = DATA / "mixture-v2-metric.safetensors"
FILES = [entry.file for entry in moie.zoo.entries()]
"""Policies that every target has to follow."""
N = 10_000
EXTRAS = {task.id: task.package_extra for task in TASKS}
"""What the paper's tasks need; all others here are MuJoCo's."""


def network(
    hidden: tuple[int, ...] = (64, 64), features: int = 15, actions: int = 3, weight: float = 1.0
) -> Network:
    """A network as PPO's, with weights of the usual size and features that are scaled."""
    rng = np.random.default_rng(3)
    sizes = (features, *hidden, actions)
    pairs = list(itertools.pairwise(sizes))
    return Network(
        task="HopperBulletEnv-v0",
        matrices=tuple(weight * rng.normal(size=(b, a)) / np.sqrt(a) for a, b in pairs),
        biases=tuple(rng.normal(scale=0.1, size=b) for _, b in pairs),
        default_action=np.zeros(actions),
        log_std=np.zeros(actions),
        feature_mean=rng.normal(size=features),
        feature_scale=rng.uniform(0.1, 3.0, features),
        action_low=-np.ones(actions),
        action_high=np.ones(actions),
        feature_names=tuple(f"feature {i}" for i in range(features)),
        action_names=tuple(f"joint {i}" for i in range(actions)),
        observation_shape=(features,),
        action_shape=(actions,),
    )


def linear() -> Linear:
    """A linear policy."""
    policy = moie.load(DATA / "linear-v1.safetensors")
    assert isinstance(policy, Linear)
    return policy


def states(policy: Policy, n: int = N) -> Array:
    """(n, d): visited ones, random ones, some far outside, at and around a million, and zeros."""
    rng = np.random.default_rng(0)
    centres = policy.prototypes if isinstance(policy, Mixture) else policy.feature_mean[None, :]
    scale = policy.feature_scale
    d, some = len(scale), n // 5
    known = centres[rng.integers(len(centres), size=some)]
    visited = known + 0.3 * scale * rng.normal(size=(some, d))
    lived = _episode(policy)
    visited[: len(lived)] = lived[:some]
    parts = [
        visited,
        known + 3.0 * scale * rng.normal(size=(some, d)),
        known * rng.uniform(-1000.0, 1000.0, size=(some, 1)),
        rng.choice([-1e6, 0.0, 1e6], size=(some, d)) + rng.normal(size=(some, d)),
        1e6 * rng.choice([-1.0, 1.0], size=(some // 2, d)),
        rng.uniform(-1e6, 1e6, size=(some // 2, d)),
    ]
    rows = np.concatenate(parts)
    rows[::100] = 0.0
    return rows


def _episode(policy: Policy) -> Array:
    """The states of an episode; none if the task is not installed, or not that of the policy."""
    none = np.empty((0, len(policy.feature_names)))
    if not installed([policy.task], EXTRAS.get(policy.task, "mujoco")):
        return none
    env = tasks.make(policy.task)
    if env.observation_space.shape != policy.observation_shape:
        return none
    observation, _ = env.reset(seed=0)
    rows = [none]
    for _ in range(1000):
        rows.append(np.reshape(observation, (1, -1)).astype(np.float64))
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    env.close()
    return np.concatenate(rows)


def load(file: Path) -> Policy:
    """A policy of the list."""
    return moie.load(file)

"""Random policies and batches, and the KL between two policies in plain NumPy double precision."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from moie.core.policy import MixturePolicy


class Case(NamedTuple):
    policy: MixturePolicy
    states: np.ndarray
    taken: np.ndarray
    advantages: np.ndarray


def random_case(seed: int, n_experts=5, n_states=64, n_features=3, n_actions=2) -> Case:
    """A policy whose prototypes are states of its batch; sizes of everything vary widely."""
    rng = np.random.default_rng(seed)
    spread = 10 ** rng.uniform(-1, 0.5)
    states = (rng.normal(size=(n_states, n_features)) * spread).astype(np.float32)
    weights = rng.exponential(size=n_experts) * 10 ** rng.uniform(-2, 2)
    weights[rng.random(n_experts) < 0.3] = 0.0
    actions = rng.normal(size=(n_experts, n_actions)) * 10 ** rng.uniform(-1, 1)
    log_std = rng.uniform(-3, 1, n_actions)
    policy = MixturePolicy(
        jnp.asarray(states[rng.choice(n_states, n_experts, replace=False)]),
        jnp.asarray(weights, jnp.float32),
        jnp.asarray(actions, jnp.float32),
        jnp.asarray(log_std, jnp.float32),
        float(10 ** rng.uniform(-1, 0.5)),
    )
    taken = means_of(policy, states) + rng.normal(size=(n_states, n_actions)) * np.exp(log_std)
    return Case(policy, states, taken.astype(np.float32), rng.normal(size=n_states).astype("f4"))


def perturbed(policy: MixturePolicy, seed: int) -> MixturePolicy:
    """Weights, actions and log std moved by anything from a hair to far outside the bound."""
    rng = np.random.default_rng([seed, 1])
    size = 10 ** rng.uniform(-4, 1.2, 3)

    def moved(values, by):
        return jnp.asarray(np.asarray(values) + rng.normal(size=values.shape) * by, jnp.float32)

    return MixturePolicy(
        policy.prototypes,
        moved(policy.weights, size[0]),
        moved(policy.actions, size[1]),
        moved(policy.log_std, min(size[2], 1.0)),
        policy.temperature,
    )


def memberships_of(policy: MixturePolicy, states: np.ndarray) -> np.ndarray:
    prototypes = np.asarray(policy.prototypes, np.float64)
    metric = 1.0 if policy.metric is None else np.asarray(policy.metric, np.float64)
    difference = (np.asarray(states, np.float64)[:, None] - prototypes) * metric
    distances = (difference**2).sum(-1)
    weights = np.abs(np.asarray(policy.weights, np.float64))
    strength = weights * np.exp(-float(policy.temperature) * distances)
    return strength / (strength.sum(1, keepdims=True) + 1)


def means_of(policy: MixturePolicy, states: np.ndarray) -> np.ndarray:
    return memberships_of(policy, states) @ np.asarray(policy.actions, np.float64)


def kl_of(policy: MixturePolicy, anchor: MixturePolicy, states: np.ndarray) -> float:
    """KL(policy || anchor) averaged over states, from the parameters alone."""
    std, anchor_std = (np.exp(np.asarray(p.log_std, np.float64)) for p in (policy, anchor))
    z = (means_of(policy, states) - means_of(anchor, states)) / anchor_std
    ratio = (std / anchor_std) ** 2
    return 0.5 * float((z**2).sum(1).mean() + (ratio - 1 - np.log(ratio)).sum())


def entropy_of(policy: MixturePolicy) -> float:
    log_std = np.asarray(policy.log_std, np.float64)
    return float((log_std + 0.5 * np.log(2 * np.pi * np.e)).sum())

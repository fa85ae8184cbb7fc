"""An algorithm of one's own, as `docs/adding_an_algorithm.md` has it: REINFORCE on a linear map."""

import jax
import jax.numpy as jnp

from moie.core.network import LinearPolicy
from moie.learn.algorithm import Method, Outcome
from moie.learn.policy_gradient import Objective
from moie.learn.registry import Algorithm

RATE = jnp.asarray(0.01)


def start(config, n_features, n_actions, *, key):
    return LinearPolicy(n_features, n_actions, config.policy.initial_std), ()


def update(config, policy, own, sampled, *, key):
    objective = Objective.of(policy, sampled.states, sampled.taken, sampled.advantages)
    slope = jax.grad(objective.surrogate)(policy)
    after = jax.tree.map(lambda value, rise: value + RATE * rise, policy, slope)
    return Outcome(after, own, kl=objective.divergence_of(after), facts={})


METHOD = Method(start, update)
RECORD = Algorithm(
    name="reinforce",
    title="REINFORCE",
    about="plain policy gradient on a linear map",
    method="tests.own_algorithm:METHOD",
    uses=frozenset(),
    colour="#444444",
)

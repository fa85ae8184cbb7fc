"""The value function: two tanh networks, the minimum of both. Used while learning only."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core.perceptron import Perceptron


def make_twins(n_features: int, hidden: tuple[int, ...], *, key: PRNGKeyArray) -> Perceptron:
    """Two independent networks as one module with a leading axis of two."""
    sizes = (n_features, *hidden, 1)
    return jax.vmap(lambda k: Perceptron(sizes, key=k))(jax.random.split(key))


def value(twins: Perceptron, state: Float[Array, " d"]) -> Float[Array, ""]:
    """The smaller of the two estimates: overestimation is what hurts."""
    return jnp.min(jax.vmap(lambda network: network(state))(twins))

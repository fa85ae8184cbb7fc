"""The value function: two tanh networks, the minimum of both. Used while learning only."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

TANH_GAIN = 5.0 / 3.0


class ValueNetwork(eqx.Module):
    """A multilayer perceptron of one state, Xavier-uniform weights, zero biases."""

    matrices: tuple[Float[Array, "_out _in"], ...]
    biases: tuple[Float[Array, " _out"], ...]

    def __init__(self, n_features: int, hidden: tuple[int, ...], *, key: PRNGKeyArray):
        sizes = (n_features, *hidden, 1)
        keys = jax.random.split(key, len(sizes) - 1)
        gains = (TANH_GAIN,) * len(hidden) + (1.0,)
        matrices, biases = [], []
        for k, gain, fan_in, fan_out in zip(keys, gains, sizes[:-1], sizes[1:], strict=True):
            limit = gain * (6.0 / (fan_in + fan_out)) ** 0.5
            matrices.append(jax.random.uniform(k, (fan_out, fan_in), minval=-limit, maxval=limit))
            biases.append(jnp.zeros(fan_out))
        self.matrices, self.biases = tuple(matrices), tuple(biases)

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, ""]:
        hidden = state
        for matrix, bias in zip(self.matrices[:-1], self.biases[:-1], strict=True):
            hidden = jnp.tanh(matrix @ hidden + bias)
        return (self.matrices[-1] @ hidden + self.biases[-1])[0]


def make_twins(n_features: int, hidden: tuple[int, ...], *, key: PRNGKeyArray) -> ValueNetwork:
    """Two independent networks as one module with a leading axis of two."""
    return jax.vmap(lambda k: ValueNetwork(n_features, hidden, key=k))(jax.random.split(key))


def value(twins: ValueNetwork, state: Float[Array, " d"]) -> Float[Array, ""]:
    """The smaller of the two estimates: overestimation is what hurts."""
    return jnp.min(jax.vmap(lambda network: network(state))(twins))

"""Tanh networks of ONE input (callers `vmap`): the critic's, and the policy of the baselines."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

TANH_GAIN = 5.0 / 3.0


class Perceptron(eqx.Module):
    """A multilayer perceptron, Xavier-uniform weights, zero biases."""

    matrices: tuple[Float[Array, "_out _in"], ...]
    biases: tuple[Float[Array, " _out"], ...]

    def __init__(self, sizes: tuple[int, ...], last_gain: float = 1.0, *, key: PRNGKeyArray):
        """`sizes`: of the input, the hidden layers and the output."""
        keys = jax.random.split(key, len(sizes) - 1)
        gains = (TANH_GAIN,) * (len(sizes) - 2) + (last_gain,)
        matrices, biases = [], []
        for k, gain, fan_in, fan_out in zip(keys, gains, sizes[:-1], sizes[1:], strict=True):
            limit = gain * (6.0 / (fan_in + fan_out)) ** 0.5
            matrices.append(jax.random.uniform(k, (fan_out, fan_in), minval=-limit, maxval=limit))
            biases.append(jnp.zeros(fan_out))
        self.matrices, self.biases = tuple(matrices), tuple(biases)

    def __call__(self, given: Float[Array, " _in"]) -> Float[Array, " _out"]:
        hidden = given
        for matrix, bias in zip(self.matrices[:-1], self.biases[:-1], strict=True):
            hidden = jnp.tanh(matrix @ hidden + bias)
        return self.matrices[-1] @ hidden + self.biases[-1]

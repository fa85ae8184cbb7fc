"""For ONE state (callers `vmap`): tanh networks, the value function (used while learning only), and
the policies that the paper compares with, a network and a linear map. Both are Gaussians whose
standard deviation does not depend on the state.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core import gaussian
from moie.core.policy import GaussianPolicy

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


def make_twins(n_features: int, hidden: tuple[int, ...], *, key: PRNGKeyArray) -> Perceptron:
    """The value function: two independent networks as one module with a leading axis of two."""
    sizes = (n_features, *hidden, 1)
    return jax.vmap(lambda k: Perceptron(sizes, key=k))(jax.random.split(key))


def smaller_value(twins: Perceptron, state: Float[Array, " d"]) -> Float[Array, ""]:
    """The smaller of the two estimates: overestimation is what hurts."""
    return jnp.min(jax.vmap(lambda network: network(state))(twins))


class NetworkPolicy(GaussianPolicy):
    """`N(f(s), diag sigma^2)` with a multilayer perceptron f."""

    network: Perceptron
    log_std: Float[Array, " A"]

    def __init__(
        self,
        n_features: int,
        hidden: tuple[int, ...],
        n_actions: int,
        initial_std: float = 1.0,
        *,
        key: PRNGKeyArray,
    ):
        # The first mean is nearly zero: the policy explores by its noise, like the first mixture.
        self.network = Perceptron((n_features, *hidden, n_actions), last_gain=0.01, key=key)
        self.log_std = gaussian.equal_log_std(initial_std, n_actions)

    def mean(self, state: Float[Array, " d"]) -> Float[Array, " A"]:
        """The network's output."""
        return self.network(state)


class LinearPolicy(GaussianPolicy):
    """`N(W s, diag sigma^2)`; no offset, as the paper counts its parameters."""

    matrix: Float[Array, "A d"]
    log_std: Float[Array, " A"]

    def __init__(self, n_features: int, n_actions: int, initial_std: float = 1.0):
        self.matrix = jnp.zeros((n_actions, n_features))
        self.log_std = gaussian.equal_log_std(initial_std, n_actions)

    def mean(self, state: Float[Array, " d"]) -> Float[Array, " A"]:
        """W s."""
        return self.matrix @ state

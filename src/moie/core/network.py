"""The policies that the paper compares with: a tanh network and a linear map, for ONE state.

Both are Gaussians whose standard deviation does not depend on the state.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core import gaussian
from moie.core.perceptron import Perceptron
from moie.core.policy import GaussianPolicy


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

"""The deployed policies of the paper's baselines that have no experts: a network, a linear map."""

from dataclasses import dataclass

import numpy as np

from moie.policy.base import Array, Policy


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Network(Policy):
    """A tanh network, of a baseline."""

    matrices: tuple[Array, ...]
    biases: tuple[Array, ...]

    @property
    def n_parameters(self) -> int:
        return sum(a.size for a in (*self.matrices, *self.biases, self.log_std))

    def means(self, states: Array) -> Array:
        hidden = (states - self.feature_mean) / self.feature_scale
        for matrix, bias in zip(self.matrices[:-1], self.biases[:-1], strict=True):
            hidden = np.tanh(hidden.dot(matrix.T) + bias)
        return hidden.dot(self.matrices[-1].T) + self.biases[-1]

    def mean_of(self, state: Array) -> Array:
        return self.means(state)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Linear(Policy):
    """A linear map of the scaled state, of a baseline; `default_action` is its value at zero."""

    matrix: Array
    """(A, d)"""

    @property
    def n_parameters(self) -> int:
        return self.matrix.size + self.log_std.size

    def means(self, states: Array) -> Array:
        scaled = (states - self.feature_mean) / self.feature_scale
        return self.default_action + scaled.dot(self.matrix.T)

    def mean_of(self, state: Array) -> Array:
        return self.means(state)

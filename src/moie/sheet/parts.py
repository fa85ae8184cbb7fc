"""A mixture's parts in radii: the form in which everything of a data sheet is computed.

With u = x / radii and q_k = p_k / radii the logarithm of expert k's strength is
L_k(u) = h_k - |u - q_k|^2, that of the default is 0. Between two experts the difference is affine
in u; between an expert and the default it is a sum of one parabola for each feature. Experts
without weight are not parts: they never act.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading


@dataclass(frozen=True, eq=False)
class Parts:
    """A policy and the states that it visited."""

    policy: Mixture
    states: Array
    """(N, d): visited, in the task's units."""

    @cached_property
    def reading(self) -> Reading:
        return Reading(self.policy)

    @cached_property
    def experts(self) -> NDArray[np.intp]:
        """(n,): the numbers of the experts that have a weight."""
        return np.flatnonzero(self.policy.weights > 0)

    @cached_property
    def heads(self) -> Array:
        """(n,): their head starts h."""
        return self.reading.head_starts[self.experts]

    @cached_property
    def places(self) -> Array:
        """(n, d): their prototypes q in radii."""
        return self.reading.scaled[self.experts]

    @cached_property
    def actions(self) -> Array:
        """(n + 1, A): their actions, and last the default."""
        default = self.policy.default_action[None, :]
        return np.concatenate([self.policy.actions[self.experts], default])

    @cached_property
    def radii(self) -> Array:
        return self.policy.radii

    @cached_property
    def visited(self) -> Array:
        """(N, d): the visited states in radii."""
        return self.states / self.radii

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """(d,), (d,): the visited box, smallest and largest value of each feature, in radii."""
        return self.visited.min(axis=0), self.visited.max(axis=0)

    def logarithms(self, u: Array) -> Array:
        """(N, n + 1): logarithms of all strengths, the default's zero last, at rows (N, d)."""
        steps = u[:, None, :] - self.places
        own = self.heads - np.einsum("nkd,nkd->nk", steps, steps)
        return np.concatenate([own, np.zeros((len(u), 1))], axis=1)

    def memberships(self, u: Array) -> Array:
        """(N, n + 1): memberships of all parts."""
        return softmax(self.logarithms(u))


def softmax(logarithms: Array) -> Array:
    strength = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    return strength / strength.sum(axis=-1, keepdims=True)

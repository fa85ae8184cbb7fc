"""What can be read off a mixture: the one place where it is decided.

A state's *parts* are the experts and the default. A part's *strength* is exp(h - d): its head
start h is the logarithm of its weight, and d the sum over all features of squared differences from
its prototype, in radii; the default's strength is one. The part of the largest strength *leads*.

Whoever prints, draws or exports a policy asks here who leads how often, in which order experts
come, how far they reach and which of them can lead at all. What depends on states rests on those
that the policy file holds. NumPy only.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.policy.projection import nearest_point


@dataclass(frozen=True, eq=False)
class Reading:
    """A policy, read."""

    policy: Mixture

    # --- of the numbers alone ------------------------------------------------------------------

    @cached_property
    def head_starts(self) -> Array:
        """(K,): logarithms of the weights; minus infinity for a weight of zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.policy.weights)

    @cached_property
    def reach(self) -> Array:
        """(K,): the distance, in radii, at which an expert is as strong as the default; NaN where
        it is nowhere as strong."""
        return np.sqrt(np.where(self.head_starts > 0, self.head_starts, np.nan))

    @cached_property
    def most(self) -> Array:
        """(K,): the largest membership that an expert can have anywhere, w / (1 + w): what its
        removal changes, as a share of the way between its action and that of all others."""
        return self.policy.weights / (1.0 + self.policy.weights)

    @cached_property
    def scaled(self) -> Array:
        """(K, d): prototypes in radii."""
        return self.policy.prototypes / self.policy.radii

    @cached_property
    def can_lead(self) -> NDArray[np.bool_]:
        """(K,): whether there is any point at all where an expert leads.

        It leads where it is stronger than every other, which is a polyhedron (of two strengths the
        logarithm of the ratio is affine), and than the default, which is a ball around its
        prototype. So it can if the polyhedron comes within its reach.
        """
        return np.asarray([self._comes_within_reach(k) for k in range(self.policy.n_experts)])

    def _comes_within_reach(self, k: int) -> bool:
        if not self.head_starts[k] > 0:
            return False
        others = [j for j in range(self.policy.n_experts) if j != k and self.policy.weights[j] > 0]
        # |x - p_k|^2 - h_k <= |x - p_j|^2 - h_j, from p_k: 2 x.(p_j - p_k) <= |p_j - p_k|^2 + gain
        normals = 2.0 * (self.scaled[others] - self.scaled[k])
        offsets = (normals**2).sum(axis=1) / 4 + self.head_starts[k] - self.head_starts[others]
        point = nearest_point(normals, offsets)
        return point is not None and float(point @ point) < self.head_starts[k]

    # --- of the visited states -----------------------------------------------------------------

    @cached_property
    def states(self) -> Array | None:
        """(N, d): states that the policy visited; None where they are not known."""
        visited = self.policy.visited
        return None if visited is None else visited.features

    @cached_property
    def shares(self) -> Array | None:
        """(N, K + 1): membership of every part, the default last."""
        if self.states is None:
            return None
        return shares(self.policy, self.states)

    @cached_property
    def leads(self) -> Array | None:
        """(K + 1,): share of the visited states in which each part leads, the default last."""
        if self.shares is None:
            return None
        counts = np.bincount(np.argmax(self.shares, axis=1), minlength=self.shares.shape[1])
        return counts / len(self.shares)

    @cached_property
    def share(self) -> Array:
        """(K,): mean membership of each expert over the visited states; where these are not known,
        over the last batch of its training."""
        return self.policy.share if self.shares is None else self.shares[:, :-1].mean(axis=0)

    @cached_property
    def order(self) -> list[int]:
        """The experts in order of use: by how often they lead, then by mean membership."""
        lead = self.policy.lead if self.leads is None else self.leads[:-1]
        return np.lexsort((-self.share, -lead)).tolist()

    @cached_property
    def effects(self) -> Array | None:
        """(K,): the largest change of a command in any visited state if an expert were not there,
        as a share of the command's range."""
        if self.states is None:
            return None
        policy, whole = self.policy, self.policy.clipped(self.policy.means(self.states))
        found = np.zeros(policy.n_experts)
        for k in range(policy.n_experts):
            weights = policy.weights.copy()
            weights[k] = 0.0
            rest = policy.clipped(replace(policy, weights=weights).means(self.states))
            found[k] = np.abs((whole - rest) / span(policy)).max()
        return found

    def lead_said(self, k: int) -> str:
        """How often an expert leads, in words; where that is not known, what training says."""
        if self.leads is None:
            return f"led {self.policy.lead[k]:.0%} of the last batch, the default not counted"
        return f"leads {percent(self.leads[k])}" if self.leads[k] else "did not lead there"


def percent(share: float) -> str:
    """A share in percent, and no 0% of what is more."""
    return "less than 1%" if 0 < share < 0.005 else f"{share:.0%}"


def span(policy: Mixture) -> Array:
    """(A,): the range of each command; one where there is only one value."""
    wide = policy.action_high - policy.action_low
    return np.where(wide > 0, wide, 1.0)


def shares(policy: Mixture, states: Array) -> Array:
    """(N, K + 1): membership of every part in some states, the default last."""
    memberships = policy.memberships(states)
    return np.concatenate([memberships, 1.0 - memberships.sum(axis=1, keepdims=True)], axis=1)


def leaders(policy: Mixture, states: Array) -> NDArray[np.intp]:
    """(N,): the part that leads in each of some states; K is the default."""
    return np.argmax(shares(policy, states), axis=1)

"""The deployed mixture of experts. The formulas are those of `core.policy`; a test holds the two
together."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moie.errors import InputError
from moie.policy.base import Array, Explanation, Origin, Policy
from moie.policy.handwork import expert_name, hand_parts
from moie.policy.observation import rows_of
from moie.policy.visited import Visited

HELD = 4_000_000
"""Numbers that are held at once while distances are computed."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Mixture(Policy):
    """A short list of experts; `default_action` is taken where no prototype is near."""

    prototypes: Array
    """(K, d): states that were visited, as the environment gave them."""
    weights: Array
    actions: Array
    """(K, A): the action of each expert."""
    temperature: float
    metric: Array | None = None
    """(d,): a learned factor for each scaled feature's difference; None: all one."""
    origins: tuple[Origin | None, ...]
    share: Array
    """(K,): mean membership of each expert over the last batch of its training."""
    lead: Array
    """(K,): share of that batch's states in which the expert's membership is the largest."""
    distances: Array
    """(K,): from each prototype to the nearest state of that batch, in scaled features; zero where
    prototypes are visited states."""
    labels: tuple[str, ...] = ()
    """What a person calls each expert, "" for one without a name; empty if nobody named any."""
    edits: tuple[dict[str, Any], ...] = ()
    """What was changed by hand since training, in that order: see `policy.handwork`."""
    visited: Visited | None = None
    """States in which it acted, after training; None where it was not measured."""

    @property
    def n_experts(self) -> int:
        return len(self.weights)

    def label(self, k: int) -> str:
        """What an expert is called wherever a person reads of it: its number, and its label."""
        return expert_name(k, self.labels)

    def by_hand(self, k: int) -> tuple[str, ...]:
        """The parts of an expert that a person set: "added" (all of it), "prototype", "action",
        "weight"."""
        return hand_parts(self.edits, k)

    def _size(self) -> str:
        return f"{self.n_experts} experts, {super()._size()}"

    @property
    def n_parameters(self) -> int:
        """K (d + A + 1) + A, as the paper counts; a metric has d more."""
        learned = (self.prototypes, self.weights, self.actions, self.log_std)
        return sum(a.size for a in learned) + (0 if self.metric is None else self.metric.size)

    @cached_property
    def closeness_scale(self) -> Array:
        """(d,): the difference of each feature that counts as one, in the task's units."""
        return self.feature_scale if self.metric is None else self.feature_scale / self.metric

    @cached_property
    def radii(self) -> Array:
        """(d,): the difference of each feature that alone brings an activation down to 1/e, in the
        task's units."""
        return self.closeness_scale / np.sqrt(self.temperature)

    @cached_property
    def _scaled_prototypes(self) -> Array:
        return (self.prototypes - self.feature_mean) / self.closeness_scale

    @cached_property
    def _action_offsets(self) -> Array:
        return self.actions - self.default_action

    @cached_property
    def _states_at_once(self) -> int:
        return max(1, HELD // max(1, self.prototypes.size))

    def squared_distances(self, states: Array) -> Array:
        """(N, K) squared distances of scaled features, for states as rows (N, d)."""
        some = self._states_at_once
        if len(states) > some:
            parts = [states[i : i + some] for i in range(0, len(states), some)]
            return np.concatenate([self.squared_distances(part) for part in parts])
        scaled = (states - self.feature_mean) / self.closeness_scale
        difference = scaled[:, None, :] - self._scaled_prototypes
        return np.einsum("nkd,nkd->nk", difference, difference)

    def activations(self, states: Array) -> Array:
        """(N, K) closeness to each prototype (eq. 3 of the paper), for states as rows (N, d)."""
        return np.exp(-self.temperature * self.squared_distances(states))

    def memberships(self, states: Array) -> Array:
        """(N, K) memberships (eq. 1 of the paper), for states as rows (N, d)."""
        strength = self.weights * self.activations(states)
        return strength / (np.add.reduce(strength, axis=1, keepdims=True) + 1.0)

    def means(self, states: Array) -> Array:
        """(N, A) mean actions, not clipped."""
        return self.default_action + self.memberships(states) @ self._action_offsets

    @cached_property
    def _rates(self) -> Array:
        """-temperature / closeness_scale^2: how fast activation falls with each feature."""
        return -self.temperature / self.closeness_scale**2

    @cached_property
    def _weighted(self) -> Array:
        """(K, A + 1): each expert's weight times (its action's offset, 1)."""
        one = np.ones((self.n_experts, 1))
        return self.weights[:, None] * np.concatenate([self._action_offsets, one], axis=1)

    def mean_of(self, state: Array) -> Array:
        """The mean action in one state (d,), not clipped: the inner loop of an episode, so in as
        few calls as it takes."""
        difference = self.prototypes - state
        total = np.exp((difference * difference).dot(self._rates)).dot(self._weighted)
        return self.default_action + total[:-1] / (total[-1] + 1.0)

    def without_origins(self) -> "Mixture":
        """The same policy for acting alone: origins are most of its size."""
        return replace(self, origins=(None,) * self.n_experts, edits=(), visited=None)

    def explain(self, observation: ArrayLike) -> Explanation:
        """Memberships, default share, distances and reach in one state."""
        rows, is_batch = rows_of(observation, self.observation_shape, self.feature_names)
        if is_batch:
            raise InputError(
                f"explain takes one state of shape {self.observation_shape}, "
                f"not a batch of {len(rows)}"
            )
        membership = self.memberships(rows)[0]
        distances = np.sqrt(self.temperature * self.squared_distances(rows)[0])
        order = np.argsort(-membership, kind="stable").tolist()
        reach = [np.sqrt(np.log(w)) if w > 1 else None for w in self.weights]
        difference = rows[0] - self.prototypes[order[0]] if order else np.zeros_like(rows[0])
        by_size = np.argsort(-np.abs(difference / self.closeness_scale), kind="stable")
        return Explanation(
            action=np.clip(self.means(rows)[0], self.action_low, self.action_high),
            experts=tuple(order),
            memberships=tuple(float(membership[k]) for k in order),
            default_share=float(1.0 - membership.sum()),
            distances=tuple(float(distances[k]) for k in order),
            reach=tuple(None if reach[k] is None else float(reach[k]) for k in order),
            differences=tuple((self.feature_names[i], float(difference[i])) for i in by_size),
            nearest=int(np.argmin(distances)) if order else 0,
            labels=self.labels,
        )

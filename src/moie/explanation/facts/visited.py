"""The states that a policy visited in some episodes, and its memberships there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode

COMPARED = 4000  # most visited states that pruning compares policies in


@dataclass(frozen=True, eq=False)
class Visited:
    """The states of some episodes in which an action was taken, end to end."""

    episodes: Sequence[Episode]
    states: Array  # (N, d)
    memberships: Array  # (N, K)
    episode: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def of(cls, policy: Mixture, episodes: Sequence[Episode]) -> "Visited":
        states = np.concatenate([e.observations[:-1] for e in episodes])
        lengths = [e.length for e in episodes]
        return cls(
            episodes,
            states,
            policy.memberships(states),
            np.repeat(np.arange(len(episodes)), lengths),
            np.concatenate([np.arange(n) for n in lengths]),
        )

    @property
    def default(self) -> Array:
        """(N,): the default share."""
        return 1.0 - self.memberships.sum(axis=1)

    @property
    def leader(self) -> NDArray[np.int64]:
        """(N,): the expert that counts the most."""
        return np.argmax(self.memberships, axis=1)

    def by_episode(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows of an (N, ...) array, episode by episode."""
        return np.split(values, np.cumsum([e.length for e in self.episodes])[:-1])

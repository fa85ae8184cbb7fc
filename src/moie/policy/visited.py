"""Where a mixture has been: states of episodes with mean actions, kept in the policy file.

They are what everything that is said about the use of a policy rests on: which part leads how
often, which features matter, the ranges of the features. So it can be said without a simulator, and
says the same wherever it is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.cycle import activity, find_cycle

CONCENTRATED = 0.2
"""Concentration from which on an expert counts as active around a phase: see `cycle.activity`."""
MOST = 500
"""States that are kept."""


@dataclass(frozen=True, eq=False)
class Visited:
    """States in which a policy took its mean action."""

    states: NDArray[np.float32]
    """(N, d): spread evenly over all episodes, in the task's own units."""
    episodes: int
    total: int
    """States of all episodes."""
    seed: int
    """Run seed of the episodes."""
    period: float | None = None
    """Steps after which the memberships repeat themselves; None where they do not."""
    phases: tuple[float | None, ...] = ()
    """The phase of this cycle around which each expert is active, None for one that is active all
    along; empty where there is no cycle, or the experts have been changed since."""

    @property
    def features(self) -> Array:
        """The states in double precision."""
        return self.states.astype(np.float64)

    def changed(self) -> "Visited":
        """The same states, for a policy whose experts are not those that visited them."""
        return replace(self, period=None, phases=())


def visited_in(episodes: Sequence[Array], memberships: Sequence[Array], run_seed: int) -> Visited:
    """The states (T, d) of some episodes, and the memberships (T, K) of the experts in them."""
    states = np.concatenate(episodes)
    rows = np.linspace(0, len(states) - 1, min(MOST, len(states))).round().astype(int)
    cycle = find_cycle(list(memberships))
    phases: tuple[float | None, ...] = ()
    if cycle is not None:
        found = [activity(profile) for profile in np.asarray(cycle["profile"]).T]
        phases = tuple(at if clear >= CONCENTRATED else None for at, clear in found)
    period = None if cycle is None else cycle["period"]
    most = np.finfo(np.float32).max  # an observation may be larger than single precision holds
    some = np.clip(states[rows], -most, most).astype(np.float32)
    return Visited(some, len(episodes), len(states), run_seed, period, phases)

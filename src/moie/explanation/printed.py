"""The numbers that `moie show` prints: as few, and as short, as give the same commands.

Of a policy's numbers many do not matter. Features that hardly change any command in the states that
the policy visits are fixed at their medians there; what they would have added to the distances is
taken off the head starts. Experts that change nothing are left out. The others are rounded as far
as the commands stay the same within `TOLERANCE`. So a reader who computes with the printed numbers
gets what the policy does; `Printed.means` is that computation.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading, leaders, span

LITTLE = 0.005
"""Share of its range by which what is left out may change a command, in a visited state."""
SAME_WITHOUT = 0.99
"""Share of the visited states in which the same part must lead when a feature is left out."""
TOLERANCE, MOST = 0.03, 0.995
"""Share of its range by which a command that is computed from the printed numbers may differ, and
in which share of the visited states it must be that near."""
SAME_LEADER = 0.99
"""Share of the visited states in which the leader that follows from the printed numbers must be the
right one."""
NO_HEAD_START = -999.0
"""Stands for that of an expert without weight."""
LEVELS = 5
"""How often a digit is added to all numbers before they are printed as they are."""


@dataclass(frozen=True, eq=False)
class Printed:
    """A program of IF blocks."""

    reading: Reading
    features: tuple[int, ...]
    """Those that are printed, the one that matters most first."""
    leading: tuple[int, ...]
    """Experts that can lead, in order of use."""
    correcting: tuple[int, ...]
    """Experts that cannot, but change a command."""
    left_out: tuple[int, ...]
    """Experts that change no command by more than LITTLE, all together."""
    radii: Array
    """(F,): of the printed features."""
    head_starts: Array
    """(K,)"""
    prototypes: Array
    """(K, F)"""
    actions: Array
    """(K, A)"""
    default_action: Array
    decimals: tuple[int, ...]
    """Of the printed features' values."""
    radius_decimals: tuple[int, ...]
    head_decimals: int
    action_decimals: tuple[int, ...]

    @property
    def policy(self) -> Mixture:
        return self.reading.policy

    @property
    def experts(self) -> tuple[int, ...]:
        """All that are printed."""
        return (*self.leading, *self.correcting)

    def shares(self, states: Array) -> Array:
        """(N, n + 1): memberships of the printed experts and, last, the default."""
        some = list(self.experts)
        steps = states[:, None, list(self.features)] - self.prototypes[some]
        distances = ((steps / self.radii) ** 2).sum(axis=2)
        strength = np.exp(self.head_starts[some] - distances)
        strength = np.concatenate([strength, np.ones((len(states), 1))], axis=1)
        return strength / strength.sum(axis=1, keepdims=True)

    def means(self, states: Array) -> Array:
        """(N, A): the commands by the printed numbers, clipped to their range."""
        actions = np.concatenate([self.actions[list(self.experts)], self.default_action[None, :]])
        low, high = self.policy.bounds
        return np.clip(self.shares(states) @ actions, low, high)


def printed(policy: Mixture, everything: bool = False) -> Printed:
    """What is printed of a policy. With `everything` all features and experts, with more digits."""
    reading = Reading(policy)
    known = reading.states is not None
    states = reading.states if reading.states is not None else policy.prototypes
    wanted = policy.clipped(policy.means(states)).astype(np.float64)
    features = list(range(len(policy.feature_names)))
    dropped: list[int] = []
    if policy.metric is not None:  # where nothing is known, what has the largest factor comes first
        features = np.argsort(-policy.metric, kind="stable").tolist()
    if known and not everything:
        features = _features_that_matter(policy, states, wanted)
    heads = _fixed(policy, states, features)
    order = reading.order
    if not everything:
        dropped = _spare(reading, states, wanted) if known else []
        dropped += [k for k in order if not policy.weights[k] > 0 and k not in dropped]
        dropped = [k for k in dropped if not policy.by_hand(k)]  # who changed it looks for it
    leading = [k for k in order if reading.can_lead[k] and k not in dropped]
    others = [k for k in order if k not in dropped and k not in leading]
    where = (reading, tuple(features), tuple(leading), tuple(others), tuple(sorted(dropped)))
    for level in range(LEVELS):
        made = _rounded(where, heads, LEVELS if everything else level)
        if everything or _is_near(made, states, wanted):
            break
    return made


def _is_near(made: Printed, states: Array, wanted: Array) -> bool:
    errors = np.abs((made.means(states) - wanted) / span(made.policy)).max(axis=1)
    if np.mean(errors <= TOLERANCE) < MOST:
        return False
    parts = np.asarray([*made.experts, made.policy.n_experts])
    leads = parts[np.argmax(made.shares(states), axis=1)]
    return float(np.mean(leads == leaders(made.policy, states))) >= SAME_LEADER


def _features_that_matter(policy: Mixture, states: Array, wanted: Array) -> list[int]:
    """Features that cannot be fixed at their medians, the one that matters most first."""
    n = len(policy.feature_names)
    medians = np.median(states, axis=0)

    lead = leaders(policy, states)

    def without(fixed: list[int]) -> Array:
        other = states.copy()
        other[:, fixed] = medians[fixed]
        return other

    def change(fixed: list[int]) -> float:
        moved = policy.clipped(policy.means(without(fixed)))
        return float(np.abs((moved - wanted) / span(policy)).max())

    alone = np.asarray([change([i]) for i in range(n)])
    fixed: list[int] = []
    for i in np.argsort(alone, kind="stable").tolist():
        if alone[i] > LITTLE:
            break
        some = [*fixed, i]
        same = np.mean(leaders(policy, without(some)) == lead)
        if change(some) <= LITTLE and same >= SAME_WITHOUT:
            fixed = some
    return [i for i in np.argsort(-alone, kind="stable").tolist() if i not in fixed]


def _fixed(policy: Mixture, states: Array, features: list[int]) -> Array:
    """(K,): head starts, less what the features that are not printed add to the distances."""
    rest = [i for i in range(len(policy.feature_names)) if i not in features]
    medians = np.median(states, axis=0)
    away = (medians[rest] - policy.prototypes[:, rest]) / policy.radii[rest]
    return Reading(policy).head_starts - (away**2).sum(axis=1)


def _spare(reading: Reading, states: Array, wanted: Array) -> list[int]:
    """Experts that cannot lead and change no command by more than LITTLE, all together."""
    policy, found = reading.policy, list[int]()
    assert reading.effects is not None
    for k in np.argsort(reading.effects, kind="stable").tolist():
        if reading.can_lead[k] or reading.effects[k] > LITTLE:
            continue
        weights = policy.weights.copy()
        weights[[*found, k]] = 0.0
        moved = policy.clipped(replace(policy, weights=weights).means(states))
        if np.abs((moved - wanted) / span(policy)).max() <= LITTLE:
            found.append(k)
    return found


def _places(step: float) -> int:
    """Decimals with which numbers are as far apart as this step, or nearer."""
    return max(0, math.ceil(-math.log10(step) - 1e-9))


def _rounded(
    where: tuple[Reading, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    heads: Array,
    level: int,
) -> Printed:
    """All numbers with so many digits beyond the fewest."""
    reading, features, *_ = where
    policy, some = reading.policy, list(features)
    radii = policy.radii[some]
    decimals = tuple(_places(0.1 * radius) + level for radius in radii)
    of_radii = tuple(max(0, 1 + level - math.floor(math.log10(radius))) for radius in radii)
    of_actions = tuple(_places(0.01 * wide) + level for wide in span(policy))
    values = policy.prototypes[:, some]
    finite: Array = np.where(np.isfinite(heads), heads, NO_HEAD_START).astype(np.float64)
    return Printed(
        *where,
        radii=np.asarray([round(x, n) for x, n in zip(radii, of_radii, strict=True)]),
        head_starts=np.round(finite, 1 + level),
        prototypes=_by_column(values, decimals),
        actions=_by_column(policy.actions, of_actions),
        default_action=_by_column(policy.default_action[None, :], of_actions)[0],
        decimals=decimals,
        radius_decimals=of_radii,
        head_decimals=1 + level,
        action_decimals=of_actions,
    )


def _by_column(values: Array, decimals: tuple[int, ...]) -> Array:
    columns = [np.round(column, n) for column, n in zip(values.T, decimals, strict=True)]
    return np.stack(columns, axis=1) if columns else values.copy()

"""What if: who acts, and how, in a state that need not be the present one."""

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moie.errors import InputError
from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.policy.reading import leaders, shares
from moie.workshop.live import DEFAULT, Acting

POINTS = 200
"""States along the range of a feature."""
WIDTH, HEIGHT = 96, 72
"""States of a map."""
MARGIN = 0.15
"""Share of the visited range that is shown beyond either end."""
NO_EXPERT = 255


@dataclass
class Visited:
    """The range of each feature: of all prototypes, and of the states that the page has shown."""

    low: Array
    high: Array
    unit: Array = field(repr=False)
    """What counts as a difference where a feature never changes."""

    @classmethod
    def of(cls, policy: Mixture) -> "Visited":
        at = policy.prototypes
        return cls(at.min(axis=0), at.max(axis=0), policy.feature_scale)

    def add(self, state: Array) -> None:
        """Take in one more state."""
        self.low, self.high = np.minimum(self.low, state), np.maximum(self.high, state)

    def ranges(self, state: Array) -> Array:
        """(d, 2): what to show of each feature; the state is inside."""
        low, high = np.minimum(self.low, state), np.maximum(self.high, state)
        wide = np.where(high > low, high - low, 2 * self.unit)
        return np.stack([low - MARGIN * wide, high + MARGIN * wide], axis=1)


def checked_state(policy: Mixture, state: list[float]) -> Array:
    """A state that the page has sent."""
    wanted = len(policy.feature_names)
    if len(state) != wanted:
        raise InputError(f"state has {len(state)} numbers, expected {wanted}")
    return np.array(state, dtype=np.float64)


def what_if(acting: Acting, visited: Visited, state: Array) -> dict[str, Any]:
    """All about a state: who acts, and who would if one feature were another."""
    ranges, policy = visited.ranges(state), acting.policy
    points = np.linspace(ranges[:, 0], ranges[:, 1], POINTS)  # (POINTS, d)
    states = np.broadcast_to(state, (len(state), POINTS, len(state))).copy()
    for j in range(len(state)):
        states[j, :, j] = points[:, j]
    leading = leaders(policy, states.reshape(-1, len(state)))
    ids = (*acting.ids, DEFAULT)
    profiles = [
        _segments(points[:, j], leading[j * POINTS : (j + 1) * POINTS], ids)
        for j in range(len(state))
    ]
    names = {
        k: policy.label(i).replace(f"expert {i}", f"expert {k}", 1)
        for i, k in enumerate(acting.ids)
    }
    names[DEFAULT] = "the default"
    return {
        "type": "what-if",
        "state": state.tolist(),
        **acting.explained(state),
        "ranges": ranges.tolist(),
        "profiles": profiles,
        "takeovers": [
            _takeovers(segments, float(at), names)
            for segments, at in zip(profiles, state, strict=True)
        ],
    }


def _segments(values: Array, leaders: np.ndarray, ids: tuple[int, ...]) -> list[dict[str, Any]]:
    """Who leads from where to where."""
    cuts = [0, *(np.flatnonzero(np.diff(leaders)) + 1).tolist(), len(values)]
    edges = [float(values[0])]
    edges += [float(values[i - 1] + values[i]) / 2 for i in cuts[1:-1]]
    edges.append(float(values[-1]))
    return [
        {"from": low, "to": high, "leader": ids[leaders[cut]]}
        for low, high, cut in zip(edges, edges[1:], cuts, strict=False)
    ]


def _takeovers(segments: list[dict[str, Any]], at: float, names: dict[int, str]) -> str:
    """Who takes over nearest to a value, above it and below it."""
    here = next(i for i, one in enumerate(segments) if at <= one["to"] or one is segments[-1])
    said = []
    if here + 1 < len(segments):
        above = segments[here + 1]
        said.append(f"{names[above['leader']]} takes over above {above['from']:.3g}")
    if here > 0:
        below = segments[here - 1]
        said.append(f"{names[below['leader']]} takes over below {below['to']:.3g}")
    return "; ".join(said)


def leader_map(acting: Acting, visited: Visited, state: Array, x: int, y: int) -> dict[str, Any]:
    """Who leads where two features differ from a state and all others are held."""
    policy = acting.policy
    n = len(policy.feature_names)
    if not (0 <= x < n and 0 <= y < n and x != y):
        raise InputError(f"the map is of features {x} and {y}, expected two of {n}")
    ranges = visited.ranges(state)
    across = np.linspace(ranges[x, 0], ranges[x, 1], WIDTH)
    down = np.linspace(ranges[y, 1], ranges[y, 0], HEIGHT)
    states = np.broadcast_to(state, (HEIGHT, WIDTH, n)).copy()
    states[:, :, x], states[:, :, y] = across[None, :], down[:, None]
    parts = shares(policy, states.reshape(-1, n))
    leading, most = parts.argmax(axis=1), parts.max(axis=1)
    told = np.where(leading == policy.n_experts, NO_EXPERT, leading).astype(np.uint8)
    return {
        "type": "map",
        "x": x,
        "y": y,
        "x_range": ranges[x].tolist(),
        "y_range": ranges[y].tolist(),
        "width": WIDTH,
        "height": HEIGHT,
        "leaders": base64.b64encode(told.tobytes()).decode(),
        "shares": base64.b64encode(np.rint(255 * most).astype(np.uint8).tobytes()).decode(),
        "ids": list(acting.ids),
        "state": state.tolist(),
        "prototypes": {
            str(k): policy.prototypes[i, [x, y]].tolist() for i, k in enumerate(acting.ids)
        },
    }

"""How much the state may change before another part leads: exact, for each visited state.

A part leads inside a region with a simple boundary, so the nearest point outside is known:

- an expert k is left where another expert j draws level, which is a hyperplane at the distance
  (L_k - L_j) / (2 |q_k - q_j|), or where the default does, a sphere: sqrt(h_k) - |u - q_k|;
- the default is left where the state enters a sphere: |u - q_k| - sqrt(h_k), of those with h_k > 0.

The smallest of these is the tolerance, in radii. For one feature alone the boundary is a zero of a
linear or quadratic function of that feature; there may be none.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.sheet.parts import Parts


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Of N states, in radii."""

    leaders: NDArray[np.intp]
    """(N,): the part that leads; as in `Parts.actions`, the default last."""
    together: Array
    """(N,): the smallest change of all features together, as a Euclidean distance."""
    alone: Array
    """(N, d): the smallest change of each feature alone; infinite where none is enough."""


def tolerance(parts: Parts, u: Array) -> Tolerance:
    """Of states (N, d) in radii."""
    logs, n = parts.logarithms(u), len(parts.heads)
    lead = np.argmax(logs, axis=1)
    together, alone = np.full(len(u), np.inf), np.full(u.shape, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in np.unique(lead).tolist():
            rows = lead == k
            leave = _leave_default if k == n else _leave_expert
            together[rows], alone[rows] = leave(parts, u[rows], logs[rows], k)
    return Tolerance(lead, together, alone)


def _leave_expert(parts: Parts, u: Array, logs: Array, k: int) -> tuple[Array, Array]:
    """From states in which expert k leads."""
    q, head = parts.places, parts.heads[k]
    others = np.delete(np.arange(len(q)), k)
    gaps = logs[:, [k]] - logs[:, others]
    normals = 2.0 * np.abs(q[others] - q[k])
    planes = gaps / np.linalg.norm(normals, axis=1)
    steps = gaps[:, :, None] / normals
    steps = np.where(normals > 0, steps, np.inf)
    away = np.abs(u - q[k])
    squared = (away**2).sum(axis=1)
    sphere = np.sqrt(head) - np.sqrt(squared)
    # |u - q|^2 = h along one feature: (away + step)^2 = h - the rest of the distance.
    room = np.sqrt(np.maximum(head - (squared[:, None] - away**2), 0.0)) - away
    planes = np.where(np.linalg.norm(normals, axis=1) > 0, planes, np.inf)
    return (
        np.minimum(sphere, planes.min(axis=1, initial=np.inf)),
        np.minimum(np.maximum(room, 0.0), steps.min(axis=1, initial=np.inf)),
    )


def _leave_default(parts: Parts, u: Array, logs: Array, k: int) -> tuple[Array, Array]:
    """From states in which the default leads."""
    strong = parts.heads > 0
    heads, away = parts.heads[strong], np.abs(u[:, None, :] - parts.places[strong])
    squared = (away**2).sum(axis=2)
    spheres = np.sqrt(squared) - np.sqrt(heads)
    width = heads[:, None] - (squared[:, :, None] - away**2)
    steps = np.where(width >= 0, away - np.sqrt(np.maximum(width, 0.0)), np.inf)
    return spheres.min(axis=1, initial=np.inf), steps.min(axis=1, initial=np.inf)

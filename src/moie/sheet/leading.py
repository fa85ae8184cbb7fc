"""Where an expert can lead, within the visited box: proved ranges of the features.

In radii, expert k leads where G u <= g, one row for each other expert (2 (q_j - q_k) u <= |q_j|^2 -
|q_k|^2 + h_k - h_j), and |u - q_k|^2 <= h_k, where it is stronger than the default. For any
multipliers y >= 0 and v > 0 the smallest c u in that part of the box is at least

    min over the box of  c u + y (G u - g) + v (|u - q_k|^2 - h_k),

whose minimum decomposes into features: u_i = q_ki - (c + G^T y)_i / 2v, moved into the box. So
whatever multipliers a search comes up with, the bound is proved; a poor search makes it wide, not
wrong. With c = 0 a positive bound proves that the expert leads nowhere in the box.
"""

from dataclasses import dataclass

import numpy as np

from moie.policy.base import Array
from moie.sheet.parts import Parts

ROUNDS = 600
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Region:
    """The ranges of one expert."""

    expert: int
    is_empty: bool
    """Proved: it leads nowhere in the visited box."""
    low: Array
    """(d,): in radii."""
    high: Array
    """(d,)"""


def regions(parts: Parts) -> list[Region]:
    """Of all experts that can lead at all."""
    can = parts.reading.can_lead
    return [_region(parts, at, k) for at, k in enumerate(parts.experts.tolist()) if can[k]]


def _region(parts: Parts, at: int, expert: int) -> Region:
    low, high = parts.box
    q, head = parts.places[at], float(parts.heads[at])
    others = np.delete(np.arange(len(parts.heads)), at)
    normals = 2.0 * (parts.places[others] - q)
    length = np.linalg.norm(normals, axis=1)
    offsets = (normals**2).sum(axis=1) / 4 + head - parts.heads[others]
    rows = length > 0
    # From q on: the ball's middle is zero. Two experts at one place: the stronger one leads.
    normals, offsets = normals[rows] / length[rows, None], offsets[rows] / length[rows]
    n = len(low)
    aims = np.concatenate([np.eye(n), -np.eye(n), np.zeros((1, n))])
    bounds = _least(aims, normals, offsets, head, low - q, high - q) - SLACK
    smallest = np.maximum(low, bounds[:n] + q)
    largest = np.minimum(high, q - bounds[n : 2 * n])
    is_empty = bool(bounds[-1] > SLACK or (smallest > largest + SLACK).any())
    return Region(expert, is_empty, smallest, largest)


def _least(
    aims: Array, normals: Array, offsets: Array, head: float, low: Array, high: Array
) -> Array:
    """(M,): for each aim c (M, d) a number that c u is not below where normals @ u <= offsets,
    |u|^2 <= head and low <= u <= high: the best that ascent of the multipliers finds.

    Where there is no such u the bound grows without end; beyond the box it has grown enough.
    """
    enough = np.maximum(aims * low, aims * high).sum(axis=1) + 1.0
    y, v = np.zeros((len(aims), len(normals))), np.full(len(aims), 0.5 / np.sqrt(head))
    step = np.full(len(aims), 0.1)
    value, up_y, up_v = _dual(aims, y, v, normals, offsets, head, low, high)
    momentum = np.zeros_like(y), np.zeros_like(v)
    for _ in range(ROUNDS):
        move = 0.8 * momentum[0] + up_y, 0.8 * momentum[1] + up_v * v
        trial = (
            np.maximum(y + step[:, None] * move[0], 0.0),
            v * np.exp(np.clip(step * move[1], -1, 1)),
        )
        new, new_y, new_v = _dual(aims, *trial, normals, offsets, head, low, high)
        up = (new > value) & (value < enough)
        momentum = move[0] * up[:, None], move[1] * up
        y, up_y = np.where(up[:, None], trial[0], y), np.where(up[:, None], new_y, up_y)
        v, up_v = np.where(up, trial[1], v), np.where(up, new_v, up_v)
        value, step = np.where(up, new, value), np.where(up, 1.3 * step, 0.4 * step)
    return value


def _dual(
    aims: Array,
    y: Array,
    v: Array,
    normals: Array,
    offsets: Array,
    head: float,
    low: Array,
    high: Array,
) -> tuple[Array, Array, Array]:
    """The bound that multipliers prove, and its gradient by y and by v."""
    pull = aims + y @ normals
    u = np.clip(-pull / (2.0 * v[:, None]), low, high)
    over, beyond = u @ normals.T - offsets, (u**2).sum(axis=1) - head
    value = (aims * u).sum(axis=1) + (y * over).sum(axis=1) + v * beyond
    return value, over, beyond

"""How large the memberships of two experts can be at once, anywhere in the visited box.

log psi_k psi_l = A_k + A_l - 2 log(exp |u|^2 + sum exp A_m) with affine A is concave in u. So its
tangent at any point is a bound, and near the maximum a tight one: an ascent looks for that. Two
experts with opposite actions that are never active together cannot make a slope.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.sheet.parts import Parts, softmax

ROUNDS = 300


def caps(parts: Parts) -> Array:
    """(n + 1, n + 1): numbers that psi_k psi_l exceeds in no state of the visited box; a quarter
    where l is the default, of which nothing is concave, and one where k = l."""
    low, high = parts.box
    n = len(parts.heads)
    found = np.full((n + 1, n + 1), 0.25)
    np.fill_diagonal(found, 1.0)
    k, other = np.triu_indices(n, 1)
    u = np.clip((parts.places[k] + parts.places[other]) / 2, low, high)
    value, gradient = _product(parts, u, k, other)
    best, step = np.zeros(len(u)), np.full(len(u), 0.1)
    for _ in range(ROUNDS):
        beyond = np.maximum(gradient * (low - u), gradient * (high - u)).sum(axis=1)
        best = np.minimum(best, value + beyond)
        trial = np.clip(u + step[:, None] * gradient, low, high)
        new, slope = _product(parts, trial, k, other)
        up = new > value
        u, gradient = np.where(up[:, None], trial, u), np.where(up[:, None], slope, gradient)
        value, step = np.where(up, new, value), np.where(up, 1.4 * step, 0.4 * step)
    found[k, other] = found[other, k] = np.minimum(np.exp(best), 0.25)
    return found


def _product(parts: Parts, u: Array, k: NDArray[Any], other: NDArray[Any]) -> tuple[Array, Array]:
    """(M,), (M, d): log psi_k psi_l for a pair of experts at each of M states, and its gradient."""
    rows, logs = np.arange(len(u)), parts.logarithms(u)
    total = np.logaddexp.reduce(logs, axis=1)
    z = -2.0 * (u[:, None, :] - parts.places)
    mean = np.einsum("mn,mnd->md", softmax(logs)[:, :-1], z)
    return logs[rows, k] + logs[rows, other] - 2.0 * total, z[rows, k] + z[rows, other] - 2.0 * mean

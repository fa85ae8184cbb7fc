"""The point of a polyhedron nearest to the origin."""

import numpy as np

from moie.policy.base import Array

MOST_STEPS = 200
TOLERANCE = 1e-9


def nearest_point(normals: Array, offsets: Array) -> Array | None:
    """argmin |x|^2 subject to normals @ x <= offsets, rows of (m, d) and (m,); None where no x
    fulfils all of them.

    Lawson and Hanson's least-distance programming: with G = -normals and h = -offsets the
    constraints are G x >= h, and the answer follows from the non-negative least squares problem
    min |E u - f|, E = [G^T; h^T], f = (0, ..., 0, 1): with its residual r = E u - f,
    x = -r[:d] / r[d], and there is none where r vanishes.
    """
    if not len(normals):
        return np.zeros(normals.shape[1])
    scale = np.maximum(np.linalg.norm(normals, axis=1), 1e-300)
    matrix = np.concatenate([-normals.T / scale, (-offsets / scale)[None, :]])
    target = np.zeros(len(matrix))
    target[-1] = 1.0
    residual = matrix @ non_negative_least_squares(matrix, target) - target
    if np.linalg.norm(residual) < TOLERANCE:
        return None
    return -residual[:-1] / residual[-1]


def non_negative_least_squares(matrix: Array, target: Array) -> Array:
    """argmin |matrix @ u - target| over u >= 0: Lawson and Hanson's active set method."""
    n = matrix.shape[1]
    found, is_free = np.zeros(n), np.zeros(n, bool)
    gradient = matrix.T @ target
    for _ in range(MOST_STEPS * n):
        if is_free.all() or gradient[~is_free].max() <= TOLERANCE:
            break
        is_free[np.argmax(np.where(is_free, -np.inf, gradient))] = True
        while True:
            trial = np.zeros(n)
            trial[is_free] = np.linalg.lstsq(matrix[:, is_free], target, rcond=None)[0]
            if (trial[is_free] > 0).all():
                break
            falling = is_free & (trial <= 0)
            step = np.min(found[falling] / (found[falling] - trial[falling]))
            found += step * (trial - found)
            is_free &= found > TOLERANCE * max(1.0, found.max())
            found[~is_free] = 0.0
            if not is_free.any():
                return found
        found = trial
        gradient = matrix.T @ (target - matrix @ found)
    return found

"""The steepest slope of each command that a search finds: what a proved bound is held against."""

import numpy as np

from moie.sheet.parts import Parts
from moie.policy.base import Array

STARTS, ROUNDS = 6, 80


def slopes_at(parts: Parts, u: Array) -> Array:
    """(N, A, d): d mu_j / d u_i = sum_k psi_k (a_kj - mu_j) (z_ki), the mean action's slope per radius
    in states (N, d) in radii."""
    psi, a = parts.memberships(u), parts.actions
    z = np.concatenate(
        [-2.0 * (u[:, None, :] - parts.places), np.zeros((len(u), 1, u.shape[1]))], 1
    )
    offsets = a - (psi @ a)[:, None, :]
    return np.einsum("nk,nkj,nkd->njd", psi, offsets, z)


def steepest(parts: Parts, features: list[int]) -> tuple[Array, Array]:
    """(A, F): the largest |d mu_j / d u_i| found in the visited box, and (A, F, d) where.

    For each joint and feature from the best of the visited states, of the prototypes and of the
    points between them, moved into the box: steps along the gradient

        d cov(a, z_i) / d u_m = E (a - Ea) (z_i - Ez_i) (z_m - Ez_m) - 2 [m = i] cov(a, is expert),

    longer after one that climbs, shorter after one that does not.
    """
    low, high = parts.box
    q = parts.places
    some = parts.visited[:: max(1, len(parts.visited) // 500)]
    between = ((q[:, None, :] + q[None, :, :]) / 2).reshape(-1, q.shape[1])
    to_q = (some[::10, None, :] + q[None, :, :]).reshape(-1, q.shape[1]) / 2
    pool = np.clip(np.concatenate([some, between, to_q]), low, high)
    there = np.abs(slopes_at(parts, pool)[:, :, features])
    n_joints = parts.actions.shape[1]
    j, i = (x.ravel() for x in np.meshgrid(range(n_joints), range(len(features)), indexing="ij"))
    first = np.argsort(-there[:, j, i], axis=0)[:STARTS]
    u = pool[first.ravel()]
    j, i = np.tile(j, STARTS), np.tile(np.asarray(features)[i], STARTS)
    value, gradient = _climb(parts, u, j, i)
    step = np.full(len(u), 0.2)
    for _ in range(ROUNDS):
        length = np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)
        trial = np.clip(u + step[:, None] * gradient / length, low, high)
        new, slope = _climb(parts, trial, j, i)
        up = new > value
        u, gradient = np.where(up[:, None], trial, u), np.where(up[:, None], slope, gradient)
        value, step = np.where(up, new, value), np.where(up, 1.5 * step, 0.4 * step)
    by = value.reshape(STARTS, n_joints, len(features))
    at = u.reshape(STARTS, n_joints, len(features), -1)
    best = np.argmax(by, axis=0)[None]
    chosen = np.take_along_axis(at, best[..., None], axis=0)[0]
    return np.take_along_axis(by, best, axis=0)[0], chosen


def _climb(parts: Parts, u: Array, j: Array, i: Array) -> tuple[Array, Array]:
    """(M,), (M, d): the size of the slope of joint j by feature i at each of M states, and its
    gradient."""
    rows = np.arange(len(u))
    psi, a = parts.memberships(u), parts.actions.T[j]
    z = np.concatenate(
        [-2.0 * (u[:, None, :] - parts.places), np.zeros((len(u), 1, u.shape[1]))], 1
    )
    off = psi * (a - np.einsum("nk,nk->n", psi, a)[:, None])
    centred = z - np.einsum("nk,nkd->nd", psi, z)[:, None, :]
    own = np.take_along_axis(centred, i[:, None, None], axis=2)[:, :, 0]
    slope = (off * own).sum(axis=1)
    gradient = np.einsum("nk,nk,nkd->nd", off, own, centred)
    gradient[rows, i] -= 2.0 * off[:, :-1].sum(axis=1)
    sign = np.where(slope < 0, -1.0, 1.0)
    return np.abs(slope), sign[:, None] * gradient

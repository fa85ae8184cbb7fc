"""The steepest slope of each command that a search finds: what a proved bound is held against."""

import numpy as np

from moie.policy.base import Array
from moie.sheet.parts import Parts

STARTS, ROUNDS = 3, 60
RANDOM = 500


def slopes_at(parts: Parts, u: Array) -> Array:
    """(N, A, d): d mu_j / d u_i = sum_k psi_k (a_kj - mu_j) z_ki, the mean action's slope per
    radius in states (N, d) in radii."""
    psi, a = parts.memberships(u), parts.actions
    z = np.concatenate(
        [-2.0 * (u[:, None, :] - parts.places), np.zeros((len(u), 1, u.shape[1]))], 1
    )
    offsets = a - (psi @ a)[:, None, :]
    return np.einsum("nk,nkj,nkd->njd", psi, offsets, z)


def steepest(parts: Parts, features: list[int]) -> Array:
    """(A, F): the largest |d mu_j / d u_i| found in the visited box.

    For each joint and feature from the best of some visited states, of the points between two
    prototypes, of those between a prototype and a visited state, and of random ones, all moved into
    the box: steps along the gradient

        d cov(a, z_i) / d u_m = E (a - Ea) (z_i - Ez_i) (z_m - Ez_m) - 2 [m = i] cov(a, is expert),

    longer after one that climbs, shorter after one that does not.
    """
    low, high = parts.box
    n_joints = parts.actions.shape[1]
    j, i = (x.ravel() for x in np.meshgrid(range(n_joints), features, indexing="ij"))
    starts = []
    for pool in _pools(parts):
        there = np.abs(slopes_at(parts, pool))[:, j, i]
        starts.append(pool[np.argsort(-there, axis=0)[:STARTS]])
    u = np.concatenate(starts)
    n_starts = len(u)
    u, j, i = u.reshape(-1, len(low)), np.tile(j, n_starts), np.tile(i, n_starts)
    value, gradient = _climb(parts, u, j, i)
    step = np.full(len(u), 0.2)
    for _ in range(ROUNDS):
        length = np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)
        trial = np.clip(u + step[:, None] * gradient / length, low, high)
        new, slope = _climb(parts, trial, j, i)
        up = new > value
        u, gradient = np.where(up[:, None], trial, u), np.where(up[:, None], slope, gradient)
        value, step = np.where(up, new, value), np.where(up, 1.5 * step, 0.4 * step)
    return value.reshape(n_starts, n_joints, len(features)).max(axis=0)


def _pools(parts: Parts) -> list[Array]:
    """States of the box to start from, by kind."""
    low, high = parts.box
    q, rng = parts.places, np.random.default_rng(0)
    some = parts.visited[:: max(1, len(parts.visited) // RANDOM)]
    between = (q[:, None, :] + q[None, :, :]) / 2
    halfway = (some[::10, None, :] + q[None, :, :]) / 2
    drawn = rng.uniform(low, high, (RANDOM, len(low)))
    kinds = (some, between.reshape(-1, len(low)), halfway.reshape(-1, len(low)), drawn)
    return [np.clip(kind, low, high) for kind in kinds if len(kind)]


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
    own = centred[rows, :, i]
    slope = (off * own).sum(axis=1)
    gradient = np.einsum("nk,nk,nkd->nd", off, own, centred)
    gradient[rows, i] -= 2.0 * off[:, :-1].sum(axis=1)
    sign = np.where(slope < 0, -1.0, 1.0)
    return np.abs(slope), sign[:, None] * gradient

"""Bounds of memberships and slopes over boxes of states, for many boxes at once.

The slope. With z_k = d L_k / d u_i, which is -2 (u_i - q_ki) for an expert and 0 for the default,

    d mu_j / d u_i = sum_k psi_k (a_kj - mu_j) z_k,

the covariance of a_j and z under the memberships psi. A covariance does not change when 2 u_i is
added to all z: then an expert's z is 2 q_ki, a constant, and the default's is 2 u_i. For fixed
psi it is linear in the default's z, so its largest value is at one of the two ends of the box.

Of psi only this is used: it lies between bounds, so do products, and it sums to one. Three bounds
follow.

- Pairs. For a fixed mean action the covariance is linear in psi, so its largest value over all psi
  is that of some two parts k and l of 1/2 each: (a_k - a_l) (z_k - z_l) / 4.
- Products. The covariance sums psi_k psi_l D_kl over pairs, D_kl = (a_k - a_l) (z_k - z_l).
  All psi_k psi_l together, being (1 - sum psi^2) / 2, are at most m = (1 - 1/(n + 1)) / 2. So for
  any t >= 0 the sum is at most t m plus that of the bounds of psi_k psi_l times the excess of D_kl
  over t.
- Corners. For any c below the mean action and e below the mean of z (or both above),
  cov = E (a - c)(z - e) - (E a - c)(E z - e) <= E (a - c)(z - e), which is linear in psi.
"""

from dataclasses import dataclass

import numpy as np

from moie.policy.base import Array
from moie.sheet.parts import Parts, softmax

LEVELS = (0.0, 0.1, 0.2, 0.3)
"""Values of t that are tried, as parts of the largest D."""
MARGIN = 1.0 + 1e-9
"""Bounds are this much larger than computed, more than rounding can be wrong by."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Bounds of the memberships of all n + 1 parts over each of B boxes."""

    low: Array
    """(B, n + 1)"""
    high: Array
    """(B, n + 1)"""
    products: Array
    """(B, n + 1, n + 1): upper bounds of psi_k psi_l."""
    pull: Array
    """(B, d): how much each feature matters for these bounds: the one to split along."""


def shares_over(parts: Parts, low: Array, high: Array, limits: Array | None = None) -> Shares:
    """Bounds of the memberships over boxes (B, d) in radii; `limits` are known of all products.

    psi_l = 1 / sum_k exp(L_k - L_l). Each difference L_k - L_l has an exact range over the box: it
    is affine or a sum of parabolas, so it decomposes into features. And of an expert log psi_l is
    concave (A_l - log(exp |u|^2 + sum exp A_m) with A affine), so it is below its tangent at the
    middle; of the default |u|^2 takes the place of A_l, which is above its own tangent by the
    squared distance from the middle.
    """
    q, n = parts.places, len(parts.heads)
    middle, half = (low + high) / 2, (high - low) / 2
    away = middle[:, None, :] - q
    logs = parts.logarithms(middle)
    apart = np.zeros((len(low), n + 1, n + 1))
    """[b, k, l]: the largest value of L_k - L_l."""
    gaps = 2.0 * np.abs(q[:, None, :] - q[None, :, :])
    apart[:, :n, :n] = logs[:, :n, None] - logs[:, None, :n]
    apart[:, :n, :n] += (half @ gaps.reshape(n * n, len(low[0])).T).reshape(len(low), n, n)
    nearest = np.maximum(np.abs(away) - half[:, None, :], 0.0)
    farthest = np.abs(away) + half[:, None, :]
    apart[:, :n, n] = parts.heads - np.einsum("bkd,bkd->bk", nearest, nearest)
    apart[:, n, :n] = np.einsum("bkd,bkd->bk", farthest, farthest) - parts.heads
    with np.errstate(over="ignore"):
        floor = 1.0 / np.exp(apart).sum(axis=1)
        ceiling = 1.0 / np.exp(-apart).sum(axis=2)
    psi = softmax(logs)
    psi = softmax(logs)
    z = np.concatenate([-2.0 * away, np.zeros((len(low), 1, low.shape[1]))], axis=1)
    slopes = z - np.einsum("bk,bkd->bd", psi, z)[:, None, :]
    log_psi = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
    tangent = log_psi + np.einsum("bkd,bd->bk", np.abs(slopes), half)
    bend = np.zeros((len(low), n + 1))
    bend[:, n] = (half**2).sum(axis=1)
    tangent += bend
    top = np.minimum(ceiling, np.exp(np.minimum(tangent, 0.0)))
    # The slope depends on u_i through the default's z, too.
    pull = (np.einsum("bk,bkd->bd", top, np.abs(slopes)) + 2.0 * top[:, n:]) * half
    products = _products(top, log_psi, slopes, half, bend)
    if limits is not None:
        products = np.minimum(products, limits)
    return Shares(np.minimum(floor, top), top, products, pull)


def _products(top: Array, log_psi: Array, slopes: Array, half: Array, bend: Array) -> Array:
    """(B, n + 1, n + 1): upper bounds of psi_k psi_l: of the bounds of both, or a quarter, or by
    the tangents of the sum of their logarithms at the middle, as for psi_k. Of k = l they are
    not the square's, and nobody asks for them."""
    rises = np.abs(slopes[:, :, None, :] + slopes[:, None, :, :])
    tangent = log_psi[:, :, None] + log_psi[:, None, :] + np.einsum("bkld,bd->bkl", rises, half)
    tangent += bend[:, :, None] + bend[:, None, :]
    both = np.minimum(top[:, :, None] * top[:, None, :], 0.25)
    return np.minimum(both, np.exp(np.minimum(tangent, 0.0)))


def largest_mean(values: Array, low: Array, high: Array) -> Array:
    """(...): the largest sum of values times psi for low <= psi <= high, sum psi = 1.

    What is left of one after all `low` goes to the largest values first, as far as `high` allows.
    """
    values, wide = np.broadcast_arrays(values, high - low)
    order = np.argsort(-values, axis=-1)
    value = np.take_along_axis(values, order, axis=-1)
    room = np.take_along_axis(wide, order, axis=-1)
    left = 1.0 - low.sum(axis=-1)[..., None]
    filled = np.minimum(np.cumsum(room, axis=-1), left)
    given = np.diff(filled, axis=-1, prepend=0.0)
    return (given * value).sum(axis=-1) + (low * values).sum(axis=-1)


def slopes_over(
    parts: Parts,
    low: Array,
    high: Array,
    features: list[int],
    joints: list[int],
    limits: Array | None = None,
) -> tuple[Array, Array]:
    """(B, J, F): upper bounds of |d mu_j / d u_i| over each box, for these joints and features; and
    (B, d), how much a split along each feature promises."""
    shares = shares_over(parts, low, high, limits)
    a = parts.actions.T[joints][None, :, None, :]  # (1, J, 1, n + 1)
    prototypes = 2.0 * parts.places[:, features].T
    z = np.broadcast_to(prototypes, (len(low), *prototypes.shape))
    best = np.zeros((len(low), len(joints), len(features)))
    for end in (low, high):
        whole = np.concatenate([z, 2.0 * end[:, features, None]], axis=2)[:, None]
        for sign in (1.0, -1.0):
            best = np.maximum(best, _covariance(shares, a, sign * whole))
    return best * MARGIN, shares.pull


def _covariance(shares: Shares, a: Array, z: Array) -> Array:
    """(B, J, F): an upper bound of the covariance of a (1, J, 1, n + 1) and z (B, 1, F, n + 1)."""
    low, high = shares.low[:, None, None], shares.high[:, None, None]
    k, other = np.triu_indices(a.shape[-1], 1)
    rises = np.maximum((a[..., k] - a[..., other]) * (z[..., k] - z[..., other]), 0.0)
    caps = shares.products[:, None, None, k, other]
    most, together = rises.max(axis=-1, initial=0.0), (1.0 - 1.0 / a.shape[-1]) / 2
    found = most / 4
    for level in LEVELS:
        excess = np.maximum(rises - (level * most)[..., None], 0.0)
        found = np.minimum(found, level * together * most + (excess * caps).sum(axis=-1))
    full = np.broadcast_shapes(a.shape, z.shape)
    for sign in (1.0, -1.0):
        c = sign * -largest_mean(-sign * a, low[:, :, :1], high[:, :, :1])
        e = sign * -largest_mean(-sign * z, low, high)
        values = np.broadcast_to((a - c[..., None]) * (z - e[..., None]), full)
        found = np.minimum(found, largest_mean(values, low, high))
    return np.maximum(found, 0.0)

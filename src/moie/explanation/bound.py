"""How much a removal can change the policy's commands in any state at all, visited or not.

Without expert k the mean action differs by psi_k (a_k - rest): psi_k is the expert's membership,
and the rest is a blend of the other experts' actions and the default. Both factors have a largest
value over all states; clipping to the action's range makes no difference larger.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.mixture import Mixture

ROUNDS = 60  # steps towards the state where an expert's membership is the largest


def shares(policy: Mixture, actions: NDArray[Any]) -> Array:
    """Differences of actions as shares of their range; none where only one value is allowed."""
    span = policy.action_high - policy.action_low
    return np.where(span > 0, np.abs(actions) / np.where(span > 0, span, 1.0), 0.0)


@functools.lru_cache(maxsize=256)
def largest_membership(policy: Mixture, expert: int) -> float:
    """A number that the expert's membership exceeds in no state.

    With y = x - p_k and v_j = p_j - p_k, in scaled features, 1 / psi_k - 1 is a sum of exponentials
    of T |y|^2 - log w_k and of 2 T y v_j - T |v_j|^2 + log(w_j / w_k), one for each other expert.
    The logarithm of such a sum is at least the mean of the exponents by any shares q, plus the
    entropy of q; and the smallest value of that mean over all y is known in closed form. So each q
    proves a limit. Without the other experts (q_0 = 1) it is w_k / (1 + w_k); the rounds look for
    a q that proves more.
    """
    weights = policy.weights
    if weights[expert] <= 0:
        return 0.0
    others = [j for j in range(policy.n_experts) if j != expert and weights[j] > 0]
    scaled = (policy.prototypes - policy.feature_mean) / policy.closeness_scale
    v, heat = scaled[others] - scaled[expert], policy.temperature
    level = np.log(weights[others] / weights[expert]) - heat * np.einsum("jd,jd->j", v, v)
    own = -np.log(weights[expert])
    y, best = np.zeros(scaled.shape[1]), float(own)
    for _ in range(ROUNDS):
        exponents = np.append(own + heat * y @ y, level + 2 * heat * v @ y)
        q = np.exp(exponents - exponents.max())
        q = np.maximum(q / q.sum(), 1e-12)
        q /= q.sum()
        pull = q[1:] @ v
        least = q[0] * own + q[1:] @ level - heat * pull @ pull / q[0] - q @ np.log(q)
        best = max(best, float(least))
        # Newton's step for the sum with its first curvature alone, cut short to stay stable.
        step = -(q[0] * y + pull) / (q[0] + 2 * heat * np.einsum("j,jd,jd->", q[1:], v, v))
        y = y + step
    return float(1.0 / (1.0 + np.exp(best)))


def largest_change(policy: Mixture, expert: int, heir: int | None) -> float:
    """A share of the action's range that no component of the mean action, clipped, changes by more
    than in any state, when the expert goes and the heir gets its weight."""
    others = np.delete(policy.actions, expert, axis=0)
    mine, blend = policy.actions[expert], np.concatenate([others, policy.default_action[None, :]])
    limit = largest_membership(policy, expert)
    change = limit * shares(policy, mine - blend).max(axis=0)
    if heir is not None:
        if np.array_equal(policy.prototypes[heir], policy.prototypes[expert]):
            # Both are active together: the action changes by psi_k (a_heir - a_k), no more.
            change = limit * shares(policy, mine - policy.actions[heir])
        else:
            # The weight that the heir gains is an expert of its own at the heir's place.
            gained, total = policy.weights[expert], policy.weights[expert] + policy.weights[heir]
            far = shares(policy, policy.actions[heir] - blend).max(axis=0)
            change = change + gained / (1.0 + total) * far
    return float(min(change.max(), 1.0))

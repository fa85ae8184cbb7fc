"""What is proved of the commands for every state there is: their range, and what each expert is
good for."""

from typing import Any

import numpy as np

from moie.explanation.bound import largest_membership
from moie.policy.base import Array
from moie.sheet.parts import Parts


def command_range(parts: Parts) -> tuple[Array, Array]:
    """(A,), (A,): the smallest and the largest command of each joint over all states.

    The mean action is a blend of the actions, so it lies in their hull: for each joint between the
    smallest and the largest of the parts' actions. Commands are clipped to the range.
    """
    low, high = parts.policy.action_low, parts.policy.action_high
    smallest, largest = parts.actions.min(axis=0), parts.actions.max(axis=0)
    return np.clip(smallest, low, high), np.clip(largest, low, high)


def deletions(parts: Parts) -> list[dict[str, Any]]:
    """For each expert the largest membership that it can have in any state, and for each joint how
    much the command can change in any state if the expert were deleted.

    Without expert k the mean action differs by psi_k (a_k - rest), where the rest is a blend of the
    other parts: at most the largest psi_k times the largest |a_kj - a_lj|. Clipping makes no
    difference larger. psi_k is at most w / (1 + w); `explanation.bound` proves less where other
    experts are near.
    """
    policy, found = parts.policy, []
    span = policy.action_high - policy.action_low
    for k in range(policy.n_experts):
        most = largest_membership(policy, k)
        rest = parts.actions[np.append(parts.experts, -1) != k]
        away = np.abs(policy.actions[k] - rest).max(axis=0)
        found.append(
            {
                "expert": k,
                "name": policy.label(k),
                "weight": float(policy.weights[k]),
                "share_by_weight": float(policy.weights[k] / (1.0 + policy.weights[k])),
                "largest_share": most,
                "largest_change": np.minimum(most * away, span).tolist(),
            }
        )
    return found

"""Between the task's units and the learner's: comparable features, actions of unit range.

Distances need comparable features. Where features are standardised, mean and scale are estimated
from the first batches and then fixed: a moving scale would move the policy out of its trust region.
The first mean of a mixture or a linear policy does not depend on the state, so nothing moves when
they are set; that of a network is nearly zero everywhere, and moves by a hundredth of its noise.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moie.core.batch import Batch
from moie.rollout.episode import Steps

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """`learner = (task - offset) / scale`, for features and for actions."""

    feature_mean: Array
    feature_scale: Array
    action_centre: Array
    action_scale: Array

    @classmethod
    def identity(cls, n_features: int, n_actions: int) -> "Scaling":
        """Observations and actions as they come: the paper's tasks."""
        return cls.of_range(n_features, -np.ones(n_actions), np.ones(n_actions))

    @classmethod
    def of_range(cls, n_features: int, low: Array, high: Array) -> "Scaling":
        """Actions by the middle and half the range of the action space; features untouched."""
        return cls(np.zeros(n_features), np.ones(n_features), (low + high) / 2, (high - low) / 2)

    def with_features(self, states: Array) -> "Scaling":
        """Features by their mean and standard deviation over states; constant ones left alone."""
        # Rounding alone gives a constant feature a spread of some ulps of its size.
        return self.with_moments(states.mean(axis=0), states.std(axis=0), 1e-9)

    def with_moments(self, mean: Any, std: Any, spread: float) -> "Scaling":
        """The same from mean and standard deviation; `spread`: of a constant feature at most,
        relative to its size."""
        mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        varies = std > spread * np.maximum(np.abs(mean), 1e-3)
        return replace(
            self,
            feature_mean=np.where(varies, mean, 0.0),
            feature_scale=np.where(varies, std, 1.0),
        )

    def to_learner(self, steps: Steps) -> Batch:
        """A batch in the learner's units, in single precision."""

        def features(states: Array) -> NDArray[np.float32]:
            return ((states - self.feature_mean) / self.feature_scale).astype(np.float32)

        taken = (steps.taken.astype(np.float64) - self.action_centre) / self.action_scale
        columns: tuple[Any, ...] = (  # NumPy's arrays do for jax's
            features(steps.states),
            features(steps.next_states),
            taken.astype(np.float32),
            steps.rewards.astype(np.float32),
            steps.terminated,
            steps.episode_end,
        )
        return Batch(*columns)

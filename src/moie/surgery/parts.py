"""The parts of a mixture that a person may set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moie.policy.base import Array
from moie.policy.handwork import named
from moie.policy.mixture import Mixture


@dataclass(frozen=True, eq=False)
class Draft:
    """The parts of a mixture that a person may set; experts in the order that they will have."""

    labels: tuple[str, ...]
    """One for each expert, "" for one without a name."""
    prototypes: Array
    actions: Array
    weights: Array
    temperature: float
    metric: Array | None
    """None: all one."""
    sources: tuple[int | None, ...]
    """The number that each expert has in the original; None for one that is made by hand."""

    @classmethod
    def of(cls, policy: Mixture) -> "Draft":
        """A policy as it is, with nothing changed."""
        k = policy.n_experts
        return cls(
            policy.labels or ("",) * k,
            policy.prototypes,
            policy.actions,
            policy.weights,
            policy.temperature,
            policy.metric,
            tuple(range(k)),
        )

    def name(self, i: int) -> str:
        """What to call an expert of the draft: by its number in the original, if it has one."""
        source = self.sources[i]
        return named("new expert" if source is None else f"expert {source}", self.labels[i])


def same_bits(one: Array, other: Array) -> NDArray[np.bool_]:
    """Where two arrays of one shape hold the same number to the last bit."""
    bits = [np.ascontiguousarray(array, np.float64).view(np.int64) for array in (one, other)]
    return np.asarray(bits[0] == bits[1])


def factors(metric: Array | None, n: int) -> Array:
    """A metric as numbers: None stands for ones."""
    return np.ones(n) if metric is None else metric

"""What a policy computes, in one place for all targets: named tables and a little arithmetic.

`describe` turns a policy into one of two kinds. `Experts` is a mixture: the weighted average of the
experts' actions and of the default one. `Layers` is a network, or a linear map, which is a network
of one layer. Each writer puts the tables and these few lines into its language; `act` here is the
same in NumPy, and the reference for all of them.

An observation that `Policy.predict` refuses, with a number in it that is NaN, infinite or beyond
`LARGEST`, gives NaN in every component of the action. What source code commands instead is in
`guard.py`.
"""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from moie.errors import InputError
from moie.policy.base import Array, Policy
from moie.policy.baselines import Linear, Network
from moie.policy.mixture import Mixture
from moie.policy.observation import LARGEST

Real = type[np.float32] | type[np.float64]
SINGLE = np.finfo(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Description(abc.ABC):
    """What all kinds have."""

    low: Array
    high: Array
    """(A,): what actions are clipped to. Single precision holds these numbers exactly."""

    def act(self, observations: Array, real: Real = np.float64) -> Array:
        """(N, A): the actions for observations as rows (N, d), computed in that precision."""
        with np.errstate(all="ignore"):
            rows = np.asarray(observations).astype(real)
            usable = (np.abs(rows) <= min(LARGEST, float(np.finfo(real).max))).all(axis=1)
            # The others get NaN whatever is computed for them.
            means = self._means(np.where(usable[:, None], rows, 0), real)
            clipped = np.minimum(np.maximum(means, self.low), self.high)
        return np.where(usable[:, None], clipped.astype(real).astype(np.float64), np.nan)

    @abc.abstractmethod
    def _means(self, rows: np.ndarray, real: Real) -> np.ndarray: ...

    @abc.abstractmethod
    def _of_single(self) -> Iterator[tuple[str, Array]]:
        """The tables that single precision has to hold, and the largest sums that are made of them.
        Of "scales" and "sums" the reciprocal is needed too."""

    def check_single(self) -> None:
        """InputError unless single precision can hold the tables, and whatever is computed of them:
        then the action for numbers that are finite is finite."""
        for name, table in self._of_single():
            sizes = np.abs(table)
            largest = 1 / SINGLE.tiny if name.endswith(("scales", "sums")) else SINGLE.max
            small = sizes[sizes < SINGLE.tiny] if name.endswith("scales") else sizes[:0]
            for bad in (*sizes[sizes > largest], *small):
                raise InputError(
                    f"single precision cannot hold {bad:.3g}, one of the policy's {name}: export "
                    "with --precision double"
                )


@dataclass(frozen=True, eq=False, kw_only=True)
class Experts(Description):
    """A mixture: strength = weight * exp(-sum(((observation - prototype) / scale)^2)) for each
    expert and 1 for the default; action = sum(strength * action) / sum(strength)."""

    scale: Array
    """(d,): the difference of each feature that alone brings an activation down to 1/e."""
    prototypes: Array
    weights: Array
    actions: Array
    default: Array

    def _means(self, rows: np.ndarray, real: Real) -> np.ndarray:
        factor, prototypes, weights, actions, default = (
            table.astype(real)
            for table in (1 / self.scale, self.prototypes, self.weights, self.actions, self.default)
        )
        total = np.ones((len(rows), 1), real)
        summed = np.broadcast_to(default, (len(rows), len(default)))
        for prototype, weight, action in zip(prototypes, weights, actions, strict=True):
            difference = (rows - prototype) * factor
            strength = weight * np.exp(-(difference * difference).sum(axis=1, keepdims=True))
            total = total + strength
            summed = summed + strength * action
        return summed * (1 / total)

    def _of_single(self) -> Iterator[tuple[str, Array]]:
        yield "closeness scales", self.scale
        yield "prototypes", self.prototypes
        yield "weights", self.weights
        yield "actions", self.actions
        yield "default actions", self.default
        strengths = self.weights[:, None] * np.column_stack(
            [np.ones_like(self.weights), self.actions]
        )
        yield "sums", np.abs(strengths).sum(axis=0) + np.abs([1.0, *self.default])


@dataclass(frozen=True, eq=False, kw_only=True)
class Layers(Description):
    """A network: each layer is matrix * input + bias, with tanh between layers. The first one, and
    the scaling before it, are in double precision always: where features are large, a hidden unit
    is a small difference of large numbers, of which single precision keeps no digit."""

    mean: Array
    scale: Array
    """(d,): the first layer sees (observation - mean) / scale."""
    matrices: tuple[Array, ...]
    biases: tuple[Array, ...]

    def _means(self, rows: np.ndarray, real: Real) -> np.ndarray:
        scaled = (rows.astype(np.float64) - self.mean) * (1 / self.scale)
        values = scaled @ self.matrices[0].T + self.biases[0]
        for matrix, bias in zip(self.matrices[1:], self.biases[1:], strict=True):
            values = np.tanh(values).astype(real) @ matrix.T.astype(real) + bias.astype(real)
        return values

    def _of_single(self) -> Iterator[tuple[str, Array]]:
        for matrix, bias in zip(self.matrices[1:], self.biases[1:], strict=True):
            yield "matrices", matrix
            yield "biases", bias
            yield "sums", np.abs(matrix).sum(axis=1) + np.abs(bias)


def _experts(policy: Mixture, low: Array, high: Array) -> Experts:
    return Experts(
        low=low,
        high=high,
        scale=policy.radii,
        prototypes=policy.prototypes,
        weights=policy.weights,
        actions=policy.actions,
        default=policy.default_action,
    )


def _network(policy: Network, low: Array, high: Array) -> Layers:
    scaling = {"mean": policy.feature_mean, "scale": policy.feature_scale}
    return Layers(low=low, high=high, matrices=policy.matrices, biases=policy.biases, **scaling)


def _linear(policy: Linear, low: Array, high: Array) -> Layers:
    scaling = {"mean": policy.feature_mean, "scale": policy.feature_scale}
    return Layers(
        low=low, high=high, matrices=(policy.matrix,), biases=(policy.default_action,), **scaling
    )


_KINDS: dict[type[Policy], Callable[[Any, Array, Array], Description]] = {
    Mixture: _experts,
    Network: _network,
    Linear: _linear,
}


def describe(policy: Policy) -> Description:
    """What a policy computes; InputError for a kind that cannot be exported."""
    kind = _KINDS.get(type(policy))  # of exactly this type: others compute something else
    if kind is None:
        raise InputError(f"a policy of the kind {type(policy).__name__} cannot be exported")
    return kind(policy, *policy.bounds)

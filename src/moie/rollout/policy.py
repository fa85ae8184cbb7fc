"""The policy as it is deployed: NumPy only, in the task's own units, no jax needed to act.

The formulas are those of `core.policy`; a test holds the two together.
"""

import abc
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moie.errors import InputError
from moie.rollout.observation import rows_of
from moie.terminal import printable

Array = NDArray[np.float64]
HELD = 4_000_000
"""Numbers that are held at once while distances are computed."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a prototype was visited: replaying `actions` after `reset(seed=seed)` leads there."""

    iteration: int
    episode: int
    step: int
    seed: int
    actions: NDArray[np.float32]


@dataclass(frozen=True)
class Explanation:
    """Why the policy acts as it does in one state; experts in order of membership."""

    action: Array
    experts: tuple[int, ...]
    memberships: tuple[float, ...]
    default_share: float
    distances: tuple[float, ...]
    """Distance to each prototype, in the order of `experts`, in the scaled features."""
    nearest: int
    differences: tuple[tuple[str, float], ...]
    """State minus nearest prototype by feature name, the largest contribution first."""

    def __str__(self) -> str:
        lines = [f"action {np.array2string(self.action, precision=3)}"]
        rows = zip(self.experts, self.memberships, self.distances, strict=True)
        lines += [
            f"  expert {k:<3d} membership {m:6.1%}  distance {d:.3g}"
            for k, m, d in rows
            if m > 5e-4
        ]
        lines.append(f"  default    membership {self.default_share:6.1%}")
        some = self.differences[:4]
        differs = ", ".join(f"{printable(name)} {value:+.3g}" for name, value in some)
        lines.append(f"nearest prototype: expert {self.nearest}; the state differs by {differs}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy(abc.ABC):
    """What all kinds share. Load one with `moie.load`, act with `predict`."""

    task: str
    default_action: Array
    """The middle of the learner's actions."""
    log_std: Array
    feature_mean: Array
    feature_scale: Array
    """The policy sees `(state - feature_mean) / feature_scale`."""
    action_low: Array
    action_high: Array
    feature_names: tuple[str, ...]
    action_names: tuple[str, ...]
    observation_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    trained: dict[str, Any] = field(default_factory=dict)
    """Algorithm and seed of the run, and the iterations and environment steps it learned from."""

    @property
    @abc.abstractmethod
    def n_parameters(self) -> int:
        """Numbers that were learned."""

    @abc.abstractmethod
    def means(self, states: Array) -> Array:
        """(N, A) mean actions, not clipped, for states as rows (N, d)."""

    @abc.abstractmethod
    def mean_of(self, state: Array) -> Array:
        """The mean action in one state (d,), not clipped: the inner loop of an episode."""

    def explain(self, observation: ArrayLike) -> Explanation:
        """Memberships, default share and nearest prototypes in one state."""
        learner = printable(self.trained.get("algorithm", "this kind"))
        raise InputError(f"a policy of {learner} has no experts: there is nothing to explain")

    def without_origins(self) -> "Policy":
        """The same policy for acting alone."""
        return self

    def _flat(self, observation: ArrayLike) -> tuple[Array, bool]:
        """The observation as a row, or a batch of them as rows, and whether it was a batch."""
        return rows_of(observation, self.observation_shape, self.feature_names)

    @cached_property
    def _single_bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The action space's bounds in single precision, rounded inwards: an environment may
        refuse an action that is too large by the last bit."""
        top = np.finfo(np.float32).max
        low, high = (
            np.clip(bound, -top, top).astype(np.float32)
            for bound in (self.action_low, self.action_high)
        )
        return (
            np.where(low < self.action_low, np.nextafter(low, top), low),
            np.where(high > self.action_high, np.nextafter(high, -top), high),
        )

    @cached_property
    def _double_bounds(self) -> tuple[Array, Array]:
        """The same bounds in double precision."""
        low, high = self._single_bounds
        return low.astype(np.float64), high.astype(np.float64)

    def clipped(self, actions: ArrayLike) -> NDArray[np.float32]:
        """Actions as the environment receives them."""
        given = np.asarray(actions)
        # Bounds of the same type: to mix them is slower, to round first might overflow.
        low, high = self._single_bounds if given.dtype == np.float32 else self._double_bounds
        return np.minimum(np.maximum(given, low), high).astype(np.float32, copy=False)

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng()

    def seed(self, seed: int | None = None) -> None:
        """Have the actions that `predict` samples from now on follow from a seed; from fresh
        entropy without one."""
        is_seed = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
        if seed is not None and not is_seed:
            raise InputError(f"seed is {seed!r}, expected a whole number, zero or more")
        self.__dict__["_generator"] = np.random.default_rng(seed)

    def predict(
        self,
        observation: ArrayLike,
        state: None = None,
        episode_start: None = None,
        deterministic: bool = False,
        *,
        rng: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], None]:
        """The action in one state or in each of a batch, clipped to the action space.

        Stable-Baselines3's signature: `state` and `episode_start` are there for recurrent policies
        and are not used. Sampled actions draw from `rng`, or without one from the policy's own
        generator, which `seed` sets.
        """
        rows, is_batch = self._flat(observation)
        action = self.means(rows)
        if not deterministic:
            rng = self._generator if rng is None else rng
            action = action + rng.standard_normal(action.shape) * np.exp(self.log_std)
        shape = (len(rows), *self.action_shape) if is_batch else self.action_shape
        return self.clipped(action).reshape(shape), None


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(Policy):
    """A short list of experts; `default_action` is taken where no prototype is near."""

    prototypes: Array
    """(K, d): states that were visited, as the environment gave them."""
    weights: Array
    actions: Array
    """(K, A): the action of each expert."""
    temperature: float
    metric: Array | None = None
    """(d,): a learned factor for each scaled feature's difference; None: all one."""
    origins: tuple[Origin | None, ...]
    share: Array
    """(K,): mean membership of each expert over the last batch of its training."""
    lead: Array
    """(K,): share of that batch's states in which the expert's membership is the largest."""
    distances: Array
    """(K,): from each prototype to the nearest state of that batch, in scaled features; zero where
    prototypes are visited states."""

    @property
    def n_experts(self) -> int:
        return len(self.weights)

    @property
    def n_parameters(self) -> int:
        """K (d + A + 1) + A, as the paper counts; a metric has d more."""
        learned = (self.prototypes, self.weights, self.actions, self.log_std)
        return sum(a.size for a in learned) + (0 if self.metric is None else self.metric.size)

    @cached_property
    def closeness_scale(self) -> Array:
        """(d,): the difference of each feature that counts as one, in the task's units."""
        return self.feature_scale if self.metric is None else self.feature_scale / self.metric

    @cached_property
    def radii(self) -> Array:
        """(d,): the difference of each feature that alone brings an activation down to 1/e, in the
        task's units."""
        return self.closeness_scale / np.sqrt(self.temperature)

    @cached_property
    def _scaled_prototypes(self) -> Array:
        return (self.prototypes - self.feature_mean) / self.closeness_scale

    @cached_property
    def _action_offsets(self) -> Array:
        return self.actions - self.default_action

    @cached_property
    def _states_at_once(self) -> int:
        return max(1, HELD // max(1, self.prototypes.size))

    def squared_distances(self, states: Array) -> Array:
        """(N, K) squared distances of scaled features, for states as rows (N, d)."""
        some = self._states_at_once
        if len(states) > some:
            parts = [states[i : i + some] for i in range(0, len(states), some)]
            return np.concatenate([self.squared_distances(part) for part in parts])
        scaled = (states - self.feature_mean) / self.closeness_scale
        difference = scaled[:, None, :] - self._scaled_prototypes
        return np.einsum("nkd,nkd->nk", difference, difference)

    def activations(self, states: Array) -> Array:
        """(N, K) closeness to each prototype (eq. 3 of the paper), for states as rows (N, d)."""
        return np.exp(-self.temperature * self.squared_distances(states))

    def memberships(self, states: Array) -> Array:
        """(N, K) memberships (eq. 1 of the paper), for states as rows (N, d)."""
        strength = self.weights * self.activations(states)
        return strength / (np.add.reduce(strength, axis=1, keepdims=True) + 1.0)

    def means(self, states: Array) -> Array:
        """(N, A) mean actions, not clipped."""
        return self.default_action + self.memberships(states) @ self._action_offsets

    @cached_property
    def _rates(self) -> Array:
        """-temperature / closeness_scale^2: how fast activation falls with each feature."""
        return -self.temperature / self.closeness_scale**2

    @cached_property
    def _weighted(self) -> Array:
        """(K, A + 1): each expert's weight times (its action's offset, 1)."""
        one = np.ones((self.n_experts, 1))
        return self.weights[:, None] * np.concatenate([self._action_offsets, one], axis=1)

    def mean_of(self, state: Array) -> Array:
        """The mean action in one state (d,), not clipped: the inner loop of an episode, so in as
        few calls as it takes."""
        difference = self.prototypes - state
        total = np.exp((difference * difference).dot(self._rates)).dot(self._weighted)
        return self.default_action + total[:-1] / (total[-1] + 1.0)

    def without_origins(self) -> "Policy":
        """The same policy for acting alone: origins are most of its size."""
        return replace(self, origins=(None,) * self.n_experts)

    def explain(self, observation: ArrayLike) -> Explanation:
        """Memberships, default share and nearest prototypes in one state."""
        rows, is_batch = self._flat(observation)
        if is_batch:
            raise InputError(
                f"explain takes one state of shape {self.observation_shape}, "
                f"not a batch of {len(rows)}"
            )
        membership = self.memberships(rows)[0]
        distances = np.sqrt(self.squared_distances(rows)[0])
        order = np.argsort(-membership, kind="stable")
        nearest = int(np.argmin(distances))
        difference = rows[0] - self.prototypes[nearest]
        by_size = np.argsort(-np.abs(difference / self.closeness_scale), kind="stable")
        return Explanation(
            action=np.clip(self.means(rows)[0], self.action_low, self.action_high),
            experts=tuple(int(k) for k in order),
            memberships=tuple(float(membership[k]) for k in order),
            default_share=float(1.0 - membership.sum()),
            distances=tuple(float(distances[k]) for k in order),
            nearest=nearest,
            differences=tuple((self.feature_names[i], float(difference[i])) for i in by_size),
        )

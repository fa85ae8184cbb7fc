"""The policy as it is deployed: NumPy only, in the task's own units, no jax needed to act.

The formulas are those of `core.policy`; a test holds the two together.
"""

import abc
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moie.errors import InputError
from moie.policy.handwork import expert_name
from moie.policy.observation import rows_of
from moie.terminal import printable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a prototype was visited: replaying `actions` after `reset(seed=seed)` leads there. A
    simulator on an accelerator cannot be replayed elsewhere: then `qpos` and `qvel` are its state,
    `episode` is the number of the environment, `seed` that of the run, and there are no actions."""

    iteration: int
    episode: int
    step: int
    seed: int
    actions: NDArray[np.float32]
    qpos: Array | None = None
    qvel: Array | None = None


@dataclass(frozen=True)
class Explanation:
    """Why the policy acts as it does in one state; experts in order of membership."""

    action: Array
    experts: tuple[int, ...]
    memberships: tuple[float, ...]
    default_share: float
    distances: tuple[float, ...]
    """Distance to each prototype, in the order of `experts`, in radii."""
    reach: tuple[float | None, ...]
    """In the same order: the distance at which each is as strong as the default; None for one that
    nowhere is."""
    differences: tuple[tuple[str, float], ...]
    """State minus the prototype of the first of `experts`, by feature name, the largest
    contribution first."""
    nearest: int
    """The expert of the nearest prototype. It need not count much: experts have weights."""
    labels: tuple[str, ...] = ()
    """What a person calls each expert, by its number; empty if nobody named any."""

    @property
    def leader(self) -> int | None:
        """The expert that leads; None where the default does."""
        first = self.memberships[0] if self.memberships else 0.0
        return self.experts[0] if self.memberships and first >= self.default_share else None

    def _name(self, k: int) -> str:
        return printable(expert_name(k, self.labels))

    def __str__(self) -> str:
        lines = [f"action {np.array2string(self.action, precision=3)}"]
        rows = zip(self.experts, self.memberships, self.distances, self.reach, strict=True)
        shown = [row for row in rows if row[1] > 5e-4]
        wide = max([len("expert 999"), *(len(self._name(k)) for k, *_ in shown)])
        for k, m, distance, reach in shown:
            of = "" if reach is None else f" of {reach:.2f}"
            lines.append(
                f"  {self._name(k):<{wide}} membership {m:6.1%}  {distance:.2f}{of} radii away"
            )
        lines.append(f"  {'default':<{wide}} membership {self.default_share:6.1%}")
        if self.experts:
            some = self.differences[:4]
            differs = ", ".join(f"{printable(name)} {value:+.3g}" for name, value in some)
            first = self._name(self.experts[0])
            who = (
                f"{first} leads" if self.leader is not None else f"the default leads, then {first}"
            )
            lines.append(f"{who}; the state differs from its prototype by {differs}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Policy(abc.ABC):
    """The base of all policies. Load one with `moie.load`, act with `predict`."""

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

    def __repr__(self) -> str:
        parts = [printable(self.trained.get("algorithm", "")), self._size()]
        if "steps" in self.trained:
            parts.append(f"learned from {self.trained['steps']:,} steps")
        return f"<policy for {printable(self.task)}: {', '.join(filter(None, parts))}>"

    def _size(self) -> str:
        return f"{self.n_parameters} parameters"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy file, which `moie.load` and every command read; the path of it."""
        from moie.policy.file import save_file

        save_file(Path(path), self)
        return Path(path)

    def explain(self, observation: ArrayLike) -> Explanation:
        """Memberships, default share, distances and reach in one state."""
        learner = printable(self.trained.get("algorithm", "this kind"))
        raise InputError(f"a policy of {learner} has no experts: there is nothing to explain")

    def without_origins(self) -> "Policy":
        """The same policy for acting alone."""
        return self

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
    def bounds(self) -> tuple[Array, Array]:
        """What actions are clipped to: the same bounds in double precision."""
        low, high = self._single_bounds
        return low.astype(np.float64), high.astype(np.float64)

    def clipped(self, actions: ArrayLike) -> NDArray[np.float32]:
        """Actions as the environment receives them."""
        given = np.asarray(actions)
        # Bounds of the same type: to mix them is slower, to round first might overflow.
        low, high = self._single_bounds if given.dtype == np.float32 else self.bounds
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
        rows, is_batch = rows_of(observation, self.observation_shape, self.feature_names)
        action = self.means(rows)
        if not deterministic:
            rng = self._generator if rng is None else rng
            action = action + rng.standard_normal(action.shape) * np.exp(self.log_std)
        shape = (len(rows), *self.action_shape) if is_batch else self.action_shape
        return self.clipped(action).reshape(shape), None

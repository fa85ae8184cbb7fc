"""One episode, from its seed on. No jax here: worker processes import this module."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import repeat
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from moie.environments import faults, tasks
from moie.errors import EnvironmentFault
from moie.policy.base import Policy

NOISE_CHUNK = 256


class Purpose(IntEnum):
    """The purpose of an episode: part of its seed, so that no two streams meet."""

    TRAINING = 0
    EVALUATION_SAMPLED = 1
    EVALUATION_MEAN = 2
    SCALING = 3
    REPEATING = 4


@dataclass(frozen=True)
class Job:
    """An episode to run. The result depends on nothing but this and the policy."""

    run_seed: int
    purpose: Purpose
    iteration: int
    number: int
    max_steps: int
    hold: int = 1  # steps for which the noise of an action stays the same
    raw: bool = False  # whether the environment gets actions outside its range as they are

    def _sequence(self, stream: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(
            [self.run_seed, int(self.purpose), self.iteration, self.number, stream]
        )

    @property
    def seed(self) -> int:
        """The seed for `env.reset`."""
        return int(self._sequence(0).generate_state(1)[0]) >> 1

    def noise(self) -> np.random.Generator:
        """The generator of the actions' noise, apart from the environment's own randomness."""
        return np.random.Generator(np.random.PCG64(self._sequence(1)))


@dataclass(frozen=True, eq=False)
class Episode:
    """A recorded episode: T steps, T+1 observations."""

    job: Job
    observations: NDArray[np.float64]
    taken: NDArray[np.float32]
    """(T, A): as sampled; `given` says what the environment got of them."""
    rewards: NDArray[np.float64]
    terminated: bool
    finished: bool  # ended by the environment, not by our limit of steps
    distance: float | None  # metres covered, for locomotion
    seconds: float

    @property
    def length(self) -> int:
        return len(self.rewards)

    def given(self, policy: Policy) -> NDArray[np.float32]:
        """(T, A): the actions as the environment received them."""
        return self.taken if self.job.raw else policy.clipped(self.taken)

    def discounted(self, discount: float) -> float:
        """Return with later rewards discounted."""
        return float(self.rewards @ discount ** np.arange(self.length))


class Cancelled(Exception):  # noqa: N818  not an error
    """The episode is not needed any more."""


def run_episode(
    env: gymnasium.Env, policy: Policy, job: Job, between: Callable[[], int] | None = None
) -> Episode:
    """Run one episode. `between` is called before each step: it gives the largest number of steps
    that is still needed, and may raise to end the episode."""
    began = time.perf_counter()
    n_features, n_actions = len(policy.feature_names), len(policy.action_names)
    is_plain = policy.action_shape == (n_actions,) and env.action_space.dtype == np.float32
    states = np.empty((job.max_steps + 1, n_features))
    taken = np.empty((job.max_steps, n_actions), np.float32)
    rewards = np.empty(job.max_steps)
    noise = _noise(job, policy)
    limit, step, n_taken = job.max_steps, 0, 0
    terminated = truncated = False
    try:
        start = env.reset(seed=job.seed)
        faults.check_reset(start, env)
        observation, _ = start
        states[0] = state = _checked(observation, 0.0, policy)
        first = tasks.position(env)
        while not (terminated or truncated):
            if between is not None:
                limit = between()
            if step >= limit:
                break
            taken[step] = policy.mean_of(state) + next(noise)
            n_taken += 1
            action = taken[step].copy() if job.raw else policy.clipped(taken[step])
            if not is_plain:
                action = action.reshape(policy.action_shape).astype(env.action_space.dtype)
            observation, reward, terminated, truncated, _ = env.step(action)
            states[n_taken] = state = _checked(observation, float(reward), policy)
            rewards[step] = reward
            step = n_taken
        last = tasks.position(env)
    except Cancelled:
        raise
    except Exception as error:
        meant = faults.in_record(faults.meaning(error, env))
        clipped = policy.clipped(taken[:n_taken])
        given, what = taken[:n_taken] if job.raw else clipped, meant["error"]
        if not np.array_equal(given[-1:], clipped[-1:]):
            what += "; the last action was outside its range, --actions clipped keeps it inside"
        details = {"step": step, "actions": given.tolist(), **meant}
        raise fault(job, policy.task, what, **details) from error
    return Episode(
        job,
        states[: step + 1].copy(),
        taken[:step].copy(),
        rewards[:step].copy(),
        bool(terminated),
        bool(terminated or truncated),
        None if first is None or last is None else last - first,
        time.perf_counter() - began,
    )


def _noise(job: Job, policy: Policy) -> Iterator[NDArray[np.float64]]:
    """The noise that is added to the mean action, step by step; drawn for many steps at once."""
    shape, std = (NOISE_CHUNK, len(policy.action_names)), np.exp(policy.log_std)
    if job.purpose is Purpose.EVALUATION_MEAN:
        yield from repeat(np.zeros(shape[1]))
    generator = job.noise()
    while True:
        noise = generator.standard_normal(shape) * std
        yield from noise if job.hold == 1 else noise.repeat(job.hold, axis=0)


def _checked(observation: Any, reward: float, policy: Policy) -> NDArray[np.float64]:
    """The observation as a row of finite numbers."""
    state = np.array(observation, dtype=np.float64).ravel()
    if len(state) != len(policy.feature_names):
        raise faults.Unusable(
            f"observation has {len(state)} numbers, expected {len(policy.feature_names)}"
        )
    if not math.isfinite(state.dot(state)) and not np.isfinite(state).all():
        bad = int(np.argmin(np.isfinite(state)))
        name = policy.feature_names[bad]
        raise faults.Unusable(f"observation '{name}' is {state[bad]}, expected a finite number")
    if not math.isfinite(reward):
        raise faults.Unusable(f"reward is {reward}, expected a finite number")
    return state


def fault(job: Job, task: str, what: str, **details: Any) -> EnvironmentFault:
    """The fault of an environment, with the episode that repeats it."""
    numbers = {"seed": job.seed, "iteration": job.iteration, "episode": job.number}
    step = f"step {details['step']} of " if "step" in details else ""
    return EnvironmentFault(
        f"{task}: {what} ({step}the episode that starts with reset(seed={job.seed}); iteration "
        f"{job.iteration}, episode {job.number})",
        {"task": task, **numbers, **details},
    )


@dataclass(frozen=True, eq=False)
class Steps:
    """Episodes laid end to end, N steps in the task's own units."""

    states: NDArray[np.float64]
    next_states: NDArray[np.float64]
    taken: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    episode_end: NDArray[np.bool_]
    episode: NDArray[np.int64]  # index into the list of episodes
    step: NDArray[np.int64]  # step within the episode


def lay_end_to_end(episodes: list[Episode], n_steps: int) -> Steps:
    """The first n steps; the last episode is cut there, which is an end but no termination."""
    lengths = [episode.length for episode in episodes]
    ends = np.cumsum(lengths) - 1
    terminated, episode_end = (np.zeros(sum(lengths), dtype=np.bool_) for _ in range(2))
    terminated[ends] = [episode.terminated for episode in episodes]
    episode_end[ends] = True
    episode_end[n_steps - 1] = True
    columns: tuple[Any, ...] = (
        np.concatenate([e.observations[:-1] for e in episodes]),
        np.concatenate([e.observations[1:] for e in episodes]),
        np.concatenate([e.taken for e in episodes]),
        np.concatenate([e.rewards for e in episodes]),
        terminated,
        episode_end,
        np.repeat(np.arange(len(episodes)), lengths),
        np.concatenate([np.arange(n) for n in lengths]),
    )
    return Steps(*(column[:n_steps] for column in columns))

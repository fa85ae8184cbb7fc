"""One episode, from its seed on. No jax here: worker processes import this module."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from moie.errors import EnvironmentFault
from moie.rollout import tasks
from moie.rollout.policy import Policy

NOISE_CHUNK = 256
CHECK_EVERY = 64  # steps between two looks at messages, where they take less than a second


class Purpose(IntEnum):
    """What an episode is for; part of its seed, so that no two streams meet."""

    TRAINING = 0
    EVALUATION_SAMPLED = 1
    EVALUATION_MEAN = 2
    SCALING = 3


@dataclass(frozen=True)
class Job:
    """An episode to run. The result depends on nothing but this and the policy."""

    run_seed: int
    purpose: Purpose
    iteration: int
    number: int
    max_steps: int

    def _sequence(self, stream: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(
            [self.run_seed, int(self.purpose), self.iteration, self.number, stream]
        )

    @property
    def seed(self) -> int:
        """For `env.reset(seed=...)`."""
        return int(self._sequence(0).generate_state(1)[0]) >> 1

    def noise(self) -> np.random.Generator:
        """Of the actions; apart from the environment's own randomness."""
        return np.random.Generator(np.random.PCG64(self._sequence(1)))


@dataclass(frozen=True, eq=False)
class Episode:
    """What happened: T steps, T+1 observations."""

    job: Job
    observations: NDArray[np.float64]
    taken: NDArray[np.float32]
    """(T, A): as sampled; the environment got them clipped to its action space."""
    rewards: NDArray[np.float64]
    terminated: bool
    finished: bool
    """Ended by the environment, not by our limit of steps."""
    distance: float | None
    """Metres covered, for locomotion."""
    seconds: float

    @property
    def length(self) -> int:
        return len(self.rewards)

    def discounted(self, discount: float) -> float:
        """Return with later rewards discounted."""
        return float(self.rewards @ discount ** np.arange(self.length))


class Cancelled(Exception):  # noqa: N818  not an error
    """The episode is not needed any more."""


def run_episode(
    env: gymnasium.Env, policy: Policy, job: Job, between: Callable[[], None] = lambda: None
) -> Episode:
    """Run one episode; `between` is called now and then, and may raise to end it."""
    began = time.perf_counter()
    deterministic = job.purpose is Purpose.EVALUATION_MEAN
    n_actions = len(policy.default_action)
    std = np.exp(policy.log_std)
    noise_source = job.noise()
    shape, dtype = policy.action_shape, env.action_space.dtype
    observations, taken, rewards = [], [], []
    step, terminated, truncated = 0, False, False
    noise = np.zeros((NOISE_CHUNK, n_actions))
    looked = began
    try:
        observation, _ = env.reset(seed=job.seed)
        state = np.array(observation, dtype=np.float64).reshape(-1)
        start = tasks.position(env)
        observations.append(_checked(state, 0.0, policy))
        while step < job.max_steps and not (terminated or truncated):
            if step % NOISE_CHUNK == 0 and not deterministic:
                noise = noise_source.standard_normal((NOISE_CHUNK, n_actions)) * std
            if step % CHECK_EVERY == 0 or time.perf_counter() - looked > 1.0:
                looked = time.perf_counter()
                between()
            action = (policy.mean_of(state) + noise[step % NOISE_CHUNK]).astype(np.float32)
            taken.append(action)
            sent = policy.clipped(action).reshape(shape).astype(dtype, copy=False)
            observation, reward, terminated, truncated, _ = env.step(sent)
            state = np.array(observation, dtype=np.float64).reshape(-1)
            observations.append(_checked(state, float(reward), policy))
            rewards.append(float(reward))
            step += 1
        end = tasks.position(env)
    except Cancelled:
        raise
    except Exception as error:
        raise fault(job, policy, step, taken, error) from error
    return Episode(
        job,
        np.array(observations),
        np.array(taken, dtype=np.float32).reshape(step, n_actions),
        np.array(rewards),
        bool(terminated),
        bool(terminated or truncated),
        None if start is None or end is None else end - start,
        time.perf_counter() - began,
    )


def _checked(state: NDArray[np.float64], reward: float, policy: Policy) -> NDArray[np.float64]:
    if len(state) != len(policy.feature_names):
        raise ValueError(
            f"observation has {len(state)} numbers, expected {len(policy.feature_names)}"
        )
    finite = np.isfinite(state)
    if not finite.all():
        bad = int(np.argmin(finite))
        name = policy.feature_names[bad]
        raise ValueError(f"observation '{name}' is {state[bad]}, expected a finite number")
    if not math.isfinite(reward):
        raise ValueError(f"reward is {reward}, expected a finite number")
    return state


def fault(
    job: Job, policy: Policy, step: int, taken: list[NDArray[np.float32]], error: Exception
) -> EnvironmentFault:
    """The error of an environment, with what repeats it."""
    text = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    found = EnvironmentFault(
        f"{policy.task}: {kind}{text} (step {step} of the episode that starts with "
        f"reset(seed={job.seed}); iteration {job.iteration}, episode {job.number})"
    )
    found.record = {
        "task": policy.task,
        "seed": job.seed,
        "iteration": job.iteration,
        "episode": job.number,
        "step": step,
        "error": f"{type(error).__name__}: {text}",
        "actions": [policy.clipped(a).tolist() for a in taken],
    }
    return found


@dataclass(frozen=True, eq=False)
class Steps:
    """Episodes laid end to end, N steps in the task's own units."""

    states: NDArray[np.float64]
    next_states: NDArray[np.float64]
    taken: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    episode_end: NDArray[np.bool_]
    episode: NDArray[np.int64]
    """Index into the list of episodes."""
    step: NDArray[np.int64]
    """Step within the episode."""


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

"""Pictures: the simulator brought to a prototype by replaying its origin, and whole episodes."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from moie.environments import tasks
from moie.environments.faults import place, said
from moie.errors import InputError
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode

Frame = NDArray[np.uint8]
State = NDArray[np.float64]
APPLIED = 5
"""Steps for which an expert's action is applied, as in the paper."""
TOLERANCE = 1e-6
"""Of a replay: the largest difference of a feature from the stored state."""
MOST_FRAMES = 500
"""Of an episode's video."""
STILL, VIDEO = (480, 360), (320, 240)
"""Largest size of a picture."""


@dataclass(frozen=True, eq=False)
class Scene:
    """States of an episode, re-lived."""

    frames: list[Frame] = field(default_factory=list)
    """None where the environment can not be drawn."""
    difference: float | None = None
    """Largest difference of a feature from the stored ones; None if it did not get there."""
    problem: str | None = None
    """Why it did not get there."""

    @property
    def matches(self) -> bool:
        return self.difference is not None and self.difference <= TOLERANCE


class Lost(Exception):  # noqa: N818  not an error
    """A replay that does not get where it should; the message says why."""


class Stage:
    """An environment of a task that draws into memory, if it can; `problem` says why not."""

    def __init__(self, task: str, size: tuple[int, int]):
        self.problem: str | None = None
        self._size, self._first = size, (0, 0)
        try:
            self._env = tasks.make(task, render_mode="rgb_array")
            _point_camera(self._env, size)
        except InputError as error:
            self._env = tasks.make(task)
            self.problem = str(error)

    @property
    def fps(self) -> float:
        """Steps of a second, as the environment says."""
        return float(self._env.metadata.get("render_fps") or 30.0)

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # a viewer that never opened may fail to close
            self._env.close()

    def picture(self) -> list[Frame]:
        """The present state, or nothing where it can not be drawn. All pictures of a stage have
        the size of the first."""
        if self.problem is not None:
            return []
        try:
            drawn: Any = self._env.render()
            if drawn is None or np.ndim(drawn) != 3:
                raise ValueError("render() returns no picture")
            colours = (
                np.broadcast_to(drawn, (*np.shape(drawn)[:2], 3)) if _is_grey(drawn) else drawn
            )
            image = Image.fromarray(np.asarray(colours, dtype=np.uint8)[:, :, :3])
            image.thumbnail(self._size, Image.Resampling.LANCZOS)
            self._first = self._first if all(self._first) else image.size
            return [np.asarray(image if image.size == self._first else image.resize(self._first))]
        except Exception as error:  # the simulator's or the user's code may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            self.problem = f"it cannot be drawn here: {reason}"
            return []

    def begin(self, seed: int) -> State:
        """A new episode; its first state."""
        try:
            observation, _ = self._env.reset(seed=seed)
            return np.asarray(observation, dtype=np.float64).ravel()
        except Exception as error:  # the simulator's or the user's code may raise anything
            raise Lost(f"the environment fails: {said(error)}{place(error)}") from error

    def step(self, policy: Mixture, action: Any) -> tuple[State, bool]:
        """One step of an action in the policy's units; the state, and whether the episode is
        over."""
        space = self._env.action_space
        given = policy.clipped(action).reshape(policy.action_shape).astype(space.dtype)
        try:
            observation, _, terminated, truncated, _ = self._env.step(given)
            return np.asarray(observation, dtype=np.float64).ravel(), bool(terminated or truncated)
        except Exception as error:  # the simulator's or the user's code may raise anything
            raise Lost(f"the environment fails: {said(error)}{place(error)}") from error

    def go_to(self, policy: Mixture, seed: int, actions: Any) -> State:
        """Repeat the beginning of an episode; the state where it leads."""
        state = self.begin(seed)
        for step, action in enumerate(actions):
            state, over = self.step(policy, action)
            if over and step + 1 < len(actions):
                raise Lost(f"the episode ended after {step + 1} of {len(actions)} steps")
        return state


def _is_grey(drawn: Any) -> bool:
    return np.shape(drawn)[2] == 1


def _point_camera(env: gymnasium.Env, size: tuple[int, int]) -> None:
    """PyBullet's environments: nearer and lower than as packaged, so that joints can be seen."""
    base: Any = env.unwrapped
    if hasattr(base, "_cam_dist") and hasattr(base, "_render_width"):
        base._render_width, base._render_height = size
        walks = hasattr(base.robot, "feet")  # or a cart on its rail, seen from the side
        base._cam_dist, base._cam_pitch = (2.3, -15) if walks else (1.7, -5)


def relive(stage: Stage, policy: Mixture, k: int) -> Scene | None:
    """Bring the simulator to a prototype and apply its action for APPLIED steps, fewer where the
    episode ends; None without an origin."""
    origin = policy.origins[k]
    if origin is None:
        return None
    return _relive(stage, policy, k, origin.seed, origin.actions, policy.prototypes[k])


def near(stage: Stage, policy: Mixture, k: int, episode: Episode, step: int) -> Scene:
    """The same from a visited state near a prototype that was itself never visited."""
    taken, state = episode.taken[:step], episode.observations[step]
    return _relive(stage, policy, k, episode.job.seed, taken, state)


def _relive(
    stage: Stage, policy: Mixture, k: int, seed: int, actions: Any, expected: State
) -> Scene:
    try:
        difference = float(np.abs(stage.go_to(policy, seed, actions) - expected).max())
        frames = stage.picture()
        for _ in range(APPLIED if frames else 0):
            _, over = stage.step(policy, policy.actions[k])
            frames += stage.picture()
            if over:
                break
        return Scene(frames, difference)
    except Lost as lost:
        return Scene(problem=str(lost))


def film(stage: Stage, policy: Mixture, episode: Episode, told: Callable[[int], None]) -> Scene:
    """Every n-th step of an episode, at most MOST_FRAMES; `told` gets the steps as they go by."""
    every, frames, difference = stride(episode.length), [], 0.0
    try:
        state = stage.begin(episode.job.seed)
        for step in range(episode.length):
            difference = max(difference, float(np.abs(state - episode.observations[step]).max()))
            if step % every == 0:
                frames += stage.picture()
            state, over = stage.step(policy, episode.taken[step])
            if over and step + 1 < episode.length:
                raise Lost(f"the episode ended after {step + 1} of {episode.length} steps")
            told(step)
        return Scene(frames, difference)
    except Lost as lost:
        return Scene(problem=str(lost))


def stride(length: int) -> int:
    """Steps from one picture of the video to the next."""
    return -(-length // MOST_FRAMES)

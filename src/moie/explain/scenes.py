"""Pictures: the simulator brought to a prototype by replaying its origin, and whole episodes."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from moie.errors import InputError
from moie.rollout import tasks
from moie.rollout.episode import Episode
from moie.rollout.policy import Mixture

Frame = NDArray[np.uint8]
APPLIED = 5
"""Steps for which an expert's action is applied, as in the paper."""
TOLERANCE = 1e-6
"""Of a replay: the largest difference of a feature from the stored prototype."""
MOST_FRAMES = 500
"""Of an episode's video."""
STILL, VIDEO = (480, 360), (320, 240)
"""Largest size of a picture."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A prototype, re-lived."""

    frames: list[Frame]
    """The state, then the action applied for APPLIED steps; fewer where the episode ends. None at
    all where the environment can not be drawn."""
    difference: float
    """Largest difference of a feature from the stored one."""

    @property
    def matches(self) -> bool:
        return self.difference <= TOLERANCE


class Stage:
    """An environment of a task that draws into memory, if it can; `problem` says why not."""

    def __init__(self, task: str, size: tuple[int, int]):
        self.problem: str | None = None
        self._size = size
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
        """The present state, or nothing where it can not be drawn."""
        if self.problem is not None:
            return []
        try:
            drawn: Any = self._env.render()
            if drawn is None or np.ndim(drawn) != 3:
                raise ValueError("render() returns no picture")
        except Exception as error:  # the simulator's or the user's code may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            self.problem = f"it cannot be drawn here: {reason}"
            return []
        image = Image.fromarray(np.asarray(drawn, dtype=np.uint8)[:, :, :3])
        image.thumbnail(self._size, Image.Resampling.LANCZOS)
        return [np.asarray(image)]

    def begin(self, seed: int) -> NDArray[np.float64]:
        """A new episode; its first state."""
        observation, _ = self._env.reset(seed=seed)
        return np.asarray(observation, dtype=np.float64).ravel()

    def step(self, policy: Mixture, action: Any) -> tuple[NDArray[np.float64], bool]:
        """One step of an action in the policy's units; the state, and whether the episode is
        over."""
        space = self._env.action_space
        given = policy.clipped(action).reshape(policy.action_shape).astype(space.dtype)
        observation, _, terminated, truncated, _ = self._env.step(given)
        return np.asarray(observation, dtype=np.float64).ravel(), bool(terminated or truncated)

    def go_to(self, policy: Mixture, seed: int, actions: Any) -> NDArray[np.float64]:
        """Repeat the beginning of an episode; the state where it leads."""
        state = self.begin(seed)
        for action in actions:
            state, _ = self.step(policy, action)
        return state


def _point_camera(env: gymnasium.Env, size: tuple[int, int]) -> None:
    """PyBullet's environments: nearer and lower than as packaged, so that joints can be seen."""
    base: Any = env.unwrapped
    if hasattr(base, "_cam_dist") and hasattr(base, "_render_width"):
        base._render_width, base._render_height = size
        walks = hasattr(base.robot, "feet")  # or a cart on its rail, seen from the side
        base._cam_dist, base._cam_pitch = (2.3, -15) if walks else (1.7, -5)


def relive(stage: Stage, policy: Mixture, k: int) -> Scene | None:
    """Bring the simulator to a prototype and apply its action; None without an origin."""
    origin = policy.origins[k]
    if origin is None:
        return None
    state = stage.go_to(policy, origin.seed, origin.actions)
    difference = float(np.abs(state - policy.prototypes[k]).max())
    return Scene(_apply(stage, policy, k), difference)


def near(stage: Stage, policy: Mixture, k: int, episode: Episode, step: int) -> Scene:
    """The same from a visited state near a prototype that was itself never visited."""
    state = stage.go_to(policy, episode.job.seed, episode.taken[:step])
    difference = float(np.abs(state - episode.observations[step]).max())
    return Scene(_apply(stage, policy, k), difference)


def _apply(stage: Stage, policy: Mixture, k: int) -> list[Frame]:
    frames = stage.picture()
    for _ in range(APPLIED if frames else 0):
        _, over = stage.step(policy, policy.actions[k])
        frames += stage.picture()
        if over:
            break
    return frames


def film(
    stage: Stage, policy: Mixture, episode: Episode, told: Callable[[int], None]
) -> Iterator[Frame]:
    """Every n-th step of an episode, at most MOST_FRAMES; `told` gets the steps as they go by."""
    every = stride(episode.length)
    stage.begin(episode.job.seed)
    for step in range(episode.length):
        if step % every == 0:
            frames = stage.picture()
            if not frames:
                return
            yield from frames
        stage.step(policy, episode.taken[step])
        told(step)


def stride(length: int) -> int:
    """Steps from one picture of the video to the next."""
    return -(-length // MOST_FRAMES)

"""Pictures: the simulator brought to a prototype by replaying its origin, and whole episodes."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray
from PIL import Image

from moie.environments import tasks
from moie.environments.faults import place, said
from moie.errors import InputError
from moie.explanation.facts.schema import Replay
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode

Frame = NDArray[np.uint8]
State = NDArray[np.float64]
APPLIED = 5  # steps for which an expert's action is applied, as in the paper
TOLERANCE = 1e-6
"""Largest difference of a feature from the stored state with which a replay matches."""
MOST_FRAMES = 500  # most frames of an episode's video
STILL, VIDEO = (480, 360), (320, 240)  # largest sizes of a picture


@dataclass(frozen=True, eq=False)
class Scene:
    """States of an episode, re-lived."""

    frames: list[Frame] = field(default_factory=list)  # empty where the environment cannot be drawn
    difference: float | None = None
    """Largest difference of a feature from the stored ones; None if it did not get there."""
    problem: str | None = None  # why it did not get there, or why a film cannot be drawn

    @property
    def replay(self) -> Replay:
        matches = self.difference is not None and self.difference <= TOLERANCE
        return {"difference": self.difference, "matches": matches, "problem": self.problem}


@dataclass(frozen=True, eq=False)
class Stepped:
    """What a step led to."""

    state: State
    reward: float
    terminated: bool
    truncated: bool


class Lost(Exception):  # noqa: N818  not an error
    """A replay that does not get where it should; the message says why."""


class Stage:
    """An environment of a task that draws into memory, if it can; `problem` says why not."""

    def __init__(self, task: str | EnvSpec, size: tuple[int, int]):
        self.problem: str | None = None
        self._size, self._first = size, (0, 0)
        try:
            self.env = tasks.make(task, render_mode="rgb_array")
            _point_camera(self.env, size)
        except InputError as error:
            self.env = tasks.make(task)
            self.problem = str(error)

    @property
    def fps(self) -> float:
        """Steps per second, as the environment says."""
        return float(self.env.metadata.get("render_fps") or 30.0)

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # a viewer that never opened may fail to close
            self.env.close()

    def picture(self) -> list[Frame]:
        """A picture of the present state, or none where it cannot be drawn. All pictures of a stage
        have the size of the first."""
        if self.problem is not None:
            return []
        try:
            drawn: Any = self._drawn()
            if drawn is None or np.ndim(drawn) != 3:
                raise ValueError("render() returns no picture")
            if np.shape(drawn)[2] == 1:  # grey
                drawn = np.broadcast_to(drawn, (*np.shape(drawn)[:2], 3))
            image = Image.fromarray(np.asarray(drawn, dtype=np.uint8)[:, :, :3])
            image.thumbnail(self._size, Image.Resampling.LANCZOS)
            self._first = self._first if all(self._first) else image.size
            return [np.asarray(image if image.size == self._first else image.resize(self._first))]
        except Exception as error:  # the simulator's or the user's code may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            self.problem = f"it cannot be drawn here: {reason}"
            return []

    def _drawn(self) -> Any:
        """The simulator's picture."""
        return self.env.render()

    def begin(self, seed: int) -> State:
        """Start an episode; its first state."""
        with _faults_named():
            observation, _ = self.env.reset(seed=seed)
            return np.array(observation, dtype=np.float64).ravel()

    def act(self, given: Any) -> Stepped:
        """One step of an action as the environment is to receive it."""
        space = self.env.action_space
        given = np.asarray(given).reshape(space.shape).astype(space.dtype)
        with _faults_named():
            observation, reward, terminated, truncated, _ = self.env.step(given)
            state = np.array(observation, dtype=np.float64).ravel()
            return Stepped(state, float(reward), bool(terminated), bool(truncated))

    def go_to(self, seed: int, given: Any) -> State:
        """Repeat the beginning of an episode; the state it leads to."""
        *_, state = self.replay(seed, given)
        return state

    def put(self, qpos: State, qvel: State) -> State:
        """Set the state of MuJoCo; what is observed there. Contact forces follow from the step
        before, which is not known: they are NaN."""
        with _faults_named():
            self.env.reset(seed=0)
            base: Any = self.env.unwrapped
            base.set_state(qpos, qvel)
            state = np.array(base._get_obs(), dtype=np.float64).ravel()
            state[len(state) - base.observation_structure.get("cfrc_ext", 0) :] = np.nan
            return state

    def replay(self, seed: int, given: Any) -> Iterator[State]:
        """Repeat an episode from the actions that its environment received: its first state, then
        the state after each action."""
        yield self.begin(seed)
        for count, action in enumerate(given, 1):
            led = self.act(action)
            if (led.terminated or led.truncated) and count < len(given):
                raise Lost(f"the episode ended after {count} of {len(given)} steps")
            yield led.state


@contextlib.contextmanager
def _faults_named() -> Iterator[None]:
    """Whatever the simulator or the user's code raises means that the replay is lost."""
    try:
        yield
    except Exception as error:
        raise Lost(f"the environment fails: {said(error)}{place(error)}") from error


def _point_camera(env: gymnasium.Env, size: tuple[int, int]) -> None:
    """PyBullet's environments: nearer and lower than as packaged, so that joints can be seen.
    MuJoCo's: by the model's own camera that goes along with the robot, which Gymnasium 1.4 leaves
    aside, so that the robot leaves the picture."""
    base: Any = env.unwrapped
    mujoco = getattr(base, "mujoco_renderer", None)
    with contextlib.suppress(AttributeError):  # a later Gymnasium's
        if mujoco is not None and mujoco.camera_id == -1:
            names = [base.model.camera(i).name for i in range(base.model.ncam)]
            mujoco.camera_id = names.index("track") if "track" in names else -1
    if hasattr(base, "_cam_dist") and hasattr(base, "_render_width"):
        base._render_width, base._render_height = size
        walks = hasattr(base.robot, "feet")  # or a cart on its rail, seen from the side
        base._cam_dist, base._cam_pitch = (2.3, -15) if walks else (1.7, -5)


def arrival(stage: Stage, policy: Mixture, k: int) -> Callable[[], State] | None:
    """What brings the simulator to where the prototype of an expert was visited; None where that
    is not known."""
    origin = policy.origins[k]
    if origin is None:
        return None
    if origin.qpos is not None and origin.qvel is not None:
        return partial(stage.put, origin.qpos, origin.qvel)
    return partial(stage.go_to, origin.seed, origin.actions)


def relive(
    stage: Stage, policy: Mixture, k: int, arrive: Callable[[], State], expected: State
) -> Scene:
    """Bring the simulator to an expected state, then apply the expert's action for APPLIED steps,
    fewer where the episode ends."""
    try:
        state = arrive()
        frames = stage.picture()
        for _ in range(APPLIED if frames else 0):
            led = stage.act(policy.clipped(policy.actions[k]))
            frames += stage.picture()
            if led.terminated or led.truncated:
                break
        return Scene(frames, float(np.nanmax(np.abs(state - expected))))
    except Lost as lost:
        return Scene(problem=str(lost))


def film(
    stage: Stage,
    policy: Mixture,
    episode: Episode,
    check: Callable[[], None],
    done: Callable[[str], None],
) -> Scene:
    """Every n-th step of an episode, at most MOST_FRAMES. After each step, `check` may end it."""
    every, frames, difference = stride(episode.length), [], 0.0
    states = stage.replay(episode.job.seed, episode.given(policy))
    try:
        for step, state in zip(range(episode.length), states, strict=False):
            difference = max(difference, float(np.abs(state - episode.observations[step]).max()))
            if step % every == 0:
                frames += stage.picture()
            check()
            done("")
        return Scene(frames, difference, stage.problem)
    except Lost as lost:
        return Scene(problem=stage.problem or str(lost))


def stride(length: int) -> int:
    """Steps from one picture of the video to the next."""
    return -(-length // MOST_FRAMES)

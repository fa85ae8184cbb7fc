"""A live episode: the simulator and a policy that may change between any two steps."""

import contextlib
import importlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from PIL import Image

from moie.environments import tasks
from moie.explanation.scenes import Frame, Stage, State
from moie.policy.mixture import Mixture
from moie.workshop.push import SECONDS, Pusher, pusher

SIZE = (480, 360)  # of a picture
MOST_TRAIL = 2000
"""Steps that are remembered for the next picture."""
DEFAULT = -1
"""Stands for the default, in place of an expert, where it leads."""


class LiveStage(Stage):
    """A stage without shadows and reflections, which take most of the time: twenty-five pictures a
    second leave a core half of its time."""

    def __init__(self, task: EnvSpec):
        super().__init__(task, SIZE)
        base: Any = self.env.unwrapped
        self._mujoco: Any = getattr(base, "mujoco_renderer", None)
        self._is_plain = self._mujoco is None
        if self._mujoco is not None:
            self._mujoco.width, self._mujoco.height = SIZE

    def _drawn(self) -> Any:
        drawn = self.env.render()
        if self._is_plain:
            return drawn
        # The viewer, whose flags these are, is made by the first picture.
        self._is_plain = True
        with contextlib.suppress(AttributeError, ImportError):  # a later Gymnasium's
            flags = importlib.import_module("mujoco").mjtRndFlag
            scene = self._mujoco._get_viewer("rgb_array").scn
            scene.flags[flags.mjRND_SHADOW] = scene.flags[flags.mjRND_REFLECTION] = 0
        return self.env.render()


def _by_key(ids: Sequence[int], values: Sequence[float]) -> dict[str, float]:
    """A number for each expert, by its id: JSON has only texts as keys."""
    return {str(k): value for k, value in zip(ids, values, strict=True)}


@dataclass(frozen=True, eq=False)
class Acting:
    """A policy, which version of it this is, and the ids of its experts."""

    policy: Mixture
    version: int
    ids: tuple[int, ...]

    def explained(self, state: State) -> dict[str, Any]:
        """Why it does what in a state; experts by their ids."""
        why = self.policy.explain(state.reshape(self.policy.observation_shape))
        ids = [self.ids[k] for k in why.experts]
        return {
            "memberships": _by_key(ids, why.memberships),
            "default": why.default_share,
            "action": why.action.tolist(),
            "distances": _by_key(ids, why.distances),
            "reach": {str(k): reach for k, reach in zip(ids, why.reach, strict=True)},
            "leader": DEFAULT if why.leader is None else self.ids[why.leader],
        }


@dataclass
class Live:
    """One environment, stepped by whatever policy is set."""

    stage: Stage
    acting: Acting
    sampled: bool = False
    seed: int = 0
    episode: int = -1
    step: int = 0
    total: float = 0.0
    reward: float = 0.0
    taken: list[float] | None = None
    over: str | None = None
    trail: list[dict[str, Any]] = field(default_factory=list)
    _push: tuple[str, float] | None = None
    _push_left: int = 0
    _pusher: Pusher | None = None

    def __post_init__(self) -> None:
        self.begin(self.seed)

    def begin(self, seed: int) -> None:
        """Start an episode."""
        self.state = self.stage.begin(seed)
        self.seed, self.episode, self.step = seed, self.episode + 1, 0
        self.total = self.reward = 0.0
        self.taken, self.over, self._push_left = None, None, 0
        self._noise = np.random.default_rng(seed)
        self._start = tasks.position(self.stage.env)
        self._pusher = pusher(self.stage.env)
        self.trail = []
        self._note(False)

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions in which the robot can be pushed."""
        return () if self._pusher is None else tuple(self._pusher.directions)

    def push(self, direction: str, strength: float) -> None:
        """Push the robot, from the next step on."""
        self._push = direction, strength
        self._push_left = max(1, round(SECONDS * self.stage.fps))

    def advance(self) -> None:
        """One step."""
        policy, pushed = self.acting.policy, self._push_left > 0
        action = policy.mean_of(self.state)
        if self.sampled:
            action = action + self._noise.standard_normal(len(action)) * np.exp(policy.log_std)
        if pushed and self._pusher is not None and self._push is not None:
            self._pusher.push(*self._push)
        given = policy.clipped(action)
        led = self.stage.act(given)
        if pushed and self._pusher is not None:
            self._pusher.release()
            self._push_left -= 1
        self.taken = given.tolist()
        self.state, self.reward = led.state, led.reward
        self.step, self.total = self.step + 1, self.total + led.reward
        if led.terminated or led.truncated:
            self.over = "terminated" if led.terminated else "truncated"
        self._note(pushed)

    def _note(self, pushed: bool) -> None:
        memberships = self.acting.policy.memberships(self.state[None, :])[0]
        said = _by_key(self.acting.ids, memberships.round(4).tolist())
        mark = {"step": self.step, "version": self.acting.version, "m": said, "pushed": pushed}
        self.trail = [*self.trail[-MOST_TRAIL:], mark]

    def header(self) -> dict[str, Any]:
        """All that belongs to a picture of the present state."""
        at = tasks.position(self.stage.env)
        walked = None if at is None or self._start is None else at - self._start
        return {
            "type": "frame",
            "version": self.acting.version,
            "episode": self.episode,
            "seed": self.seed,
            "step": self.step,
            "return": self.total,
            "reward": self.reward,
            "state": self.state.tolist(),
            **self.acting.explained(self.state),
            "taken": self.taken,
            "over": self.over,
            "pushed": self._push_left > 0,
            "position": walked,
        }


def jpeg(frame: Frame) -> bytes:
    """A picture, encoded in little time."""
    file = io.BytesIO()
    Image.fromarray(frame).save(file, "JPEG", quality=82)
    return file.getvalue()

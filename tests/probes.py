"""Tiny environments with known behaviour: "tests.probes:Walk-v0" and so on.

Most have 3 features and 1 action, like Pendulum, so that all tests share one compiled learner.
"""

import os
import sys
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

TROUBLE = "MOIE_PROBE_TROUBLE"


class Walk(gym.Env):
    """A point on a line, pushed by the action; a step ends the episode with chance 1/12."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = spaces.Box(-1.0, 1.0, (1,))
        self.seed_of_episode: int | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.seed_of_episode, self.step_number = seed, 0
        self.place, self.speed = self.np_random.normal(size=2)
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.step_number += 1
        self.speed += 0.3 * self.push(action) + 0.05 * self.np_random.normal()
        self.place += 0.3 * self.speed
        terminated = bool(self.np_random.random() < 1 / 12)
        return self.observe(), float(-(self.place**2)), terminated, False, {}

    def push(self, action: Any) -> float:
        """The action in -1..1."""
        return float(np.ravel(action)[0])

    def observe(self) -> Any:
        return np.array([self.place, self.speed, np.sin(self.place)], np.float32)


class Long(Walk):
    """Episodes that only the time limit ends, and that take a while."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        time.sleep(0.001)
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, False, truncated, info


class Known(Walk):
    """The best action is known: 0.8 times the first feature, everywhere; a step's loss is the
    squared distance from it. States are drawn anew each step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        loss = (self.push(action) - self.best(self.state)) ** 2
        return self.observe(), -float(loss), False, False, {}

    @staticmethod
    def best(states: Any) -> Any:
        return 0.8 * states[..., 0]

    def observe(self) -> Any:
        self.state = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self.state


class Charge(Walk):
    """Takes any action, and charges for all of it; only what is in range pushes. Has pictures."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012  never changed

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()
        self.render_mode = render_mode

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        inside = np.clip(action, -1, 1)
        observation, _, terminated, truncated, info = super().step(inside)
        return observation, -float(np.abs(np.ravel(action)[0])), terminated, truncated, info

    def render(self) -> Any:
        return np.full((30, 40, 3), self.step_number, np.uint8)


class Drawn(Walk):
    """Has pictures."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012  never changed

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()
        self.render_mode = render_mode
        self.pictures = 0

    def render(self) -> Any:
        self.pictures += 1
        return self.picture()

    def picture(self) -> Any:
        return np.full((30, 40, 3), self.step_number, np.uint8)


class Moody(Drawn):
    """Does not repeat: each episode begins a little elsewhere than its seed says."""

    episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        Moody.episodes += 1
        self.place += 0.001 * Moody.episodes + 0.01 * os.getpid()
        return self.observe(), {}


class Late(Drawn):
    """Fails to draw after a while."""

    def picture(self) -> Any:
        if self.step_number > 0:
            raise RuntimeError("the window\nis gone")
        return super().picture()


class Blind(Drawn):
    """Has no pictures after all."""

    def picture(self) -> Any:
        return None


class Fragile(Drawn):
    """Breaks where it is drawn."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        if self.pictures:
            raise RuntimeError("it broke")
        return super().step(action)


class Grey(Drawn):
    """Pictures of one channel."""

    def picture(self) -> Any:
        return super().picture()[:, :, :1]


class Growing(Drawn):
    """Pictures of different size."""

    def picture(self) -> Any:
        return np.zeros((30 + self.step_number, 40, 3), np.uint8)


class Slow(Long):
    """Episodes of more than a second."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        time.sleep(0.02)
        return super().step(action)


class Single(Slow):
    """Only one in a process, as where a licence or a port is needed."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        if Single.made:
            raise RuntimeError("the port is in use")
        Single.made += 1


class Scales(Walk):
    """Features of size 1e-3, 1e3 and one that never changes; actions in -100..100."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-100.0, 100.0, (1,))

    def push(self, action: Any) -> float:
        return super().push(action) / 100

    def observe(self) -> Any:
        return np.array([1e-3 * self.place, 1e3 * self.speed + 5e3, 7.0])


class Asymmetric(Walk):
    """Actions between 2 and 10, in double precision."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(2.0, 10.0, (1,), np.float64)

    def push(self, action: Any) -> float:
        return (super().push(action) - 6) / 4


class Grid(Walk):
    """Observations and actions in two dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (3, 1))
        self.action_space = spaces.Box(-1.0, 1.0, (1, 1))

    def observe(self) -> Any:
        return super().observe().reshape(3, 1)


class Wide(Walk):
    """Many features: episodes that fit in no socket's buffer."""

    FEATURES = 4000

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.FEATURES,))

    def observe(self) -> Any:
        return np.full(self.FEATURES, self.place)


class Modules(Walk):
    """Says in its observation whether jax, pybullet or another simulator was imported."""

    def observe(self) -> Any:
        return np.array([name in sys.modules for name in ("jax", "pybullet", "gymnasium")], float)


class Trouble(Walk):
    """Goes wrong where the variable MOIE_PROBE_TROUBLE says: "KIND SEED STEP [MARKER]".

    SEED is the episode's, "any" for all of them. With a marker, a file, it happens once: never
    again when the file is there.
    """

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        observation, reward, terminated, truncated, info = super().step(action)
        kind, seed, step, *marker = os.environ.get(TROUBLE, "none any -1").split()
        if self.step_number != int(step) or seed not in ("any", str(self.seed_of_episode)):
            return observation, reward, terminated, truncated, info
        if marker:
            if os.path.exists(marker[0]):
                return observation, reward, terminated, truncated, info
            open(marker[0], "w").close()
        return self.misbehave(kind, observation, reward), reward, terminated, truncated, info

    def misbehave(self, kind: str, observation: Any, reward: float) -> Any:
        if kind == "raise":
            raise RuntimeError("the motor\nis on fire")
        if kind == "value":
            raise ValueError("the motor\nis on fire")
        if kind == "die":
            os._exit(7)
        if kind == "hang":
            time.sleep(3600)
        if kind == "short":
            return observation[:1]
        observation[1] = {"nan": np.nan, "inf": np.inf}[kind]
        return observation


class LongTrouble(Trouble, Long):
    """Both."""


class Unfit(Walk):
    """Spaces that no mixture of Gaussians can serve."""

    SPACES = {  # noqa: RUF012  never changed
        "discrete": ("action_space", spaces.Discrete(2)),
        "dict": ("observation_space", spaces.Dict(a=spaces.Box(-1.0, 1.0, (2,)))),
        "unbounded": ("action_space", spaces.Box(-np.inf, np.inf, (1,))),
    }

    def __init__(self, kind: str) -> None:
        super().__init__()
        if kind == "broken":
            raise ZeroDivisionError("it can not even\nbe made")
        setattr(self, *self.SPACES[kind])


def trouble(kind: str, seed: int | str, step: int, *marker: object) -> str:
    """The value of the variable."""
    return " ".join(map(str, (kind, seed, step, *marker)))


for _class in (
    Walk,
    Known,
    Moody,
    Charge,
    Drawn,
    Late,
    Blind,
    Fragile,
    Grey,
    Growing,
    Long,
    Slow,
    Single,
    Scales,
    Asymmetric,
    Grid,
    Wide,
    Modules,
    Trouble,
    LongTrouble,
):
    gym.register(f"{_class.__name__}-v0", f"{__name__}:{_class.__name__}", max_episode_steps=60)
for _kind in (*Unfit.SPACES, "broken"):
    gym.register(f"{_kind.capitalize()}-v0", f"{__name__}:Unfit", kwargs={"kind": _kind})

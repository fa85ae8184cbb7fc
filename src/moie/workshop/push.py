"""A push: an external force on the robot's body, where its simulator takes one."""

import abc
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

SECONDS = 0.1
"""How long a push acts."""
PLANE = {"forward": (1.0, 0.0, 0.0), "backward": (-1.0, 0.0, 0.0)}
PLANE |= {"up": (0.0, 0.0, 1.0), "down": (0.0, 0.0, -1.0)}
SIDES = {"left": (0.0, 1.0, 0.0), "right": (0.0, -1.0, 0.0)}
Vector = NDArray[np.float64]


class Pusher(abc.ABC):
    """Pushes one robot. Forces are in the simulator's own units."""

    directions: dict[str, tuple[float, float, float]] = PLANE
    weight: float
    """The force of gravity on the whole robot."""

    def push(self, direction: str, strength: float) -> None:
        """Push during the next step with so many times the robot's weight."""
        self._apply(np.array(self.directions[direction]) * strength * self.weight)

    @abc.abstractmethod
    def _apply(self, force: Vector) -> None:
        """Have a force act during the next step."""

    def release(self) -> None:  # noqa: B027  most simulators forget a force by themselves
        """Called after the step."""


class _MujocoPusher(Pusher):
    def __init__(self, base: Any):
        self.data = base.data
        names = [base.model.body(i).name for i in range(base.model.nbody)]
        self.body = names.index("torso") if "torso" in names else base.model.nbody - 1
        self.weight = float(base.model.body_mass.sum() * np.linalg.norm(base.model.opt.gravity))
        if base.model.nq > base.model.nv:  # a free joint's rotation is a quaternion
            self.directions = PLANE | SIDES

    def _apply(self, force: Vector) -> None:
        self.data.xfrc_applied[self.body, :3] = force

    def release(self) -> None:
        self.data.xfrc_applied[self.body, :3] = 0.0


class _BulletPusher(Pusher):
    def __init__(self, base: Any):
        self.bullet = base._p
        robot = base.robot
        part = getattr(robot, "robot_body", None) or list(robot.parts.values())[-1]
        self.body, self.link = part.bodies[part.bodyIndex], part.bodyPartIndex
        links = range(-1, self.bullet.getNumJoints(self.body))
        self.weight = 9.8 * sum(self.bullet.getDynamicsInfo(self.body, n)[0] for n in links)
        if len(getattr(robot, "feet", ())) > 2:
            self.directions = PLANE | SIDES

    def _apply(self, force: Vector) -> None:
        at = self.bullet.getBasePositionAndOrientation(self.body)[0]
        if self.link >= 0:
            at = self.bullet.getLinkState(self.body, self.link)[0]
        world = 1  # pybullet.WORLD_FRAME
        self.bullet.applyExternalForce(self.body, self.link, force.tolist(), at, world)


class _BoxPusher(Pusher):
    def __init__(self, base: Any):
        self.base = base
        self.weight = float(10.0 * sum(body.mass for body in (base.hull, *base.legs)))

    def _apply(self, force: Vector) -> None:
        self.base.hull.ApplyForceToCenter((float(force[0]), float(force[2])), True)


def pusher(env: gymnasium.Env) -> Pusher | None:
    """What pushes the robot of an environment that was reset; None where nothing can."""
    base: Any = env.unwrapped
    try:
        if hasattr(getattr(base, "data", None), "xfrc_applied"):
            return _MujocoPusher(base)
        if hasattr(base, "_p") and hasattr(base, "robot"):
            return _BulletPusher(base)
        if hasattr(base, "hull") and hasattr(base, "legs"):
            return _BoxPusher(base)
    except Exception:  # somebody's own environment may only look like one of these
        return None
    return None

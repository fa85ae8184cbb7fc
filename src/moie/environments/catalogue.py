"""The paper's seven tasks, and names for the numbers that go in and come out.

Feature names follow the observation as the environment returns it: velocities and joint positions
are often scaled by the environment (PyBullet: joints to -1..1 between their limits).
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from moie.errors import InputError


@dataclasses.dataclass(frozen=True)
class Task:
    """One task of the paper, with a name for each number that goes in and comes out."""

    id: str
    short: str
    package_extra: str | None
    """The extra of moie that installs the simulator; None if Gymnasium alone is enough."""
    features: tuple[str, ...]
    joints: tuple[str, ...]
    """One name for each action dimension."""
    locomotion: bool = False
    charges: bool = False
    """Whether the reward depends on how far outside its range an action is. The other tasks of the
    paper clip an action themselves before they do anything with it."""


def _each(*owners: str, of: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{owner} {part}" for owner in owners for part in of)


def _bullet_walker(short: str, body: str, joints: tuple[str, ...], feet: tuple[str, ...]) -> Task:
    """A PyBullet walker: `WalkerBase.calc_state` fixes the order for all of them."""
    trunk: tuple[str, ...] = ("height above start", "sin of target angle", "cos of target angle")
    trunk += ("forward speed", "sideways speed", "upward speed", "roll", "pitch")
    features = trunk + _each(*joints, of=("angle", "speed")) + _each(*feet, of=("contact",))
    task = f"{body}BulletEnv-v0"
    return Task(task, short, "bullet", features, joints, locomotion=True, charges=True)


_LEG = ("hip", "knee", "ankle")
_WALKER = _each("right", "left", of=_LEG)
_CHEETAH = _each("back", "front", of=_LEG)
# Named as seen by an ant that walks towards its target, along +x. The model file calls the same
# four legs front left, front right, left back, right back: its "front" is +y.
_ANT = ("front left", "back left", "back right", "front right")
_CHEETAH_FEET = _each("front", "back", of=("foot", "shin", "thigh"))
_CART = ("cart position", "cart speed", "cos of pole angle", "sin of pole angle", "pole speed")
_BIPED: tuple[str, ...] = ("hull angle", "hull turning speed", "forward speed", "upward speed")
_BIPED += _each(
    "leg 1", "leg 2", of=("hip angle", "hip speed", "knee angle", "knee speed", "contact")
)
# The angle of each ray, from straight down to nearly straight ahead.
_BIPED += tuple(f"lidar {np.degrees(1.5 * ray / 10):.0f} deg" for ray in range(10))
_BIPED_JOINTS = _each("leg 1", "leg 2", of=("hip", "knee"))
_SWING = ("cos of angle", "sin of angle", "turning speed")

TASKS: tuple[Task, ...] = (
    _bullet_walker("hopper", "Hopper", _LEG, ("foot",)),
    _bullet_walker("walker2d", "Walker2D", _WALKER, ("right foot", "left foot")),
    _bullet_walker("halfcheetah", "HalfCheetah", _CHEETAH, _CHEETAH_FEET),
    _bullet_walker("ant", "Ant", _each(*_ANT, of=("hip", "ankle")), _each(*_ANT, of=("foot",))),
    Task("InvertedPendulumBulletEnv-v0", "inverted-pendulum", "bullet", _CART, ("cart force",)),
    Task("BipedalWalker-v3", "bipedal-walker", "box2d", _BIPED, _BIPED_JOINTS, locomotion=True),
    Task("Pendulum-v1", "pendulum", None, _SWING, ("torque",)),
)

# MuJoCo's planar walkers: the observation is (qpos without x, qvel), the same in every version.
_MUJOCO_PLANAR = {"Hopper": _LEG, "Walker2d": _WALKER, "HalfCheetah": _CHEETAH}
_MUJOCO_CART = ("cart position", "pole angle", "cart speed", "pole speed")


def _mujoco_ant(feels_contact: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Its motors are in another order than its joints: the leg that is last there comes first."""
    joints = _each(*_ANT, of=("hip", "ankle"))
    turned = tuple(f"quaternion {axis}" for axis in "wxyz")
    speeds: tuple[str, ...] = ("forward speed", "sideways speed", "upward speed")
    speeds += ("roll speed", "pitch speed", "yaw speed")
    features = ("height", *turned, *_each(*joints, of=("angle",)))
    features += speeds + _each(*joints, of=("speed",))
    if feels_contact:
        parts = ("torso", *_each(*_ANT, of=("base", "thigh", "shin")))
        features += _each(*_each(*parts, of=("torque", "force")), of=("x", "y", "z"))
    return features, joints[-2:] + joints[:-2]


def check_names(setting: str, given: Sequence[str], n: int | None = None) -> tuple[str, ...]:
    """The given names; InputError unless they are n different ones that can be printed, or none."""
    wrong = [name for name in given if not _is_printable(name)]
    if wrong:
        raise InputError(f"{setting} has {wrong[0]!r}, expected names that can be printed")
    twice = [name for name in given if list(given).count(name) > 1]
    if twice:
        raise InputError(f"{setting} has {twice[0]!r} twice, expected different names")
    if n is not None and len(given) not in (0, n):
        raise InputError(f"{setting} has {len(given)} names, expected {n}: one for each number")
    return tuple(str(name) for name in given)


def _is_printable(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and bool(name.strip())


_UNITS = {
    "pitch": "rad",
    "roll": "rad",
    "hull angle": "rad",
    "pole angle": "rad",
    "height": "m",
    "height above start": "m",
    "cart position": "m",
    "cart speed": "m/s",
    "pole speed": "rad/s",
    "turning speed": "rad/s",
}
_UNITS_OF_MUJOCO = dict.fromkeys(("forward speed", "sideways speed", "upward speed"), "m/s")


def unit(env_id: str, feature: str) -> str:
    """The unit of a feature that has its known name; empty where it has none, as a cosine, or where
    the environment scales it."""
    if feature not in names(env_id)[0]:
        return ""
    if any(env_id in (task.short, task.id) for task in TASKS):
        return _UNITS.get(feature, "")
    if feature.startswith("quaternion") or feature.rsplit(" ", 1)[-1] in ("x", "y", "z"):
        return ""
    by_ending = {"angle": "rad", "speed": "rad/s"}.get(feature.rsplit(" ", 1)[-1], "")
    return _UNITS.get(feature) or _UNITS_OF_MUJOCO.get(feature) or by_ending


def charges(env_id: str) -> bool | None:
    """Whether a task's reward depends on how far outside its range an action is; None where that
    is not known."""
    return next((task.charges for task in TASKS if env_id in (task.short, task.id)), None)


def clipping_matters(env_id: str, actions: str) -> bool:
    """Whether it made a difference, as far as is known, that something learned with "raw" or
    "clipped" actions."""
    known = charges(env_id)
    return actions == "raw" if known is None else known


def names(env_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of features and of joints; empty where they are not known."""
    for task in TASKS:
        if env_id in (task.short, task.id):
            return task.features, task.joints
    family, _, version = env_id.partition("-v")
    if family == "InvertedPendulum" and version.isdigit():
        return _MUJOCO_CART, ("cart force",)
    if family == "Ant" and version in ("4", "5"):
        return _mujoco_ant(feels_contact=version == "5")
    if family not in _MUJOCO_PLANAR or not version.isdigit():
        return (), ()
    joints = _MUJOCO_PLANAR[family]
    places = ("height", "pitch", *(f"{joint} angle" for joint in joints))
    speeds = ("forward speed", "upward speed", "pitch speed", *(f"{j} speed" for j in joints))
    return places + speeds, joints

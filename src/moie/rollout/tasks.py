"""Environments: the paper's seven tasks, and any other Gymnasium environment, made repeatable.

A prototype is traced back to its origin by replaying an episode, so `make` returns environments
in which `reset(seed=s)` and the same actions give the same episode, bit for bit, whatever ran
before. Not all packages give this by themselves; `make` and `repeatable` say what is mended.
"""

import contextlib
import ctypes
import dataclasses
import difflib
import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from moie.errors import InputError
from moie.rollout.repeatable import ClearContacts, FreshWorld
from moie.rollout.task_names import TASKS, names

_MUJOCO_WALKER = re.compile(
    r"gymnasium\.envs\.mujoco\.(ant|half_cheetah|hopper|humanoid|swimmer|walker2d)_v\d"
)
_BULLET = "pybullet_envs_gymnasium"
_BIPEDAL = "gymnasium.envs.box2d.bipedal_walker"
# extra: where its environments' code begins, what it installs
_EXTRAS = {
    "bullet": (_BULLET, ("pybullet", _BULLET)),
    "box2d": ("gymnasium.envs.box2d", ("Box2D",)),
    "mujoco": ("gymnasium.envs.mujoco", ("mujoco", "imageio")),
}


def _bare(env_id: str) -> str:
    """The id without the module that registers it: "module:Id-v0" is "Id-v0"."""
    return env_id.rpartition(":")[2]


def _extra(spec: EnvSpec) -> str | None:
    entry = str(spec.entry_point)
    return next((extra for extra, (code, _) in _EXTRAS.items() if entry.startswith(code)), None)


def _require(extra: str | None, env_id: str) -> None:
    modules = _EXTRAS[extra][1] if extra else ()
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise InputError(
            f"{env_id} needs {' and '.join(missing)}, not installed: pip install 'moie[{extra}]'"
        )


def _unknown(name: str) -> InputError:
    shorts = [task.short for task in TASKS]
    names = {n.lower(): n for n in [*gym.registry, *(task.id for task in TASKS), *shorts]}
    near = [names[n] for n in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)]
    hint = f"nearest: {', '.join(near)}" if near else f"try one of {', '.join(shorts)}"
    return InputError(f"unknown environment {name!r}; {hint}, or any registered Gymnasium id")


def resolve(name: str) -> str:
    """The environment id that a short name or an id means; InputError if it can not be made."""
    for task in TASKS:
        if name in (task.short, task.id):
            _require(task.package_extra, task.id)
            return task.id
    module, env_id = name.rpartition(":")[0], _bare(name)
    if "BulletEnv-" in env_id:
        _require("bullet", env_id)
        module = module or _BULLET
    if module:
        try:
            importlib.import_module(module)
        except Exception as error:  # the user's own code may raise anything
            reason = " ".join(str(error).split())
            raise InputError(f"cannot import {module!r} to find {name!r}: {reason}") from error
    if env_id not in gym.registry:
        raise _unknown(name)
    _require(_extra(gym.registry[env_id]), env_id)
    return name


def _spec(name: str) -> EnvSpec:
    env_id = resolve(name)
    if "BulletEnv-" in env_id:
        importlib.import_module(_BULLET)  # registers its ids; loads no simulator
    return gym.registry[_bare(env_id)]


def spec_json(env_id: str) -> str:
    """What another process needs for `make`: it may not have run the user's `gymnasium.register`.

    An entry point given as a class is written as "module:Class", if it can be found there. What
    can not be written as JSON falls back to the id: the other process must register it too.
    """
    spec = _spec(env_id)
    entry = spec.entry_point
    home, path = getattr(entry, "__module__", ""), getattr(entry, "__qualname__", "")
    if path and getattr(sys.modules.get(home), path, None) is entry:
        spec = dataclasses.replace(spec, entry_point=f"{home}:{path}")
    try:
        return spec.to_json()
    except (ValueError, TypeError):
        return resolve(env_id)


def adopt(id_or_spec_json: str) -> None:
    """Register a task that another process has registered: what `spec_json` gave there."""
    if id_or_spec_json.startswith("{"):
        spec = EnvSpec.from_json(id_or_spec_json)
        gym.registry.setdefault(spec.id, spec)


@contextlib.contextmanager
def _mute(extra: str | None) -> Iterator[None]:
    """Keep the terminal clean while a simulator is loaded: nothing printed there helps a user.

    PyBullet and MuJoCo print from C, below `sys.stdout`, so the descriptors themselves are turned
    away; C's buffers are flushed on both sides, or the text would surface at exit. The user's own
    environments (no extra) may print.
    """
    c = ctypes.CDLL(None) if os.name == "posix" else ctypes.cdll.msvcrt
    with warnings.catch_warnings(), contextlib.ExitStack() as restore:
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", module=r"gymnasium\.")
        if extra == "mujoco":  # it would also leave a MUJOCO_LOG.TXT in the working directory
            mujoco = importlib.import_module("mujoco")
            restore.callback(mujoco.set_mju_user_warning, mujoco.get_mju_user_warning())
            mujoco.set_mju_user_warning(lambda message: None)
        c.fflush(None)
        sink = os.open(os.devnull, os.O_WRONLY)
        restore.callback(os.close, sink)
        for stream in (1, 2) if extra else ():
            with contextlib.suppress(OSError):  # closed, as in a daemon: nothing to mute
                saved = os.dup(stream)
                restore.callback(os.close, saved)
                restore.callback(os.dup2, saved, stream)
                os.dup2(sink, stream)
        restore.callback(c.fflush, None)
        yield


def _derives(env: gym.Env, module: str) -> bool:
    return any(cls.__module__.startswith(module) for cls in type(env.unwrapped).__mro__)


def _without_a_screen() -> None:
    """Have the simulators draw into memory; what the user has set in the environment stays."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not os.environ.get("DISPLAY") and sys.platform == "linux":
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("MUJOCO_GL", "egl")


def make(
    id_or_spec_json: str, render_mode: str | None = None, *, packaged: bool = False
) -> gym.Env:
    """Build an environment, from an id or from `spec_json`, whose seeded episodes repeat exactly.

    PyBullet's walkers are stepped by `rollout.bullet`, with the same numbers in half the time;
    `packaged` leaves them as they are.

    A PyBullet walker's first episode differs from all later ones: its progress is measured at the
    mean position of the robot's parts, and the floor joins these parts only at the end of the
    first `reset`. So one `reset` is thrown away here; its seed is fixed because the simulator
    saves its state there and returns to it in each later `reset`.
    """
    read = EnvSpec.from_json if id_or_spec_json.startswith("{") else _spec
    spec = read(id_or_spec_json)
    extra = _extra(spec)
    _require(extra, spec.id)
    options: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
    if render_mode is not None:
        _without_a_screen()
    try:
        with _mute(extra):
            env = gym.make(spec, disable_env_checker=True, **options)
            if _derives(env, _BULLET):
                base: Any = env.unwrapped
                base.reset(seed=0)
                base.seed()  # an unseeded `reset` shall still be random
    except Exception as error:  # the user's own code may raise anything
        lacks = extra and isinstance(error, ImportError | gym.error.DependencyNotInstalled)
        remedy = f": pip install 'moie[{extra}]'" if lacks else ""
        reason = " ".join(str(error).split())
        if not isinstance(error, ImportError | gym.error.Error):
            reason = f"{type(error).__name__}: {reason}"
        raise InputError(f"cannot make {spec.id}: {reason}{remedy}") from error
    if _derives(env, _BULLET):
        return ClearContacts(env if packaged else _batched(env, spec))
    return FreshWorld(env) if _derives(env, _BIPEDAL) else env


def _batched(env: gym.Env, spec: EnvSpec) -> gym.Env:
    from moie.rollout.bullet import WALKERS, BatchedWalker  # PyBullet is only installed on demand

    is_plain = type(env.unwrapped) in WALKERS and not spec.additional_wrappers
    return BatchedWalker(env) if is_plain else env


def check_spaces(env: gym.Env) -> None:
    """InputError unless observations are a Box, and actions a Box within finite bounds."""
    name = env.unwrapped.spec.id if env.unwrapped.spec else type(env.unwrapped).__name__
    for role, space in (("observations", env.observation_space), ("actions", env.action_space)):
        if not isinstance(space, gym.spaces.Box):
            problem = "expected a Box"
        elif not space.shape or 0 in space.shape:
            problem = f"its shape is {space.shape}, expected at least one number"
        elif role == "actions" and not np.issubdtype(space.dtype, np.floating):
            problem = f"its dtype is {space.dtype}, expected a floating-point type"
        elif role == "actions" and not space.is_bounded():
            problem = "its bounds are not finite, expected finite ones"
        else:
            continue
        raise InputError(f"{name}: the {role} are {' '.join(str(space).split())}; {problem}")


def feature_names(env_id: str, n: int) -> tuple[str, ...]:
    """A name for each of the n numbers in an observation."""
    known = names(_bare(env_id))[0]
    return known if len(known) == n else tuple(f"feature {i}" for i in range(n))


def joint_names(env_id: str, n: int) -> tuple[str, ...]:
    """A name for each of the n numbers in an action."""
    known = names(_bare(env_id))[1]
    return known if len(known) == n else tuple(f"action {i}" for i in range(n))


def position(env: gym.Env) -> float | None:
    """How far forward the robot is now, in metres; None where nothing walks.

    Read it after `reset` and at the episode's end: the difference is the distance covered.
    """
    base: Any = env.unwrapped
    if _derives(env, _BULLET):
        torso = getattr(base.robot, "body_real_xyz", None)
        return None if torso is None else float(torso[0])
    if _derives(env, _BIPEDAL):
        return None if base.hull is None else float(base.hull.position.x)
    if any(_MUJOCO_WALKER.match(cls.__module__) for cls in type(base).__mro__):
        return float(base.data.qpos[0])
    return None

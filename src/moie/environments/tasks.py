"""Environments: the paper's seven tasks, and any other Gymnasium environment, made repeatable.

A prototype is traced back to its origin by replaying an episode, so `make` returns environments
in which `reset(seed=s)` and the same actions give the same episode, bit for bit, whatever ran
before. Not all packages give this by themselves; `make` and `repeatable` say what is mended.
"""

import contextlib
import ctypes
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
from gymnasium.envs.registration import EnvSpec

from moie.environments.catalogue import TASKS
from moie.environments.faults import place, said
from moie.environments.repeatable import ClearContacts, FreshWorld
from moie.errors import InputError
from moie.terminal import printable

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


def bare(env_id: str) -> str:
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


class Unknown(InputError):  # noqa: N818  of the environment, not of the error
    """No environment of that name is registered."""


def _unknown(name: str) -> Unknown:
    shorts = [task.short for task in TASKS]
    names = {n.lower(): n for n in [*gym.registry, *(task.id for task in TASKS), *shorts]}
    near = [names[n] for n in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)]
    hint = f"nearest: {', '.join(near)}" if near else f"try one of {', '.join(shorts)}"
    return Unknown(
        f"unknown environment {name!r}; {hint}, or any registered Gymnasium id; one that a file "
        f"MODULE.py of yours registers is MODULE:{printable(bare(name))}"
    )


def resolve(name: str) -> str:
    """The environment id that a short name or an id means; InputError if it can not be made."""
    for task in TASKS:
        if name in (task.short, task.id):
            _require(task.package_extra, task.id)
            return task.id
    module, env_id = name.rpartition(":")[0], bare(name)
    if "BulletEnv-" in env_id:
        _require("bullet", env_id)
        module = module or _BULLET
    if module:
        _import(module, name)
    if env_id not in gym.registry:
        raise _unknown(name)
    _require(_extra(gym.registry[env_id]), env_id)
    return name


def _import(module: str, name: str) -> None:
    """The module that registers a task. One that is not installed may be a file in the current
    folder, which is searched last: nothing there may hide what is installed."""
    before = list(sys.path)
    try:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            sys.path.append(os.getcwd())
        importlib.import_module(module)
    except Exception as error:  # the user's own code may raise anything
        sys.path[:] = before
        reason = " ".join(str(error).split()) if isinstance(error, ImportError) else said(error)
        raise InputError(
            f"cannot import {module!r} to find {name!r}: {reason}{place(error)}"
        ) from error


def spec_of(name: str) -> EnvSpec:
    """The specification that is registered for a short name or an id."""
    env_id = resolve(name)
    if "BulletEnv-" in env_id:
        importlib.import_module(_BULLET)  # registers its ids; loads no simulator
    return gym.registry[bare(env_id)]


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


def make(task: str | EnvSpec, render_mode: str | None = None, *, packaged: bool = False) -> gym.Env:
    """Build an environment, from a name or a specification, whose seeded episodes repeat exactly.

    PyBullet's walkers are stepped by `environments.bullet`, with the same numbers in half the time;
    `packaged` leaves them as they are.

    A PyBullet walker's first episode differs from all later ones: its progress is measured at the
    mean position of the robot's parts, and the floor joins these parts only at the end of the
    first `reset`. So one `reset` is thrown away here; its seed is fixed because the simulator
    saves its state there and returns to it in each later `reset`.
    """
    spec = spec_of(task) if isinstance(task, str) else task
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
        if isinstance(error, ImportError | gym.error.Error):
            reason = " ".join(str(error).split())
        else:
            reason = said(error) + place(error)
        raise InputError(f"cannot make {spec.id}: {reason}{remedy}") from error
    if _derives(env, _BULLET):
        from moie.environments import bullet  # PyBullet is only installed on demand

        is_plain = type(env.unwrapped) in bullet.WALKERS and not spec.additional_wrappers
        return ClearContacts(bullet.BatchedWalker(env) if is_plain and not packaged else env)
    return FreshWorld(env) if _derives(env, _BIPEDAL) else env


@contextlib.contextmanager
def opened(task: str, *, packaged: bool = False) -> Iterator[gym.Env]:
    """An environment to look at. What its `close` raises is passed over: nothing more is wanted
    of it."""
    env = make(task, packaged=packaged)
    try:
        yield env
    finally:
        with contextlib.suppress(Exception):
            env.close()


def position(env: gym.Env) -> float | None:
    """The robot's forward position in metres; None where nothing walks.

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

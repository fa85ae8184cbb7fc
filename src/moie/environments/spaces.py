"""The spaces of an environment: whether moie can work with them, and names for their numbers."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from moie.environments.catalogue import check_names
from moie.environments.catalogue import names as known_names
from moie.errors import InputError

LARGEST_BOUND = 1e18
"""Largest bound of an action: squares of actions fit in single precision."""
OF_FEATURES = ("feature_names", "observation_names", "observation_variables")
OF_ACTIONS = ("action_names", "action_variables")
"""Attributes, or entries of `metadata`, with an environment's names. The first is moie's
own and has to fit; the others, of CityLearn and Sinergym, are used where they do."""


def check(env: gym.Env) -> None:
    """InputError unless observations are a Box, and actions a Box with a range that can be used."""
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
        space_said = " ".join(str(space).split())
        raise InputError(f"{_name(env)}: the {role} are {space_said}; {problem}")
    _check_bounds(env, env.action_space)


def _check_bounds(env: gym.Env, space: Any) -> None:
    """Each action has a range, in single precision too, that is not a stand-in for none."""
    _, actions = names(env)
    for name, low, high in zip(actions, space.low.ravel(), space.high.ravel(), strict=True):
        said = f"{_name(env)}: the action {name!r} is bounded by {low:g} and {high:g}"
        if max(abs(float(low)), abs(float(high))) > LARGEST_BOUND:
            raise InputError(
                f"{said}, expected bounds that can be reached, within ±{LARGEST_BOUND:g}"
            )
        if not np.float32(low) < np.float32(high):
            raise InputError(f"{said}, expected a low below the high: leave it out if it is fixed")


def names(
    env: gym.Env, features: Sequence[str] = (), actions: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A name for each number of an observation and of an action: the given ones, the environment's
    own, those that moie knows, or just numbers."""
    known_features, known_actions = known_names(_name(env))
    return (
        _names(env, env.observation_space, OF_FEATURES, features, known_features),
        _names(env, env.action_space, OF_ACTIONS, actions, known_actions),
    )


def _names(
    env: gym.Env, space: Any, places: tuple[str, ...], given: Sequence[str], known: tuple[str, ...]
) -> tuple[str, ...]:
    n = math.prod(space.shape)
    numbered = tuple(f"{places[0].removesuffix('_names')} {i}" for i in range(n))
    known = known if len(known) == n else numbered
    return check_names(places[0], given, n) or _own(env, places, n) or known


def _own(env: gym.Env, places: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The names that an environment has for its n numbers; none where it has none."""
    for place in places:
        own = env.get_wrapper_attr(place) if env.has_wrapper_attr(place) else None
        own = (env.metadata or {}).get(place) if own is None else own
        if not isinstance(own, list | tuple | np.ndarray):
            continue
        try:
            if names := check_names(place, list(own), n):
                return names
        except InputError as error:
            if place == places[0]:
                raise InputError(f"{_name(env)}: {error}") from error
    return ()


def _name(env: gym.Env) -> str:
    return env.unwrapped.spec.id if env.unwrapped.spec else type(env.unwrapped).__name__

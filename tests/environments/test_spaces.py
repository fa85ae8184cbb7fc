"""Spaces that moie can serve, and names for what goes in and comes out."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from gymnasium.spaces import Box

from moie.environments import spaces, tasks
from moie.errors import InputError


class Probe(gym.Env):
    """An environment of the user's own, with any spaces and attributes."""

    def __init__(self, observation: Any = None, action: Any = None, **attributes: Any) -> None:
        self.observation_space = observation or Box(-1.0, 1.0, (2,))
        self.action_space = action or Box(-1.0, 1.0, (1,))
        for name, value in attributes.items():
            setattr(self, name, value)


# --- spaces --------------------------------------------------------------------------------------

MOST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Probe(action=gym_spaces.Discrete(2)), ("actions", "Discrete(2)", "Box")),
        (
            Probe(observation=gym_spaces.Dict(a=gym_spaces.Discrete(2))),
            ("observations", "Dict", "Box"),
        ),
        (Probe(action=Box(-np.inf, np.inf, (2,))), ("actions", "Box", "finite")),
        (Probe(action=Box(0, np.inf, (2,))), ("actions", "Box", "finite")),
        (Probe(action=Box(0, 9, (2,), np.int64)), ("actions", "int64", "floating")),
        (Probe(observation=Box(0, 1, ())), ("observations", "()", "at least one")),
        (Probe(observation=Box(0, 1, (0,))), ("observations", "(0,)", "at least one")),
        (
            Probe(action=Box(np.float32([0, 2]), np.float32([1, 2]))),
            ("'action 1' is bounded by 2 and 2", "low below the high"),
        ),
        (
            Probe(action=Box(1e8, 1e8 + 1, (1,), np.float64), action_names=["valve"]),
            ("'valve' is bounded by 1e+08 and 1e+08", "low below the high"),
        ),
        (
            Probe(action=Box(-MOST, MOST, (1,)), action_names=["torque"]),
            ("'torque' is bounded by -3.40282e+38 and 3.40282e+38", "within ±1e+18"),
        ),
        (Probe(action=Box(0.0, 1e300, (1,), np.float64)), ("'action 0'", "1e+300", "±1e+18")),
    ],
)
def test_unfit_spaces_are_named_in_one_line(env: gym.Env, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        spaces.check(env)
    for word in ("Probe", *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_infinite_observation_bounds_are_fine() -> None:
    spaces.check(Probe(observation=Box(-np.inf, np.inf, (2,))))


# --- names ---------------------------------------------------------------------------------------

PLACE, SPEED = ("place", "speed")


@pytest.mark.parametrize(
    ("attributes", "features", "actions"),
    [
        ({}, ("feature 0", "feature 1"), ("action 0",)),
        ({"feature_names": [PLACE, SPEED]}, (PLACE, SPEED), ("action 0",)),
        (
            {"metadata": {"feature_names": [PLACE, SPEED], "action_names": ("push",)}},
            (PLACE, SPEED),
            ("push",),
        ),
        ({"observation_names": np.array([PLACE, SPEED])}, (PLACE, SPEED), ("action 0",)),
        (
            {"observation_variables": [PLACE, SPEED], "action_variables": ["push"]},
            (PLACE, SPEED),
            ("push",),
        ),
        # Names of another kind that are not meant for us.
        ({"observation_names": [[PLACE, SPEED]]}, ("feature 0", "feature 1"), ("action 0",)),
        ({"feature_names": lambda: [PLACE]}, ("feature 0", "feature 1"), ("action 0",)),
        ({"metadata": None}, ("feature 0", "feature 1"), ("action 0",)),
    ],
)
def test_an_environment_has_names_of_its_own(
    attributes: dict, features: tuple[str, ...], actions: tuple[str, ...]
) -> None:
    env = gym.wrappers.TimeLimit(Probe(**attributes), 10)
    assert spaces.names(env) == (features, actions)
    assert spaces.names(env, ("a", "b"), ("c",)) == (("a", "b"), ("c",))


def test_names_that_moie_knows_come_behind_the_environments_own() -> None:
    env = tasks.make("Pendulum-v1")
    assert spaces.names(env) == (("cos of angle", "sin of angle", "turning speed"), ("torque",))
    env.unwrapped.action_names = ["motor"]
    assert spaces.names(env)[1] == ("motor",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((PLACE,), "feature_names has 1 names, expected 2: one for each number"),
        ((PLACE, PLACE), "feature_names has 'place' twice, expected different names"),
        ((PLACE, " "), "feature_names has ' ', expected names that can be printed"),
        ((PLACE, "\x1b[31m"), r"feature_names has '\x1b[31m', expected names that can be printed"),
        ((PLACE, 3), "feature_names has 3, expected names that can be printed"),
    ],
)
def test_names_that_do_not_fit_are_refused(given: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        spaces.names(Probe(), given)
    assert str(caught.value) == words
    with pytest.raises(InputError) as caught:
        spaces.names(Probe(feature_names=given))
    assert str(caught.value) == f"Probe: {words}"

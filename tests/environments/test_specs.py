"""Tasks on their way to other processes: what a user registers arrives there."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

from moie.environments import catalogue, specs, tasks
from moie.errors import InputError
from tests import probes, tiny
from tests.simulators import with_needs

ENV_ID = "MoieProbe-v0"


class Sized(probes.Walk):
    """As large as it is told."""

    def __init__(self, size: int = 1, box: Any = None, start: Callable[[], float] = lambda: 0.0):
        super().__init__()
        self.observation_space = box or Box(-np.inf, np.inf, (size,))
        self.start = start

    def observe(self) -> Any:
        return np.full(self.observation_space.shape, self.place + self.start())


@pytest.fixture
def registered() -> Iterator[Callable[..., str]]:
    """Register an environment for one test."""

    def register(entry_point: Any, **kwargs: Any) -> str:
        gym.register(ENV_ID, entry_point=entry_point, max_episode_steps=7, kwargs=kwargs)
        return ENV_ID

    yield register
    gym.registry.pop(ENV_ID, None)


def elsewhere(packed: bytes) -> dict[str, Any]:
    """Unpack it in a process of its own: what is made there, and the first observation."""
    code = """
import json, sys
from moie.environments import specs, tasks
spec = specs.unpack(sys.stdin.buffer.read())
env = tasks.make(spec)
observation, _ = env.reset(seed=1)
known = {"made": type(env.unwrapped).__name__, "id": spec.id, "observation": observation.tolist()}
print(json.dumps(known | {"limit": env.spec.max_episode_steps}))
"""
    command, environment = tiny.command(code=code), tiny.environment()
    done = subprocess.run(command, input=packed, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("env_id", with_needs(task.id for task in catalogue.TASKS))
def test_a_packed_task_makes_the_same_environment(env_id: str) -> None:
    ours, theirs = tasks.make(env_id), tasks.make(specs.unpack(specs.pack(env_id)))
    for env in (ours, theirs):
        env.action_space.seed(0)
    assert np.array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    for _ in range(10):
        one, other = (env.step(env.action_space.sample()) for env in (ours, theirs))
        assert np.array_equal(one[0], other[0])
        assert one[1:4] == other[1:4]


class Local(Sized):
    pass


Local.__qualname__, Local.__module__ = "Local", "__main__"  # as in a script or a notebook


@pytest.mark.parametrize(
    ("entry_point", "kwargs"),
    [
        (Sized, {"size": 3}),
        (f"{__name__}:Sized", {"size": 3}),
        (Local, {"size": 3}),
        (lambda size: Sized(size), {"size": 3}),
        (Sized, {"box": Box(-9.0, 9.0, (3,))}),
        (Sized, {"size": 3, "start": lambda: 0.0}),
    ],
    ids=["class", "name", "of the script", "lambda", "not JSON", "lambda as an argument"],
)
def test_a_task_of_the_users_arrives_where_it_is_not_registered(
    entry_point: Any, kwargs: dict[str, Any], registered: Callable[..., str]
) -> None:
    packed = specs.pack(registered(entry_point, **kwargs))
    expected = tasks.make(ENV_ID).reset(seed=1)[0].tolist()
    found = elsewhere(packed)
    assert (found["id"], found["limit"], len(found["observation"])) == (ENV_ID, 7, 3)
    assert found["made"] in ("Sized", "Local")
    assert found["observation"] == expected


def test_a_name_in_the_script_is_looked_up_there(
    registered: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Local", Local, raising=False)
    found = elsewhere(specs.pack(registered("__main__:Local", size=2)))
    assert (found["made"], len(found["observation"])) == ("Local", 2)


def test_an_environment_may_make_another_one_by_its_id(registered: Callable[..., str]) -> None:
    gym.register("MoieInner-v0", lambda: Local(size=2))
    try:
        outer = registered(lambda: gym.make("MoieInner-v0", disable_env_checker=True))
        assert len(elsewhere(specs.pack(outer))["observation"]) == 2
    finally:
        del gym.registry["MoieInner-v0"]


def test_what_cannot_be_sent_is_one_line(registered: Callable[..., str]) -> None:
    env_id = registered(Sized, start=threading.Lock().acquire)
    with pytest.raises(InputError, match=r"^MoieProbe-v0 cannot be sent to the .*: TypeError: "):
        specs.pack(env_id)

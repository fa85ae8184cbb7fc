"""PyBullet's walkers stepped by us: the package's numbers, bit for bit."""

import gc
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moie.environments import tasks
from moie.rollout.episode import Job, Purpose, run_episode
from tests import tiny
from tests.simulators import needs

pytestmark = needs("bullet")

WALKERS = ["hopper", "walker2d", "halfcheetah", "ant"]


def both(task: str, **options: Any) -> tuple[gym.Env, gym.Env]:
    return tasks.make(task, **options), tasks.make(task, packaged=True, **options)


def assert_equal(ours: Any, theirs: Any) -> None:
    """Two results of `step`: observation with its type, reward, both flags."""
    assert ours[0].dtype == theirs[0].dtype
    assert ours[0].tobytes() == theirs[0].tobytes()
    assert (ours[1], ours[2], ours[3]) == (theirs[1], theirs[2], theirs[3])
    assert [type(value) for value in ours[1:4]] == [float, bool, bool]


def compare(ours: gym.Env, theirs: gym.Env, seed: int, actions: Any) -> int:
    """An episode in both; its length."""
    first, second = ours.reset(seed=seed), theirs.reset(seed=seed)
    assert first[0].tobytes() == second[0].tobytes()
    for number, action in enumerate(actions):
        found = ours.step(action)
        assert_equal(found, theirs.step(action))
        if found[2] or found[3]:
            return number + 1
    return len(actions)


@pytest.mark.parametrize("task", WALKERS)
def test_random_episodes_equal_the_packages(task: str) -> None:
    from moie.environments.bullet import BatchedWalker

    ours, theirs = both(task)
    assert isinstance(ours.env, BatchedWalker)  # type: ignore[attr-defined]
    rng, size = np.random.default_rng(1), ours.action_space.shape or ()
    lengths = [
        # Beyond the bounds too, where the package clips the torque and charges for the action.
        compare(ours, theirs, seed, rng.uniform(-most, most, (limit, *size)).astype(np.float32))
        for seed, (limit, most) in enumerate([(1000, 1.3), (200, 1.3), (200, 5), (200, 50)])
    ]
    assert lengths[0] == {"halfcheetah": 1000}.get(task, lengths[0])


@pytest.mark.parametrize("task", WALKERS)
def test_episodes_of_a_policy_equal_the_packages(task: str) -> None:
    ours, theirs = both(task)
    policy = tiny.policy(task, experts=10)
    for number in range(3):
        job = Job(3, Purpose.TRAINING, 0, number, 300)
        first, second = (run_episode(env, policy, job) for env in (ours, theirs))
        assert first.observations.tobytes() == second.observations.tobytes()
        assert first.rewards.tobytes() == second.rewards.tobytes()
        assert (first.terminated, first.finished) == (second.terminated, second.finished)
        assert first.distance == second.distance


@pytest.mark.parametrize("task", WALKERS)
def test_the_packages_own_step_goes_on_from_ours(task: str) -> None:
    ours, theirs = both(task)
    package: Any = ours.unwrapped
    rng = np.random.default_rng(0)
    for env in (ours, theirs):
        env.reset(seed=3)
    for number in range(60):
        action = rng.uniform(-1, 1, ours.action_space.shape).astype(np.float32)
        found = ours.step(action) if number % 3 else package.step(action)
        expected = theirs.step(action)
        assert found[0].tobytes() == expected[0].tobytes()
        assert found[1] == expected[1]
        assert package.rewards == theirs.unwrapped.rewards  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [list, np.float64])
def test_actions_may_be_lists_or_double_precision(kind: Any) -> None:
    ours, theirs = both("ant")
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (50, 8))
    compare(ours, theirs, 0, actions if kind is np.float64 else actions.tolist())


def test_the_time_limit_truncates() -> None:
    env = tasks.make("halfcheetah")
    env.reset(seed=0)
    flags = [env.step(np.zeros(6, np.float32))[2:4] for _ in range(1000)]
    assert flags == [(False, False)] * 999 + [(False, True)]


def test_two_environments_do_not_disturb_each_other() -> None:
    # A worker puts an evaluation's episode aside and runs another one in between.
    alone, first, second = (tasks.make("ant") for _ in range(3))
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (80, 8)).astype(np.float32)
    expected = [alone.reset(seed=1)[0], *(alone.step(action)[0] for action in actions)]
    found = [first.reset(seed=1)[0]]
    for number, action in enumerate(actions):
        if number % 20 == 0:
            second.reset(seed=number)
        second.step(-action)
        found.append(first.step(action)[0])
    assert np.array(found).tobytes() == np.array(expected).tobytes()


def test_it_renders_what_the_package_renders() -> None:
    frames = []
    for env in both("hopper", render_mode="rgb_array"):
        env.reset(seed=0)
        first = np.asarray(env.render())
        for _ in range(30):
            env.step(np.full(3, 0.5, np.float32))
        frames.append((first, np.asarray(env.render())))
    for ours, theirs in zip(*frames, strict=True):
        assert ours.shape == (240, 320, 3)
        assert np.array_equal(ours, theirs)
        assert len(np.unique(ours)) > 20
    assert not np.array_equal(*frames[0])


@given(
    st.sampled_from([np.float64, np.float32]).flatmap(
        lambda dtype: arrays(
            dtype,
            st.integers(1, 128),
            elements=st.floats(-1e6, 1e6, width=32 if dtype is np.float32 else 64),
        )
    )
)
def test_numbers_are_added_up_as_numpy_does(values: Any) -> None:
    from moie.environments.bullet import total

    assert total(list(values)) == np.add.reduce(values)


class Rewarded(gym.Wrapper):
    """A wrapper of the user's own."""

    def step(self, action: Any) -> Any:
        observation, _, *rest = self.env.step(action)
        return observation, 7.0, *rest


def test_what_a_user_made_of_a_walker_is_left_alone() -> None:
    tasks.resolve("hopper")
    plain = gym.spec("HopperBulletEnv-v0")
    wrapper = gym.envs.registration.WrapperSpec("Rewarded", f"{__name__}:Rewarded", {})
    spec = EnvSpec(
        "Mine-v0",
        plain.entry_point,
        max_episode_steps=5,
        additional_wrappers=(wrapper,),
    )
    env = tasks.make(spec)
    env.reset(seed=0)
    results = [env.step(np.zeros(3, np.float32)) for _ in range(5)]
    assert [result[1] for result in results] == [7.0] * 5
    assert results[-1][3]


def test_a_closed_walker_leaves_the_next_one_alone() -> None:
    """Whenever it is collected: its client's number may be another simulation's by then."""
    closed = tasks.make("hopper")
    closed.close()
    following = tasks.make("hopper")
    del closed
    gc.collect()
    observation, _ = following.reset(seed=0)
    assert np.isfinite(observation).all()

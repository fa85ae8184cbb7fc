"""The robots on an accelerator are Gymnasium's: one step from the same state."""

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.simulators import needs

pytestmark = needs("swarm")
N = 60
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiles in a third of the time; what is computed does not change."""


def visited(name: str) -> tuple[np.ndarray, ...]:
    """States of random actions, held for a while, with what one step makes of them."""
    env: Any = gymnasium.make(name).unwrapped
    rng, rows = np.random.default_rng(0), []
    for number in range(N // 20):
        env.reset(seed=number)
        for step in range(20):
            if step % 4 == 0:
                most = 3 if number else 1  # the motors clip, the reward charges for all of it
                action = most * rng.uniform(env.action_space.low, env.action_space.high)
            # No memory of the step before, and a state that single precision can hold.
            state = tuple(np.float64(np.float32(x)) for x in (env.data.qpos, env.data.qvel))
            env.set_state(*state)
            action = np.float32(action)
            observation, reward, terminated, _, _ = env.step(action)
            rows.append((*state, action, observation, reward, terminated))
    return tuple(map(np.array, zip(*rows, strict=True)))


def error(ours: Any, theirs: np.ndarray) -> np.ndarray:
    return np.abs(np.asarray(ours) - theirs) / np.maximum(1.0, np.abs(theirs))


@pytest.mark.parametrize(
    "name", ["Ant-v5", "HalfCheetah-v5", "Hopper-v5", "InvertedPendulum-v5", "Walker2d-v5"]
)
def test_one_step_is_gymnasiums(name: str) -> None:
    from moie.accelerated.tasks import Task

    task = Task(name)
    qpos, qvel, actions, observations, rewards, terminated = visited(name)

    def step(qpos: Any, qvel: Any, action: Any) -> Any:
        before = task.at(qpos, qvel)
        return task.observe(before), task.qpos(before), task.step(before, action)

    arguments = [jnp.asarray(x, jnp.float32) for x in (qpos, qvel, actions)]
    compiled = jax.jit(jax.vmap(step)).lower(*arguments).compile(compiler_options=FAST)
    first, place, after = compiled(*arguments)
    np.testing.assert_allclose(place, qpos, rtol=1e-6, atol=1e-6)
    assert first.shape == observations.shape
    seen = error(after.observation, observations).max(axis=1)
    assert np.median(seen) < 1e-5
    assert seen.max() < 1e-3
    assert error(after.reward, rewards).max() < 1e-3
    assert (np.asarray(after.terminated) == terminated).all()


def test_a_robot_that_ran_far_loses_no_digits() -> None:
    from moie.accelerated.tasks import Task

    task = Task("InvertedPendulum-v5")  # where x is seen, it stays
    world = task.at(jnp.asarray([0.5, 0.1]), jnp.zeros(2))
    assert task.observe(world)[0] == 0.5
    assert task.qpos(world)[0] == 0.5


def test_resets_have_gymnasiums_noise() -> None:
    from moie.accelerated.tasks import Task

    for name in ("HalfCheetah-v5", "Hopper-v5"):
        task, env = Task(name), gymnasium.make(name)
        keys = jax.random.split(jax.random.key(0), 2000)
        ours = np.asarray(jax.vmap(lambda key, t=task: t.observe(t.reset(key)))(keys))
        theirs = np.array([env.reset(seed=seed)[0] for seed in range(2000)])
        np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.012)
        np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.1)
        assert np.abs(ours).max() < np.abs(theirs).max() * 1.5


def test_unknown_tasks_and_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import moie
    from moie.accelerated import catalogue

    with pytest.raises(moie.InputError, match="task is 'hopper', expected one that can run on an"):
        catalogue.check_task("hopper")
    versions = {"mujoco": "4.0.0", "mujoco-mjx": "3.17.0"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    with pytest.raises(moie.InputError, match=r"mujoco is 4\.0\.0, expected the version of mujoco"):
        catalogue.check_task("Hopper-v5")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(moie.InputError, match=r"pip install 'moie\[swarm\]'"):
        catalogue.check_task("Hopper-v5")


def test_making_a_task_is_quiet_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from moie.accelerated.tasks import Task

    monkeypatch.chdir(tmp_path)
    Task("HalfCheetah-v5")  # of whose model MuJoCo says that it is out of date
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())

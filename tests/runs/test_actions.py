"""Raw and clipped actions: what the simulator gets, and that each run keeps what it began with."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import moie
from moie.environments import tasks
from moie.environments.catalogue import TASKS
from moie.errors import EnvironmentFault, InputError
from moie.learn import registry
from moie.rollout.episode import Job, Purpose, run_episode
from moie.runs.disk.directory import RunDirectory
from moie.runs.presets import full_id, task_preset
from tests import tiny
from tests.simulators import needs

CHARGE, WALK = "tests.probes:Charge-v0", "tests.probes:Walk-v0"
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four iterations with raw actions."""
    return tiny.train(CHARGE, tmp_path_factory.mktemp("raw") / "run", actions="raw").path


@pytest.fixture(scope="module")
def clipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.train(CHARGE, tmp_path_factory.mktemp("clipped") / "run").path


def episode(is_raw: bool, purpose: Purpose = Purpose.TRAINING) -> Any:
    policy = tiny.policy(CHARGE, log_std=np.full(1, 1.0))
    job = Job(0, purpose, 0, 1, 60, raw=is_raw)
    return policy, run_episode(tasks.make(CHARGE), policy, job)


# --- what the simulator gets ---------------------------------------------------------------------


def test_a_raw_episode_gives_the_simulator_what_was_sampled() -> None:
    _, found = episode(is_raw=True)
    assert np.abs(found.taken).max() > 1  # else this shows nothing
    np.testing.assert_array_equal(found.rewards, -np.abs(found.taken[:, 0]).astype(np.float64))


def test_a_clipped_episode_gives_it_the_nearest_action_in_range() -> None:
    policy, found = episode(is_raw=False)
    given = np.clip(found.taken, -1, 1)
    np.testing.assert_array_equal(found.rewards, -np.abs(given[:, 0]).astype(np.float64))
    np.testing.assert_array_equal(found.given(policy), given)


def test_both_kinds_have_the_same_seeds_and_noise() -> None:
    (policy, one), (_, other) = episode(is_raw=True), episode(is_raw=False)
    np.testing.assert_array_equal(one.observations[0], other.observations[0])
    np.testing.assert_array_equal(one.taken[0], other.taken[0])
    np.testing.assert_array_equal(one.given(policy), one.taken)


def test_a_simulator_cannot_change_what_is_recorded() -> None:
    class Greedy(gymnasium.ActionWrapper):
        def action(self, action: Any) -> Any:
            action *= 0  # in place
            return action

    policy = tiny.policy(CHARGE)
    found = run_episode(
        Greedy(tasks.make(CHARGE)), policy, Job(0, Purpose.TRAINING, 0, 0, 9, 1, True)
    )
    assert np.abs(found.taken).min() > 0


def test_a_simulator_that_refuses_raw_actions_is_told_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"is not in Box.*--actions clipped keeps it inside"):
        tiny.train(WALK, tmp_path / "run", actions="raw")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("short", ["inverted-pendulum", "pendulum", "bipedal-walker"])
def test_the_small_tasks_clip_actions_themselves(short: str) -> None:
    extra = {task.short: task.package_extra for task in TASKS}[short]
    if extra is not None:
        pytest.importorskip({"bullet": "pybullet_envs_gymnasium", "box2d": "Box2D"}[extra])
    policy = tiny.policy(full_id(short))
    both = [
        run_episode(tasks.make(short), policy, Job(1, Purpose.TRAINING, 0, 0, 100, raw=is_raw))
        for is_raw in (True, False)
    ]
    taken = both[0].taken
    assert (np.abs(taken) > policy.action_high).any()
    assert both[0].observations.tobytes() == both[1].observations.tobytes()
    assert both[0].rewards.tobytes() == both[1].rewards.tobytes()


# --- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_nothing(workers: int, raw: Path, tmp_path: Path) -> None:
    run = tiny.train(CHARGE, tmp_path / "run", actions="raw", workers=workers).path
    assert tiny.policy_bytes(run) == tiny.policy_bytes(raw)
    assert tiny.metrics(run) == tiny.metrics(raw)


def test_a_resumed_run_goes_on_with_the_actions_it_began_with(raw: Path, tmp_path: Path) -> None:
    run = tiny.train(CHARGE, tmp_path / "run", actions="raw", iterations=2).path
    tiny.resume(run, iterations=4)
    assert tiny.policy_bytes(run) == tiny.policy_bytes(raw)
    assert tiny.metrics(run) == tiny.metrics(raw)


def test_what_is_learned_and_measured_depends_on_it(raw: Path, clipped: Path) -> None:
    assert tiny.policy_bytes(raw) != tiny.policy_bytes(clipped)
    first, other = (tiny.metrics(run)[0] for run in (raw, clipped))
    assert first["return_sampled"] < other["return_sampled"]  # charged for all of each action


def test_the_policy_says_how_it_learned(raw: Path, clipped: Path) -> None:
    assert moie.load(raw).trained["actions"] == "raw"
    assert "actions" not in moie.load(clipped).trained  # as in all files before there was a choice
    shown = moie.show(raw).replace("\n# ", " ")
    assert "While it learned, commands outside their range were given to the simulator as" in shown
    assert "raw" not in moie.show(clipped)


def test_origins_hold_what_the_simulator_got(raw: Path) -> None:
    policy = moie.load(raw)
    env, outside = tasks.make(CHARGE), 0
    for k, origin in enumerate(policy.origins):
        assert origin is not None
        state, _ = env.reset(seed=origin.seed)
        for action in origin.actions:
            outside += bool(np.abs(action).max() > 1)
            state, *_ = env.step(action)
        np.testing.assert_array_equal(state, policy.prototypes[k])
    assert outside


def test_pictures_of_prototypes_are_led_there_by_raw_actions(raw: Path, tmp_path: Path) -> None:
    import json

    moie.explain(raw, out=tmp_path / "x", episodes=2, pruning=False, workers=1, quiet=True)
    facts = json.loads((tmp_path / "x" / "facts.json").read_text())
    replays = [expert["replay"] for expert in facts["experts"]]
    assert all(replay["matches"] and replay["difference"] == 0 for replay in replays)


def test_runs_and_policies_of_before_are_clipped_and_compressed() -> None:
    config = RunDirectory(ROOT / "data" / "run-0.1.0").read_config()
    assert (config.actions, config.learner.selection.compress) == ("clipped", True)


def test_only_known_kinds_are_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="actions is 'half', expected one of raw, clipped"):
        tiny.train(CHARGE, tmp_path / "run", actions="half")


@pytest.mark.parametrize("algorithm", registry.names())
def test_the_papers_tasks_have_raw_actions_but_for_crisp(algorithm: str) -> None:
    expected = "clipped" if algorithm == "crisp" else "raw"
    for task in TASKS:
        assert task_preset(task.id, algorithm, installed=False).actions == expected
    assert task_preset("MountainCarContinuous-v0", algorithm).actions == "clipped"


# --- what is deployed ----------------------------------------------------------------------------


def test_a_policy_that_learned_raw_acts_in_range(raw: Path) -> None:
    policy = moie.load(raw)
    assert np.abs(policy.means(policy.prototypes * 3)).max() >= 0
    actions, _ = policy.predict(np.zeros((500, 3)))
    assert np.abs(actions).max() == 1


def test_evaluate_says_both_returns_where_they_differ(raw: Path, clipped: Path) -> None:
    found = moie.evaluate(raw, episodes=5, workers=2)
    assert found.raw is not None
    assert found.raw.learned_raw
    assert found.raw.differs
    assert found.raw.sampled.seeds == found.sampled.seeds
    assert found.raw.clipped_sampled == found.sampled
    assert found.raw.sampled.mean < found.sampled.mean
    text = str(found)
    assert "these actions are clipped to their range, as wherever the policy is used" in text
    assert f"    sampled: return {found.raw.sampled.mean:.1f}" in text
    assert moie.evaluate(clipped, episodes=2, workers=2).raw is None  # it may refuse raw ones


@needs("bullet")
def test_evaluate_knows_which_tasks_charge() -> None:
    quiet = moie.evaluate(tiny.policy("hopper", log_std=np.full(3, -9.0)), episodes=2, workers=2)
    assert quiet.raw is not None
    assert not quiet.raw.differs
    assert "learned with clipped actions; whether they are clipped makes no difference" in str(
        quiet
    )
    loud = moie.evaluate(tiny.policy("hopper", log_std=np.full(3, 1.5)), episodes=2, workers=2)
    assert loud.raw is not None
    assert loud.raw.differs
    assert loud.raw.sampled.mean < loud.sampled.mean
    assert moie.evaluate(tiny.policy("inverted-pendulum"), episodes=1, workers=1).raw is None


# --- compressPolicy ------------------------------------------------------------------------------


def test_without_compress_nothing_is_deleted(raw: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"actions": "raw", "iterations": 4}
    run = tiny.train(CHARGE, tmp_path / "run", compress=False, **settings).path
    assert [row["deletions"] for row in tiny.metrics(run)[:-1]] == [0] * 4
    assert any(row["deletions"] for row in tiny.metrics(raw)[:-1])
    assert tiny.policy_bytes(run) != tiny.policy_bytes(raw)

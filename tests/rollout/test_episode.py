"""An episode depends on its job and its policy, and on nothing else; what goes wrong is named."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from moie.environments import tasks
from moie.errors import EnvironmentFault
from moie.rollout.episode import Cancelled, Episode, Job, Purpose, lay_end_to_end, run_episode
from tests import probes, tiny

JOB = Job(run_seed=5, purpose=Purpose.TRAINING, iteration=2, number=3, max_steps=60)
LONG, WALK, TROUBLE = (f"tests.probes:{name}-v0" for name in ("Long", "Walk", "Trouble"))


def equal(one: Episode, other: Episode) -> bool:
    names = ("observations", "taken", "rewards", "terminated", "finished")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


# --- what it depends on --------------------------------------------------------------------------


def test_no_two_episodes_share_a_stream() -> None:
    jobs = [Job(*parts, 10) for parts in itertools.product((0, 1), Purpose, (0, 1), (0, 1))]
    assert len({job.seed for job in jobs}) == len(jobs)
    assert len({job.noise().integers(2**60) for job in jobs}) == len(jobs)
    assert all(0 <= job.seed < 2**31 for job in jobs)


def test_seed_and_noise_do_not_depend_on_the_limit_of_steps() -> None:
    other = replace(JOB, max_steps=7)
    assert other.seed == JOB.seed
    assert other.noise().normal() == JOB.noise().normal()


def test_the_same_job_gives_the_same_episode_whatever_ran_before() -> None:
    policy, env = tiny.policy(WALK), tasks.make(WALK)
    first = run_episode(env, policy, JOB)
    assert not equal(run_episode(env, policy, replace(JOB, number=4)), first)
    assert equal(run_episode(env, policy, JOB), first)
    assert equal(run_episode(tasks.make(WALK), policy, JOB), first)


def test_a_limit_of_steps_cuts_and_changes_nothing_before() -> None:
    policy, env = tiny.policy(LONG), tasks.make(LONG)
    whole = run_episode(env, policy, JOB)
    part = run_episode(env, policy, replace(JOB, max_steps=20))
    assert (whole.length, whole.finished, whole.terminated) == (60, True, False)
    assert (part.length, part.finished, part.terminated) == (20, False, False)
    assert np.array_equal(part.observations, whole.observations[:21])
    assert np.array_equal(part.taken, whole.taken[:20])


def test_mean_actions_are_the_policys_and_sampled_ones_scatter_around_them() -> None:
    policy, env = tiny.policy(LONG), tasks.make(LONG)
    mean = run_episode(env, policy, replace(JOB, purpose=Purpose.EVALUATION_MEAN))
    assert np.allclose(mean.taken, policy.means(mean.observations[:-1]), atol=1e-6)
    sampled = run_episode(env, policy, JOB)
    noise = (sampled.taken - policy.means(sampled.observations[:-1])) / np.exp(policy.log_std)
    assert abs(noise.mean()) < 0.5
    assert 0.7 < noise.std() < 1.3


@pytest.mark.parametrize("name", ["Walk", "Asymmetric", "Grid"])
def test_the_environment_gets_actions_of_its_own_kind(name: str) -> None:
    # The probes assert that their action space contains what they get.
    task = f"tests.probes:{name}-v0"
    policy = tiny.policy(task, log_std=np.log([50.0]))
    episode = run_episode(tasks.make(task), policy, replace(JOB, number=6))
    assert episode.length > 5
    assert episode.observations.shape == (episode.length + 1, 3)
    assert np.abs(episode.taken).max() > policy.action_high[0]  # kept as sampled, not as sent


def test_it_looks_around_often_and_ends_when_told_to() -> None:
    looks = []

    def look() -> int:
        looks.append(1)
        if len(looks) == 3:
            raise Cancelled
        return 200

    env = tasks.make("Pendulum-v1")
    with pytest.raises(Cancelled):
        run_episode(env, tiny.policy("Pendulum-v1"), replace(JOB, max_steps=200), look)
    assert len(looks) == 3


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nan", "observation 'feature 1' is nan, expected a finite number"),
        ("inf", "observation 'feature 1' is inf, expected a finite number"),
        ("short", "observation has 1 numbers, expected 3"),
        ("raise", "RuntimeError: the motor is on fire"),
        ("value", "ValueError: the motor is on fire"),
    ],
)
def test_a_fault_is_named_in_one_line_and_its_record_repeats_it(
    kind: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, JOB.seed, 2))
    policy = tiny.policy(TROUBLE)
    with pytest.raises(EnvironmentFault) as caught:
        run_episode(tasks.make(TROUBLE), policy, JOB)
    message, record = str(caught.value), caught.value.record
    assert words in message
    assert f"reset(seed={JOB.seed})" in message
    assert "\n" not in message
    assert (record["seed"], record["iteration"], record["episode"]) == (JOB.seed, 2, 3)
    assert (record["step"], len(record["actions"])) == (1, 2)

    env = tasks.make(record["task"])
    env.reset(seed=record["seed"])
    *before, last = [np.array(action, np.float32) for action in record["actions"]]
    for action in before:
        assert np.isfinite(env.step(action)[0]).all()
    assert ("where" in record) == ("traceback" in record) == (kind in ("raise", "value"))
    if kind in ("raise", "value"):
        assert "is on fire" in "".join(caught.value.__notes__)
        with pytest.raises((RuntimeError, ValueError), match="on fire"):
            env.step(last)
    else:
        observation = env.step(last)[0]
        assert observation.shape != (3,) or not np.isfinite(observation).all()


@pytest.mark.parametrize("reward", [np.nan, -np.inf])
def test_a_reward_that_is_no_number_is_a_fault(
    reward: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(self: probes.Walk, action: object) -> tuple:
        return self.observe(), reward, False, False, {}

    monkeypatch.setattr(probes.Walk, "step", step)
    with pytest.raises(EnvironmentFault, match=f"reward is {reward}, expected a finite number"):
        run_episode(tasks.make(WALK), tiny.policy(WALK), JOB)


def test_a_fault_always_has_a_record() -> None:
    assert EnvironmentFault("it broke").record == {}
    fault = pickle.loads(pickle.dumps(EnvironmentFault("it broke", {"where": ["  File x"]})))
    assert (str(fault), fault.last_lines, fault.__notes__) == (
        "it broke",
        ["  File x"],
        ["  File x"],
    )


@pytest.mark.parametrize(
    ("method", "returned", "words"),
    [
        ("step", (np.zeros(3), 0.0, False, {}), "returned 4 values, expected five: observation,"),
        ("step", (np.zeros(3), 0.0, False, False, {}, 1), "returned more than 5 values, expected"),
        ("step", None, "returned one NoneType, expected five"),
        ("reset", np.zeros(3), "returned one ndarray, expected two: observation, info"),
        ("reset", [0.0, 1.0], "returned 2 values, expected two"),
        ("reset", (np.zeros(3), {}, 1), "returned 3 values, expected two"),
        ("reset", None, "returned one NoneType, expected two"),
    ],
)
@pytest.mark.parametrize("limited", [True, False], ids=["in wrappers", "bare"])
def test_a_wrong_number_of_values_is_named_as_such(
    method: str, returned: object, words: str, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def returns(self: probes.Walk, *args: object, **kwargs: object) -> object:
        return returned

    monkeypatch.setattr(probes.Walk, method, returns)
    env = tasks.make(WALK) if limited else probes.Walk()
    with pytest.raises(EnvironmentFault) as caught:
        run_episode(env, tiny.policy(WALK), JOB)
    assert f"{WALK}: Walk.{method} (test_episode.py, line " in str(caught.value)
    assert words in str(caught.value)


def test_values_that_do_not_unpack_within_the_environment_are_its_own_affair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step(self: probes.Walk, action: object) -> None:
        _, _, _, _, _ = (1, 2, 3, 4)  # type: ignore[misc]

    monkeypatch.setattr(probes.Walk, "step", step)
    with pytest.raises(
        EnvironmentFault, match=r"ValueError: not enough values .* got 4\)"
    ) as caught:
        run_episode(tasks.make(WALK), tiny.policy(WALK), JOB)
    assert "_, _, _, _, _ = (1, 2, 3, 4)" in caught.value.last_lines[1]


def test_of_a_long_traceback_the_middle_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(self: probes.Walk, action: object) -> None:
        second()

    def second() -> None:
        third()

    def third() -> None:
        fourth()

    def fourth() -> None:
        raise KeyError("gone")

    monkeypatch.setattr(probes.Walk, "step", step)
    with pytest.raises(EnvironmentFault, match="KeyError: 'gone'") as caught:
        run_episode(tasks.make(WALK), tiny.policy(WALK), JOB)
    lines = [line.strip() for line in caught.value.last_lines if not set(line) <= set(" ^")]
    assert [line for line in lines if "File" not in line] == [
        "second()",
        "...",
        "fourth()",
        'raise KeyError("gone")',
    ]
    assert any(line.strip() == "third()" for line in caught.value.record["traceback"])


# --- laid end to end -----------------------------------------------------------------------------


def made_up(number: int, length: int, terminated: bool) -> Episode:
    """Observations count from ten times the episode's number."""
    states = 10.0 * number + np.arange(length + 1.0)
    job = replace(JOB, number=number)
    taken = np.zeros((length, 1), np.float32)
    return Episode(job, states[:, None], taken, states[:-1], terminated, True, None, 0.0)


def test_episodes_are_laid_end_to_end_and_the_last_is_cut() -> None:
    # Episode 1 terminates after 3 steps, episode 2 times out after 2, episode 3 would terminate
    # after 4 steps but the batch of 7 ends after its second.
    episodes = [made_up(1, 3, True), made_up(2, 2, False), made_up(3, 4, True)]
    steps = lay_end_to_end(episodes, 7)
    assert steps.states[:, 0].tolist() == [10, 11, 12, 20, 21, 30, 31]
    assert steps.next_states[:, 0].tolist() == [11, 12, 13, 21, 22, 31, 32]
    assert steps.terminated.tolist() == [False, False, True, False, False, False, False]
    assert steps.episode_end.tolist() == [False, False, True, False, True, False, True]
    assert steps.episode.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert steps.step.tolist() == [0, 1, 2, 0, 1, 0, 1]
    assert steps.rewards.tolist() == [10, 11, 12, 20, 21, 30, 31]


def test_discounted_return() -> None:
    assert made_up(1, 3, True).discounted(0.5) == 10 + 11 / 2 + 12 / 4

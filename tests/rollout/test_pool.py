"""Worker processes: how many there are, and what happens to them, changes nothing."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from moie.environments import specs
from moie.errors import EnvironmentFault, InputError
from moie.policy.base import Origin, Policy
from moie.rollout.episode import Episode, Job, Purpose
from moie.rollout.pool import Pool
from tests import probes, tiny

LONG, WALK, TROUBLE = (f"tests.probes:{name}-v0" for name in ("Long", "Walk", "Trouble"))
N_STEPS = 128


def pids(pool: Pool) -> list[int]:
    """Process numbers of the workers."""
    return [worker.process.pid for worker in pool.workers]


def job(number: int, max_steps: int, iteration: int = 0) -> Job:
    return Job(5, Purpose.TRAINING, iteration, number, max_steps)


def evaluation(number: int) -> Job:
    return Job(5, Purpose.EVALUATION_SAMPLED, 0, number, 60)


def pool_of(task: str, workers: int, timeout: float = 300.0, **options: Callable) -> Pool:
    return Pool(specs.pack(task), workers, timeout, **options)


def content(episodes: list[Episode], n_steps: int = N_STEPS) -> bytes:
    """The first n steps of some episodes."""
    columns = [(e.observations[:-1], e.taken, e.rewards[:, None]) for e in episodes]
    return b"".join(np.concatenate(c)[:n_steps].tobytes() for c in zip(*columns, strict=True))


def sample(
    pool: Pool, policy: Policy, job_of: Callable[[int, int], Job], n_steps: int
) -> list[Episode]:
    pool.start(policy, job_of, n_steps)
    return pool.finish()


def sampled(task: str, workers: int = 2, timeout: float = 300.0, policy: Policy | None = None):
    """A batch by a pool of its own, and how many workers it cost."""
    with pool_of(task, workers, timeout) as pool:
        episodes = sample(pool, policy or tiny.policy(task), job, N_STEPS)
    return content(episodes), pool.replaced


@pytest.fixture(scope="module")
def undisturbed() -> bytes:
    """The batch of the probe when nothing goes wrong."""
    return sampled(TROUBLE, workers=1)[0]


def episodes_needed() -> list[Episode]:
    with pool_of(TROUBLE, 1) as pool:
        return sample(pool, tiny.policy(TROUBLE), job, N_STEPS)


# --- the number of workers -----------------------------------------------------------------------


def test_the_batch_does_not_depend_on_the_number_of_workers() -> None:
    one, two, three = (sampled(WALK, workers)[0] for workers in (1, 2, 3))
    assert one == two == three
    assert one != sampled(WALK, policy=tiny.policy(WALK, weights=np.ones(3)))[0]


def test_queued_episodes_come_back_in_order_and_do_not_disturb_the_batch() -> None:
    jobs = [evaluation(number) for number in range(12)]
    policy = tiny.policy(WALK)
    with pool_of(WALK, 1) as alone:
        alone.queue(policy, jobs)
        expected = content(alone.collect(jobs))
    with pool_of(WALK, 3) as pool:
        pool.queue(policy, jobs)
        batches = [sample(pool, policy, partial(job, iteration=i), N_STEPS) for i in range(3)]
        found = pool.collect(jobs)
    assert [episode.job for episode in found] == jobs
    assert content(found) == expected
    assert content(batches[0]) == sampled(WALK)[0]
    assert len({content(batch) for batch in batches}) == 3


def test_an_evaluation_is_put_aside_for_the_batch() -> None:
    # It takes more than a second; the batch is there long before, and both are what they would be.
    task, jobs = "tests.probes:Slow-v0", [evaluation(0)]
    policy, other = tiny.policy(task), tiny.policy(task, weights=np.ones(3))
    with pool_of(task, 1) as pool:
        batch = content(sample(pool, policy, job, 3), 3)
        expected = content(collected(pool, other, jobs))
    with pool_of(task, 1) as pool:
        pool.queue(other, jobs)
        wait_a_moment(pool, 30, until=lambda: bool(pool.workers[0].patient))
        assert content(sample(pool, policy, job, 3), 3) == batch
        assert not pool.are_done(jobs)
        assert content(pool.collect(jobs)) == expected


def test_where_there_can_be_one_environment_only_the_batch_waits() -> None:
    task, jobs = "tests.probes:Slow-v0", [evaluation(0)]
    policy = tiny.policy(task)
    with pool_of(task, 1) as pool:
        batch = content(sample(pool, policy, job, 3), 3)
        expected = content(collected(pool, policy, jobs))
    with pool_of("tests.probes:Single-v0", 1) as pool:
        pool.queue(policy, jobs)
        wait_a_moment(pool, 30, until=lambda: bool(pool.workers[0].patient))
        assert content(sample(pool, policy, job, 3), 3) == batch
        assert content(pool.collect(jobs)) == expected
        assert pool.replaced == 0


def test_the_episode_that_kills_a_worker_is_blamed_not_the_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [evaluation(0)]
    monkeypatch.setenv(probes.TROUBLE, probes.trouble("die", jobs[0].seed, 20))
    task = "tests.probes:LongTrouble-v0"
    with pool_of(task, 1) as pool:
        pool.queue(tiny.policy(task), jobs)
        for iteration in range(40):
            assert sample(pool, tiny.policy(task), partial(job, iteration=iteration), 30)
        with pytest.raises(EnvironmentFault, match="3 workers died") as caught:
            pool.collect(jobs)
        assert caught.value.record["seed"] == jobs[0].seed
        assert pool.replaced == 3


def test_a_worker_killed_with_an_evaluation_put_aside_changes_nothing() -> None:
    task, jobs = "tests.probes:Slow-v0", [evaluation(0)]
    policy, other = tiny.policy(task), tiny.policy(task, weights=np.ones(3))
    killed: list[int] = []

    def kill() -> None:
        if not killed and pool.workers[0].urgent and pool.workers[0].patient:
            killed.append(pids(pool)[0])
            os.kill(killed[0], signal.SIGKILL)

    with pool_of(task, 1) as pool:
        batch = content(sample(pool, policy, job, 30), 30)
        expected = content(collected(pool, other, jobs))
    with pool_of(task, 1, check=lambda: kill()) as pool:
        pool.queue(other, jobs)
        wait_a_moment(pool, 30, until=lambda: bool(pool.workers[0].patient))
        assert content(sample(pool, policy, job, 30), 30) == batch
        assert content(pool.collect(jobs)) == expected
        assert pool.replaced == len(killed) == 1


def test_queued_episodes_are_run_while_the_parent_works() -> None:
    jobs = [evaluation(number) for number in range(6)]
    with pool_of(WALK, 2) as pool:
        pool.queue(tiny.policy(WALK), jobs)
        wait_a_moment(pool, 30, until=lambda: pool.are_done(jobs))
        assert pool.are_done(jobs)


def test_an_episode_is_ended_when_it_is_known_how_little_of_it_is_needed() -> None:
    # Episode 1 is begun by the second worker with 70 steps to go; 10 turn out to be needed.
    policy = tiny.policy(LONG)
    with pool_of(LONG, 1) as pool:
        expected = content(sample(pool, policy, job, 70), 70)
    with pool_of(LONG, 2) as pool:
        sample(pool, policy, job, 120)  # it has seen how long episodes are
        pool.start(policy, job, 70)
        wait_a_moment(pool, 0.02)
        assert content(pool.finish(), 70) == expected


def test_idle_time_is_time_without_episodes() -> None:
    with pool_of(LONG, 2) as pool:
        sample(pool, tiny.policy(LONG), job, N_STEPS)
        wait_a_moment(pool, 0.1)  # surplus is ended
        before, began = pool.idle_seconds, time.monotonic()
        wait_a_moment(pool, 0.5)
        passed = time.monotonic() - began
        assert pool.idle_seconds - before == pytest.approx(2 * passed, rel=0.01)
        before, began = pool.idle_seconds, time.monotonic()
        sample(pool, tiny.policy(LONG), job, 40 * N_STEPS)
        passed = time.monotonic() - began
        assert pool.idle_seconds - before < 0.5 * passed


def wait_a_moment(pool: Pool, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
    """The parent works for a while, and looks after the workers."""

    def work() -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            time.sleep(0.01)

    with ThreadPoolExecutor(1) as aside:
        pool.tend(aside.submit(work))


def collected(pool: Pool, policy: Policy, jobs: list[Job]) -> list[Episode]:
    pool.queue(policy, jobs)
    return pool.collect(jobs)


def test_workers_do_not_import_jax() -> None:
    task = "tests.probes:Modules-v0"
    with pool_of(task, 1) as pool:
        episode = sample(pool, tiny.policy(task), job, 1)[0]
    assert episode.observations[-1].tolist() == [0, 0, 1]  # jax, pybullet, gymnasium


def test_big_policies_and_big_episodes_do_not_wait_for_each_other() -> None:
    # Neither fits in a socket's buffer: a worker that sends one does not read the other.
    task = "tests.probes:Wide-v0"
    origin = Origin(0, 0, 0, 0, np.zeros((10**6, 1), np.float32))
    first, second = (tiny.policy(task, origins=(origin,) * 3) for _ in range(2))
    some, others = ([evaluation(n) for n in numbers] for numbers in (range(4), range(4, 8)))
    with pool_of(task, 2) as pool:
        sample(pool, first, job, 30)
        pool.queue(first, some)
        sample(pool, first, partial(job, iteration=1), 30)
        time.sleep(1.0)  # the parent learns, the workers fill their sockets
        pool.queue(second, others)
        assert len(pool.collect(some) + pool.collect(others)) == 8


def test_the_parent_can_stop_while_it_waits() -> None:
    class Enough(Exception):  # noqa: N818  not an error
        pass

    def check() -> None:
        raise Enough

    with pool_of(WALK, 1, check=check) as pool, pytest.raises(Enough):
        sample(pool, tiny.policy(WALK), job, N_STEPS)


# --- workers that die or hang --------------------------------------------------------------------


def test_workers_that_are_killed_change_nothing() -> None:
    task = LONG
    expected = sampled(task, workers=1)[0]
    killed: list[int] = []

    def kill() -> None:
        """The first worker at once, while it starts; then one a second, in an episode or idle."""
        due = len(killed) + 0.0 if killed else -1.0
        if len(killed) < 4 and time.monotonic() - began > due:
            killed.append(pids(pool)[len(killed) % 2])
            os.kill(killed[-1], signal.SIGKILL)

    began = time.monotonic()
    with pool_of(task, 2, check=kill) as pool:
        batches = []
        for _ in range(40):
            batches.append(content(sample(pool, tiny.policy(task), job, N_STEPS)))
            if len(killed) == 4:
                break
        batches.append(content(sample(pool, tiny.policy(task), job, N_STEPS)))
        last = pids(pool)
    assert len(killed) == pool.replaced == 4
    assert set(batches) == {expected}
    assert not set(last) & set(killed)


def test_a_worker_that_dies_idle_is_replaced() -> None:
    policy = tiny.policy(WALK)
    with pool_of(WALK, 2) as pool:
        first = content(sample(pool, policy, job, N_STEPS))
        for pid in pids(pool):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        pool.queue(policy, [evaluation(0)])
        assert len(pool.collect([evaluation(0)])) == 1
        assert content(sample(pool, policy, job, N_STEPS)) == first
    assert pool.replaced == 2


@pytest.mark.parametrize("kind", ["die", "hang"])
def test_a_worker_that_dies_or_hangs_once_is_replaced(
    kind: str, undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, "any", 3, marker))
    assert sampled(TROUBLE, timeout=1.5) == (undisturbed, 1)
    assert marker.exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_episode_that_no_worker_survives_is_named(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = job(1, 0).seed
    monkeypatch.setenv(probes.TROUBLE, probes.trouble("die", seed, 1))
    with pytest.raises(EnvironmentFault, match=rf"reset\(seed={seed}\).*episode 1") as caught:
        sampled(TROUBLE, workers)
    assert caught.value.record["seed"] == seed
    assert "\n" not in str(caught.value)


def test_an_environment_that_can_not_be_made_is_named() -> None:
    said = r"ZeroDivisionError: it can not even be made \(probes.py, line \d+\)"
    with pool_of("tests.probes:Broken-v0", 2) as pool, pytest.raises(InputError, match=said):
        sample(pool, tiny.policy(WALK), job, N_STEPS)


def test_a_worker_that_can_not_start_is_an_error_not_a_loop(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("import os\nos._exit(1)\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.setitem(gym.registry, "Deadly-v0", EnvSpec("Deadly-v0", "deadly:Walk"))
        with (
            pool_of("Deadly-v0", 2) as pool,
            pytest.raises(InputError, match="3 workers died or hung"),
        ):
            sample(pool, tiny.policy(WALK), job, N_STEPS)


def test_a_parent_that_is_killed_leaves_no_workers(tmp_path: Path) -> None:
    # Not even one that hangs in its environment.
    marker = tmp_path / "marker"
    code = """
import sys
from tests import tiny
from tests.rollout.test_pool import *
with pool_of(TROUBLE, 2) as pool:
    print(*(worker.process.pid for worker in pool.workers), flush=True)
    sample(pool, tiny.policy(TROUBLE), job, 10**6)
"""
    variables = tiny.environment(**{probes.TROUBLE: probes.trouble("hang", "any", 1, marker)})
    with subprocess.Popen(
        tiny.command(code=code), env=variables, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        while not marker.exists():
            time.sleep(0.05)
        assert all(alive(pid) for pid in pids)
        parent.kill()
    deadline = time.monotonic() + 5
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(pids) == 2
    assert not [pid for pid in pids if alive(pid)]


def alive(pid: int) -> bool:
    """Runs; a zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["nan", "raise"])
def test_the_first_fault_of_the_batch_is_raised(
    kind: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every episode that takes three steps fails: episode 0 must be the one that is blamed.
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, "any", 3))
    with pytest.raises(EnvironmentFault) as caught:
        sampled(TROUBLE, workers)
    first = next(e.job for e in episodes_needed_without_trouble() if e.length >= 3)
    assert caught.value.record["episode"] == first.number
    assert caught.value.record["seed"] == first.seed


def episodes_needed_without_trouble() -> list[Episode]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(probes.TROUBLE)
        return episodes_needed()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["nan", "die"])
def test_a_fault_beyond_the_batch_does_not_stop_it(
    kind: str, workers: int, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One worker never gets there; with several, whether one does is a matter of luck.
    *_, last = episodes_needed()
    beyond = job(last.job.number + 1, 0).seed
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, beyond, 1))
    with pool_of(TROUBLE, workers) as pool:
        for _ in range(3):
            assert content(sample(pool, tiny.policy(TROUBLE), job, N_STEPS)) == undisturbed


@pytest.mark.parametrize("kind", ["nan", "die"])
def test_a_fault_behind_the_last_needed_step_does_not_stop_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Episode 1 is needed for few steps; a second worker begins it before that is known.
    policy = tiny.policy(LONG)
    with pool_of(LONG, 1) as pool:
        first, second = sample(pool, policy, job, 70)
    assert (first.length, second.length) == (60, 10)
    expected = content([first, second], 70)
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, second.job.seed, 15))
    task = "tests.probes:LongTrouble-v0"
    with pool_of(task, 2) as pool:
        assert content(sample(pool, policy, job, 70), 70) == expected
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, second.job.seed, 10))
    for workers in (1, 2):
        with pool_of(task, workers) as pool, pytest.raises(EnvironmentFault):
            sample(pool, policy, job, 70)


def test_a_fault_in_a_queued_episode_is_raised_where_it_is_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [evaluation(number) for number in range(6)]
    monkeypatch.setenv(probes.TROUBLE, probes.trouble("raise", jobs[2].seed, 1))
    policy = tiny.policy(TROUBLE)
    with pool_of(TROUBLE, 2) as pool:
        pool.queue(policy, jobs)
        assert sample(pool, policy, job, N_STEPS)
        with pytest.raises(EnvironmentFault, match="on fire"):
            pool.collect(jobs)

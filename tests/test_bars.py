"""The long promises, on the real tasks. Not part of `make test`: minutes each.

python -m pytest -m slow tests/test_bars.py
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.environments import catalogue, tasks
from moie.learn import registry
from moie.rollout.episode import Job, Purpose, run_episode
from tests import tiny
from tests.environments.test_bullet import WALKERS, both, compare
from tests.simulators import needs, with_needs
from tests.studies import processes as studies

pytestmark = pytest.mark.slow

SEVEN = [task.short for task in catalogue.TASKS]
MUJOCO = with_needs(["Hopper-v5", "HalfCheetah-v5"], "mujoco")
THIRTY = ["--iterations", "30", "--batch-steps", "1024", "--experts", "6", "--seed", "5"]
SHORT = ["--iterations", "8", "--experts", "6", "--batch-steps", "1024", "--seed", "1"]
THIRTY += ["--evaluation-every", "4", "--evaluation-episodes", "1"]


def start(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "moie", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=1800)
    assert process.returncode == 0, errors


def n_rows(run: Path) -> int:
    path = run / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def with_ten_kills(words: list[str], run: Path, seed: int) -> None:
    """Train, killed ten times somewhere within the next iterations or while it is starting."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        again = (run / "run.json").exists()
        process = start(*(["resume", str(run)] if again else words), "--workers", "1")
        target = n_rows(run) + int(rng.integers(0, 3))
        while n_rows(run) < target and process.poll() is None:
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0, 0.3 if target else 4.0)))
        assert process.poll() is None, "it finished before the tenth kill"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finish(start("resume", str(run), "--workers", "1"))


def check_kills_and_workers(words: list[str], folder: Path, seed: int) -> None:
    """One worker, two, and ten kills: the same policy and metrics."""
    one, two, killed = (folder / name for name in ("one", "two", "killed"))
    finish(start(*words, "--workers", "1", "--out", str(one)))
    with_ten_kills([*words, "--out", str(killed)], killed, seed)
    assert [row["iteration"] for row in tiny.metrics(killed)] == list(range(31))
    assert not list(killed.rglob(".*"))
    finish(start(*words, "--workers", "2", "--out", str(two)))
    for other in (killed, two):
        assert tiny.policy_bytes(other) == tiny.policy_bytes(one)
        assert tiny.metrics(other) == tiny.metrics(one)


@pytest.mark.parametrize("task", with_needs(SEVEN))
def test_ten_kills_and_the_number_of_workers_change_nothing(task, tmp_path):
    check_kills_and_workers(["train", task, *THIRTY], tmp_path, SEVEN.index(task))


@needs("bullet")
@pytest.mark.parametrize("algorithm", registry.names()[1:])
def test_ten_kills_change_nothing_for_any_baseline(algorithm, tmp_path):
    words = ["train", "hopper", "--algorithm", algorithm, *THIRTY]
    check_kills_and_workers(words, tmp_path, registry.names().index(algorithm))


@pytest.mark.parametrize("task", with_needs(WALKERS))
def test_ten_random_and_ten_trained_episodes_equal_the_packages(task, tmp_path):
    options = {"experts": 10, "iterations": 25, "evaluation_every": 0, "evaluation_episodes": 1}
    policy = moie.train(task, out=tmp_path / "run", workers=2, quiet=True, **options).policy
    ours, theirs = both(task)
    rng, size = np.random.default_rng(0), ours.action_space.shape
    random, trained = [], []
    for number in range(10):
        actions = rng.uniform(-1, 1, (1000, *size)).astype(np.float32)
        random.append(compare(ours, theirs, number, actions))
        job = Job(9, Purpose.EVALUATION_SAMPLED, 0, number, 1000)
        actions = policy.clipped(run_episode(ours, policy, job).taken)
        trained.append(compare(ours, theirs, job.seed, actions))
    print(task, "steps of random episodes:", random, "of trained ones:", trained)


def resident(pid: int) -> float:
    """Memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@needs("bullet")
def test_memory_stays_flat(tmp_path):
    """300 iterations of Hopper: no process grows after the first 50."""
    run = tmp_path / "run"
    process = start("train", "hopper", "--experts", "10", "--iterations", "300", "--out", str(run))
    seen: dict[int, dict[int, float]] = {}  # by process: iteration, MB
    while process.poll() is None:
        done = n_rows(run)
        if done % 10 == 0 and done:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            for pid in (process.pid, *map(int, children.split())):
                seen.setdefault(pid, {}).setdefault(done, resident(pid))
        time.sleep(0.02)
    finish(process)
    assert len(seen) >= 2
    for pid, sizes in seen.items():
        print(f"process {pid}:", {i: round(mb, 1) for i, mb in sizes.items() if i % 50 == 0})
        # Medians: a learning step needs some 40 MB for a moment.
        early, late = ([mb for i, mb in sizes.items() if low <= i <= low + 50] for low in (50, 250))
        assert min(len(early), len(late)) >= 4
        assert np.median(late) <= 1.01 * np.median(early) + 1.0


def replayed(policy, k: int) -> np.ndarray:
    """The state that a prototype's origin leads to."""
    origin = policy.origins[k]
    env = tasks.make(policy.task)
    state, _ = env.reset(seed=origin.seed)
    for action in origin.actions:
        state, *_ = env.step(action.reshape(policy.action_shape))
    env.close()
    return np.asarray(state, dtype=np.float64).reshape(-1)


@needs("bullet")
def test_hopper_never_exceeds_the_bound_and_every_origin_replays(tmp_path, monkeypatch):
    """Sixty iterations; the KL is recomputed in double precision from the two policies."""
    from moie.runs import training

    found, deploy = [], training.deploy

    def watched(before, state, report, scaling, steps, *rest):
        after = deploy(before, state, report, scaling, steps, *rest)
        std, old_std = np.exp(after.log_std), np.exp(before.log_std)
        z = (after.means(steps.states) - before.means(steps.states)) / old_std
        ratio = (std / old_std) ** 2
        kl = 0.5 * ((z**2).sum(1).mean() + (ratio - 1 - np.log(ratio)).sum())
        found.append((kl, float(report.kl)))
        return after

    monkeypatch.setattr(training, "deploy", watched)
    options = {"experts": 10, "iterations": 60, "evaluation_every": 0, "evaluation_episodes": 1}
    run = moie.train("hopper", out=tmp_path / "run", workers=2, quiet=True, **options)
    assert len(found) == 60
    print("largest KL, recomputed:", max(kl for kl, _ in found))
    for kl, reported in found:
        assert kl <= 0.015 * (1 + 1e-4)
        assert reported == pytest.approx(kl, abs=1e-6)
    policy = run.policy
    for k in range(policy.n_experts):
        difference = np.abs(replayed(policy, k) - policy.prototypes[k]).max()
        assert difference <= 1e-6, f"expert {k} is off by {difference}"


@pytest.mark.parametrize("task", [*MUJOCO, "tests.probes:Scales-v0"])
def test_other_tasks_train_with_default_settings(task, tmp_path):
    run = moie.train(task, iterations=10, out=tmp_path / "run", quiet=True)
    rows = run.metrics
    assert rows[9]["coverage"] > 0.1
    print(task, "coverage after ten iterations:", rows[9]["coverage"])
    for row in rows:
        for name, value in row.items():
            assert value is not None or name == "entropy_floor", f"{name} is not finite"
    policy = run.policy
    for k in range(policy.n_experts):
        assert np.abs(replayed(policy, k) - policy.prototypes[k]).max() <= 1e-6


@pytest.mark.parametrize("task", [*with_needs(SEVEN), MUJOCO[0]])
def test_explanation_on_every_kind_of_simulator_without_a_screen(task, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    run = tmp_path / "run"
    finish(start("train", task, *SHORT, "--out", str(run)))
    finish(start("explain", str(run), "--episodes", "3", "--most-episodes", "10"))
    report = run / "explanation" / "report.html"
    assert report.stat().st_size < 25e6
    facts = json.loads((run / "explanation" / "facts.json").read_text())
    assert facts["scenes"]["problem"] is None
    assert facts["scenes"]["n_frames"] > 0
    said = "The replay does not lead to the stored state" in report.read_text()
    assert all(expert["replay"]["matches"] for expert in facts["experts"]) != said
    print(task, report.stat().st_size, facts["scenes"])


# --- studies -------------------------------------------------------------------------------------


@needs("bullet")
def test_a_study_killed_in_every_way_ends_like_one_left_alone(tmp_path: Path) -> None:
    """Driver, worker, all of Ray, everything at once: each in the middle, then started again."""
    file = tmp_path / "mine.toml"
    file.write_text(
        "tasks = ['pendulum', 'hopper']\nalgorithms = ['moie', 'trpo']\nexperts = 10\nseeds = 2\n"
        "[settings]\niterations = 30\nevaluation_every = 5\nevaluation_episodes = 2\n"
    )
    alone, out = tmp_path / "alone", tmp_path / "killed"
    finish(studies.start(file, alone))

    def go_on(process: subprocess.Popen) -> None:
        before = studies.rows(out)
        studies.wait_for(lambda: studies.rows(out) >= before + 12, process)

    def disturb(*names: str) -> None:
        process = studies.start(file, out)
        go_on(process)
        studies.wait_for(lambda: studies.kill(process, *names), process)
        if "ray::work" in names:  # the study itself goes on
            go_on(process)
        process.kill()
        process.communicate()

    disturb("moie.studies.cluster.driver")
    disturb("ray::work")
    disturb("gcs_server", "raylet")
    disturb("")
    finish(studies.start(file, out))
    studies.assert_same(out, alone, file)

"""A run: the same whatever the workers do, wherever it is stopped, whatever is damaged."""

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import moie
from moie import api
from moie.cli import main
from moie.core.policy import MixturePolicy
from moie.environments import tasks
from moie.errors import DivergenceError, InputError, Stopped
from moie.learn import learner
from moie.rollout.episode import Job, Purpose
from moie.runs import training
from moie.runs.deployment import first_policy
from moie.runs.disk import checkpoint
from moie.runs.disk.directory import RunDirectory
from tests import probes, tiny
from tests.simulators import needs

WALK, SCALES, TROUBLE = (f"tests.probes:{name}-v0" for name in ("Walk", "Scales", "Trouble"))


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four iterations of short episodes."""
    return tiny.train(WALK, tmp_path_factory.mktemp("walk") / "run").path


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run's first two iterations."""
    return tiny.train(WALK, tmp_path_factory.mktemp("half") / "run", iterations=2).path


def assert_same(run: Path, expected: Path) -> None:
    """Policy file byte for byte; every iteration once, in order, with the same numbers."""
    assert tiny.policy_bytes(run) == tiny.policy_bytes(expected)
    assert tiny.metrics(run) == tiny.metrics(expected)
    assert tiny.leftovers(run) == []


# --- what it depends on --------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_nothing(workers: int, walk: Path, tmp_path: Path) -> None:
    assert_same(tiny.train(WALK, tmp_path / "run", workers=workers).path, walk)


def test_another_seed_gives_another_policy(walk: Path, tmp_path: Path) -> None:
    other = moie.load(tiny.train(WALK, tmp_path / "run", seed=1).path)
    assert not np.array_equal(other.prototypes, moie.load(walk).prototypes)


def test_every_iteration_is_recorded(walk: Path) -> None:
    rows = tiny.metrics(walk)
    assert [row["iteration"] for row in rows] == [0, 1, 2, 3, 4]
    # Two batches more at the start, for the scale of the features.
    assert [row["steps"] for row in rows] == [3 * 128, 4 * 128, 5 * 128, 6 * 128, 6 * 128]
    measured = [row["iteration"] for row in rows if "return_sampled" in row]
    assert measured == [row["iteration"] for row in rows if "return_mean" in row] == [0, 2, 4]
    for row in rows[:-1]:
        assert row["kl"] <= 0.015 * 1.001
        assert row["full_update"] in (0, 1)
        assert row["coverage"] == pytest.approx(1 - row["default_share"])
        assert np.isfinite([v for v in row.values() if v is not None]).all()


def test_the_deployed_policy_is_the_learners(walk: Path) -> None:
    state = checkpoint.load(walk / "checkpoints" / "000004")
    policy = moie.load(walk)
    twin = MixturePolicy(*(state.learner[f".policy.{name}"] for name in PARAMETERS))
    states = np.random.default_rng(0).normal(size=(50, 3)) * policy.feature_scale
    scaled = ((states - policy.feature_mean) / policy.feature_scale).astype(np.float32)
    memberships = jax.vmap(twin.membership)(scaled)
    np.testing.assert_allclose(policy.memberships(states), memberships, atol=1e-5)
    means = jax.vmap(twin.mean)(scaled)  # the probe's actions are in -1..1, the learner's too
    np.testing.assert_allclose(policy.means(states), means, atol=1e-5)
    assert (policy.weights >= 0).all()
    assert policy.trained == {"algorithm": "moie", "seed": 0, "iterations": 4, "steps": 6 * 128}


PARAMETERS = ("prototypes", "weights", "actions", "log_std", "temperature")


# --- resume --------------------------------------------------------------------------------------


def test_resume_of_a_complete_run_does_nothing_and_says_so(
    walk: Path, capfd: pytest.CaptureFixture
) -> None:
    before = tiny.contents(walk)
    assert main.main(["resume", str(walk)]) == 0
    assert "is complete: 4 iterations; --iterations" in capfd.readouterr().err
    assert tiny.contents(walk) == before


def test_more_iterations_equal_a_run_started_with_so_many(
    half: Path, walk: Path, tmp_path: Path
) -> None:
    run = tiny.copy(half, tmp_path / "run")
    tiny.resume(run, iterations=4)
    assert_same(run, walk)
    assert RunDirectory(run).read_config() == RunDirectory(walk).read_config()


def test_rows_wait_for_their_evaluation_across_a_stop(
    walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No evaluation is ever done before the stop: all rows wait, and the checkpoint has them.
    from moie.rollout.pool import Pool

    run = tmp_path / "run"
    learned = []

    def learn_and_count(*arguments: Any) -> Any:
        learned.append(1)
        if len(learned) == 4:
            raise Stopped
        return learn(*arguments)

    learn = training.Training._learn
    with monkeypatch.context() as patch:
        patch.setattr(training.Training, "_learn", learn_and_count)
        patch.setattr(training, "BACKLOG", 100)
        patch.setattr(Pool, "are_done", lambda self, jobs: not list(jobs))
        with pytest.raises(Stopped, match="after iteration 3 of 4"):
            tiny.train(WALK, run)
    found = checkpoint.load(run / "checkpoints" / "000003")
    assert [row["iteration"] for row, _ in found.waiting] == [0, 1, 2]
    assert [policy is not None for _, policy in found.waiting] == [True, False, True]
    rows = tiny.metrics(run)
    assert [row["iteration"] for row in rows] == [0, 1, 2]
    assert not any("return_sampled" in row for row in rows)
    tiny.resume(run)
    assert_same(run, walk)


@needs("bullet")
def test_the_packaged_environment_gives_the_same_run(tmp_path: Path) -> None:
    runs = [
        tiny.train("hopper", tmp_path / f"{packaged}", packaged_env=packaged).path
        for packaged in (False, True)
    ]
    assert_same(*runs)


def test_fewer_iterations_than_done_are_refused(walk: Path, tmp_path: Path) -> None:
    run = tiny.copy(walk, tmp_path / "run")
    with pytest.raises(InputError, match=r"iterations is 2, expected at least the 4"):
        tiny.resume(run, iterations=2)
    assert tiny.contents(run) == tiny.contents(walk)


def test_a_run_killed_before_its_first_checkpoint_starts_again(walk: Path, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", RunDirectory(walk).read_config()).path
    with pytest.raises(InputError, match="has no policy yet"):
        moie.load(run)
    tiny.resume(run)
    assert_same(run, walk)


def test_a_run_killed_between_checkpoint_and_policy_file_is_mended(
    walk: Path, tmp_path: Path
) -> None:
    run = tiny.copy(walk, tmp_path / "run")
    old = run / "checkpoints" / "000003" / "policy.safetensors"
    (run / "policy.safetensors").write_bytes(old.read_bytes())
    *rows, _ = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(rows))
    tiny.resume(run)
    assert_same(run, walk)


def test_a_policy_file_that_was_deleted_comes_back(walk: Path, tmp_path: Path) -> None:
    run = tiny.copy(walk, tmp_path / "run")
    (run / "policy.safetensors").unlink()
    tiny.resume(run)
    assert_same(run, walk)


def test_what_a_kill_leaves_behind_is_removed(half: Path, walk: Path, tmp_path: Path) -> None:
    run = tiny.copy(half, tmp_path / "run")
    (run / ".policy.safetensors.abc.moie-part").write_text("half")
    (run / "checkpoints" / ".000003.abc.moie-part").mkdir()
    (run / "checkpoints" / ".000003.abc.moie-part" / "learner.safetensors").write_text("half")
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 2, "st')
    tiny.resume(run, iterations=4)
    assert_same(run, walk)


@pytest.mark.parametrize("name", ["learner.safetensors", "policy.safetensors", "checkpoint.json"])
@pytest.mark.parametrize("keep", [0, 200])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    name: str, keep: int, half: Path, walk: Path, tmp_path: Path
) -> None:
    run = tiny.copy(half, tmp_path / "run")
    damage(run / "checkpoints" / "000002" / name, keep)
    tiny.resume(run, iterations=4)
    assert_same(run, walk)


def test_with_no_whole_checkpoint_nothing_is_touched(
    half: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    run = tiny.copy(half, tmp_path / "run")
    for folder in (run / "checkpoints").iterdir():
        damage(folder / "learner.safetensors", 100)
    before = tiny.contents(run)
    assert main.main(["resume", str(run), "--iterations", "4"]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "no checkpoint in" in error
    assert "truncated or was changed" in error
    assert tiny.contents(run) == before


def damage(file: Path, keep: int) -> None:
    file.write_bytes(file.read_bytes()[:keep])


def test_a_checkpoint_of_another_configuration_is_refused(half: Path, tmp_path: Path) -> None:
    run = tiny.copy(half, tmp_path / "run")
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace('"experts": 3', '"experts": 4'))
    with pytest.raises(InputError, match="experts = 4, the run was started with 3: put that back"):
        tiny.resume(run)


def test_two_processes_do_not_work_on_one_run(half: Path, tmp_path: Path) -> None:
    run = tiny.copy(half, tmp_path / "run")
    before = tiny.contents(run)
    with RunDirectory(run).lock(), pytest.raises(InputError, match="another process is working"):
        tiny.resume(run, iterations=4)
    assert tiny.contents(run) == before


# --- workers and environments that go wrong ------------------------------------------------------


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the probe when nothing goes wrong."""
    return tiny.train(TROUBLE, tmp_path_factory.mktemp("clean") / "run").path


@pytest.mark.parametrize("kind", ["die", "hang"])
def test_a_worker_that_is_lost_changes_nothing(
    kind: str, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = Job(0, Purpose.TRAINING, 1, 2, 0)
    marker = tmp_path / "marker"
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, episode.seed, 1, marker))
    assert_same(tiny.train(TROUBLE, tmp_path / "run", worker_timeout=1.5).path, clean)
    assert marker.exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nan", "observation 'feature 1' is nan"),
        ("raise", "RuntimeError: the motor is on fire"),
        ("die", "3 workers died"),
    ],
)
def test_a_fault_stops_the_run_with_what_repeats_it(
    kind: str,
    words: str,
    clean: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    seed, run = Job(0, Purpose.TRAINING, 2, 1, 0).seed, tmp_path / "run"
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, seed, 1))
    where = {"nan": [], "die": [], "raise": lines_of_the_fire()}
    for words_typed in (tiny.arguments(TROUBLE, run, iterations=4), ["resume", str(run)]):
        assert main.main(words_typed) == 2
        *progress, error = capfd.readouterr().err.splitlines()
        assert error.startswith("moie: ")
        for word in (words, f"seed={seed}", "fault.json", f"moie resume {run}"):
            assert word in error
        lines = [line for line in progress if not line.startswith(("iteration", TROUBLE))]
        assert [line.strip() for line in lines if not set(line) <= set(" ^~")] == where[kind]
        fault = json.loads((run / "fault.json").read_text())
        assert (fault["seed"], fault["iteration"], fault["episode"]) == (seed, 2, 1)
        if kind == "raise":
            assert fault["traceback"][0] == "Traceback (most recent call last):"
            assert fault["traceback"][-2:] == ["RuntimeError: the motor", "is on fire"]
            assert fault["error"] == "RuntimeError: the motor is on fire"
            assert fault["where"] == lines
    assert tiny.leftovers(run) == []
    assert moie.load(run).trained["iterations"] == 2

    if kind != "die":
        env = tasks.make(fault["task"])
        env.reset(seed=fault["seed"])
        *before, last = [np.array(action, np.float32) for action in fault["actions"]]
        for action in before:
            env.step(action)
        if kind == "raise":
            with pytest.raises(RuntimeError, match="on fire"):
                env.step(last)
        else:
            assert np.isnan(env.step(last)[0]).any()

    monkeypatch.delenv(probes.TROUBLE)
    assert main.main(["resume", str(run)]) == 0
    assert_same(run, clean)
    assert not (run / "fault.json").exists()


def lines_of_the_fire() -> list[str]:
    """What a traceback says of the probe that raises."""
    file, said = probes.__file__, []
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        if "self.misbehave(kind" in line:
            said += [f'File "{file}", line {number}, in step', line.strip()]
        if "raise RuntimeError(" in line and "on fire" in line:
            said += [f'File "{file}", line {number}, in misbehave', line.strip()]
    return said


@pytest.mark.parametrize("iteration", [0, 2, 4])
def test_a_fault_in_an_evaluation_loses_no_row(
    iteration: int,
    clean: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    seed, run = Job(0, Purpose.EVALUATION_MEAN, iteration, 0, 0).seed, tmp_path / "run"
    monkeypatch.setenv(probes.TROUBLE, probes.trouble("raise", seed, 1))
    for words in (tiny.arguments(TROUBLE, run, iterations=4), ["resume", str(run)]):
        assert main.main(words) == 2
        assert f"seed={seed}" in capfd.readouterr().err
        # What was learned before the fault came up is there, whether measured or not.
        learned = moie.load(run).trained["iterations"]
        assert [row["iteration"] for row in tiny.metrics(run)] == list(range(learned))
    monkeypatch.delenv(probes.TROUBLE)
    assert main.main(["resume", str(run)]) == 0
    assert_same(run, clean)


# --- a full disk ---------------------------------------------------------------------------------


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """The kernel refuses to let a file grow beyond: the error of a full disk, for root as well."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def checkpoint_too_large(run: Path) -> int:
    return (run / "checkpoints" / "000002" / "learner.safetensors").stat().st_size - 1


def metrics_too_large(run: Path) -> int:
    """Also where the first row still waited for its evaluation, and is written again."""
    file = run / "metrics.jsonl"
    file.write_text(" " * 20_000 + "\n" + file.read_text())
    return file.stat().st_size + 100


@pytest.mark.parametrize("limit_of", [checkpoint_too_large, metrics_too_large])
def test_a_full_disk_stops_the_run_and_harms_nothing(
    limit_of: Callable[[Path], int],
    half: Path,
    walk: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture,
) -> None:
    run = tiny.copy(half, tmp_path / "run")
    limit = limit_of(run)
    with no_file_larger_than(limit):
        code = main.main(["resume", str(run), "--iterations", "4"])
    *progress, error = capfd.readouterr().err.splitlines()
    assert code == 2
    assert error.startswith("moie: no space left to write")
    assert "free some space and go on" in error
    assert all(line.startswith(("iteration", WALK)) for line in progress)
    assert tiny.leftovers(run) == []
    kept = checkpoint.present(run / "checkpoints")
    assert len(kept) == 2
    assert tiny.learned_bytes(run) == tiny.learned_bytes(kept[-1])
    for now in kept:
        before = half / "checkpoints" / now.name
        assert not before.exists() or tiny.contents(now) == tiny.contents(before)
    assert limit_of is not checkpoint_too_large or kept[-1].name == "000002"

    assert main.main(["resume", str(run)]) == 0
    assert tiny.policy_bytes(run) == tiny.policy_bytes(walk)
    assert tiny.metrics(run) == tiny.metrics(walk)


def test_a_disk_that_is_full_from_the_start_gets_no_run(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    with no_file_larger_than(1000):
        assert main.main(tiny.arguments(WALK, tmp_path / "run")) == 2
    error = capfd.readouterr().err
    assert error.startswith("moie: no space left to write")
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("out", ["/dev/null/run", "/proc/run"])
def test_a_place_where_nothing_can_be_written_is_named(
    out: str, capfd: pytest.CaptureFixture
) -> None:
    assert main.main(tiny.arguments(WALK, Path(out))) == 2
    error = capfd.readouterr().err
    assert f"cannot write {out}" in error
    assert error.count("\n") == 1


def test_learning_that_diverges_is_an_error_and_the_checkpoint_stays(
    half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny.copy(half, tmp_path / "run")
    compiled = learner.compiled

    def diverging(*arguments: Any) -> Any:
        def learn(*state_and_batch: Any) -> Any:
            state, report = compiled(*arguments)(*state_and_batch)
            return state, jax.tree.map(lambda x: x * np.nan if x.dtype == np.float32 else x, report)

        return learn

    monkeypatch.setattr(learner, "compiled", diverging)
    with pytest.raises(DivergenceError, match=r"learning diverged in iteration 2: kl is nan"):
        tiny.resume(run, iterations=4)
    assert tiny.policy_bytes(run) == tiny.policy_bytes(half)


# --- origins -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["pendulum", SCALES])
def test_every_prototype_is_a_state_that_a_replay_visits(
    task: str, pendulum: Path, tmp_path: Path
) -> None:
    path = pendulum if task == "pendulum" else tiny.train(task, tmp_path / "run").path
    policy = moie.load(path)
    assert policy.n_experts == 3
    for prototype, origin in zip(policy.prototypes, policy.origins, strict=True):
        assert origin is not None
        assert len(origin.actions) == origin.step
        env = tasks.make(policy.task)
        state, _ = env.reset(seed=origin.seed)
        for action in origin.actions:
            state, *_ = env.step(action)
        assert np.array_equal(np.asarray(state, np.float64), prototype)
        assert origin.seed == Job(0, Purpose.TRAINING, origin.iteration, origin.episode, 0).seed
    assert max(origin.iteration for origin in policy.origins if origin) > 0


# --- scaling -------------------------------------------------------------------------------------


def test_the_papers_tasks_are_taken_as_they_are(pendulum: Path) -> None:
    policy = moie.load(pendulum)
    assert np.array_equal(policy.feature_mean, np.zeros(3))
    assert np.array_equal(policy.feature_scale, np.ones(3))
    assert np.array_equal(policy.default_action, np.zeros(1))


@pytest.mark.parametrize(
    ("task", "middle", "half_range"),
    [("pendulum", 0.0, 1.0), (SCALES, 0.0, 100.0), ("tests.probes:Asymmetric-v0", 6.0, 4.0)],
)
def test_the_first_policy_explores_around_the_middle_of_the_range(
    task: str, middle: float, half_range: float
) -> None:
    config = api.task_preset(task)
    untrained = learner.start(config.learner, 3, 1, key=jax.random.key(0)).policy
    policy = first_policy(config, tasks.make(config.task), untrained)
    assert policy.default_action.tolist() == [middle]
    assert np.exp(policy.log_std) == pytest.approx([half_range])
    assert policy.predict(np.ones(3), deterministic=True)[0].tolist() == [middle]


def test_the_scale_of_the_features_is_set_once(half: Path, walk: Path) -> None:
    policy = moie.load(walk)
    first = checkpoint.load(half / "checkpoints" / "000001").policy
    assert np.array_equal(policy.feature_mean, first.feature_mean)
    assert np.array_equal(policy.feature_scale, first.feature_scale)
    assert (policy.feature_scale != 1).all()


@pytest.mark.parametrize("name", ["Asymmetric", "Grid"])
def test_other_ranges_and_shapes_are_learned(name: str, tmp_path: Path) -> None:
    run = tiny.train(f"tests.probes:{name}-v0", tmp_path / "run")
    policy = run.policy
    env = tasks.make(policy.task)
    observation, _ = env.reset(seed=0)
    action, _ = policy.predict(observation)
    assert action.shape == env.action_space.shape
    env.step(action.astype(env.action_space.dtype))
    assert run.metrics[-1]["return_sampled"] < 0


def test_features_and_actions_of_any_size_are_covered(tmp_path: Path) -> None:
    # All settings are the defaults but the size of the batch.
    run = moie.train(
        SCALES, out=tmp_path / "run", batch_steps=256, iterations=10, workers=2, quiet=True
    )
    rows, policy = run.metrics, run.policy
    assert rows[9]["coverage"] > 0.1
    assert np.isfinite([v for row in rows for v in row.values() if v is not None]).all()
    assert 3e-4 < policy.feature_scale[0] < 1e-2
    assert 3e2 < policy.feature_scale[1] < 1e4
    assert (policy.feature_mean[2], policy.feature_scale[2]) == (0.0, 1.0)
    assert (policy.prototypes[:, 2] == 7.0).all()
    assert np.abs(policy.prototypes[:, 1]).max() > 1e3


def test_time_spent_adds_up_over_a_resume(half: Path, tmp_path: Path) -> None:
    run = tiny.copy(half, tmp_path / "run")
    began = time.perf_counter()
    rows = tiny.resume(run, iterations=3).metrics
    spent = time.perf_counter() - began
    seconds = [row["seconds_total"] for row in rows if "seconds_total" in row]
    assert seconds == sorted(seconds)
    assert 0 < seconds[2] - seconds[1] < spent

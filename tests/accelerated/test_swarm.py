"""Many seeds at once: ordinary runs, which end with the same bytes whenever they are killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.accelerated import folder
from moie.cli.main import main
from moie.errors import Stopped
from moie.policy.mixture import Mixture
from tests import tiny
from tests.sharing import shared
from tests.simulators import needs

pytestmark = needs("swarm")
SETTINGS: dict[str, Any] = tiny.SETTINGS | {"environments": 8, "iterations": 25, "seeds": [0, 3]}
"""One compilation serves all tests: they share seeds, environments and steps of a batch."""


def swarm(out: Path, **settings: Any) -> list[moie.Run]:
    settings = SETTINGS | {"workers": 1} | settings
    return moie.swarm("InvertedPendulum-v5", out=out, quiet=True, **settings)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete swarm, for reading only."""
    return shared(tmp_path_factory, "swarm", swarm)


def test_each_seed_is_an_ordinary_run(runs: Path) -> None:
    policies = []
    for seed in (0, 3):
        run = moie.Run(runs / f"s{seed}")
        rows = run.metrics
        assert [row["iteration"] for row in rows] == list(range(26))
        assert rows[0]["steps"] == (1 + 3) * 128  # three batches gave the scale of the features
        assert rows[-1]["steps"] == (25 + 3) * 128
        assert all(row["kl"] <= 0.015 * (1 + 1e-4) for row in rows[:-1])
        returns = {"return_sampled", "return_mean", "return_sampled_mjx", "return_mean_mjx"}
        assert returns <= set(rows[-1])
        assert {"return_batch", "length_batch", "attention"} <= set(rows[5])
        assert "distance_batch" not in rows[5]
        assert "seed" in repr(run)
        policy = run.policy
        assert isinstance(policy, Mixture)
        assert policy.trained["steps"] == rows[-1]["steps"]
        policies.append(policy)
    assert not np.array_equal(policies[0].actions, policies[1].actions)


def test_prototypes_are_visited_states_and_origins_set_the_simulator(runs: Path) -> None:
    from moie.explanation import scenes

    policy: Any = moie.load(runs / "s3")
    assert "environment" in moie.show(runs / "s3")
    with scenes.Stage(policy.task, scenes.STILL) as stage:
        for k, origin in enumerate(policy.origins):
            arrive = partial(stage.put, origin.qpos, origin.qvel)
            scene = scenes.relive(stage, policy, k, arrive, policy.prototypes[k])
            assert scene.difference == 0.0
            assert scene.replay["matches"]


def test_runs_are_evaluated_and_explained(runs: Path, tmp_path: Path) -> None:
    run = tiny.copy(runs / "s0", tmp_path / "run")
    measured = moie.evaluate(run, episodes=2, workers=1)
    assert "read literally" in str(measured)
    report = moie.explain(run, episodes=2, workers=1, out=tmp_path / "report", pruning=False)
    facts = json.loads((report.parent / "facts.json").read_text())
    assert facts["scenes"]["are_set"]
    assert facts["scenes"]["n_matching"] == facts["scenes"]["n_replayed"] == 3
    assert "The simulator was set to the state" in report.read_text()


def test_a_killed_swarm_ends_with_the_same_bytes(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "swarm"
    words = tiny.arguments("InvertedPendulum-v5", out, workers=1, environments=8, iterations=25)
    words = ["swarm", *words[1:], "--seeds", "0,3"]
    process = subprocess.Popen(tiny.command(*words), env=tiny.environment())
    saved = out / "s3" / "checkpoints"
    while not (saved.is_dir() and list(saved.glob("0*"))):
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert folder.is_swarm(out)
    with pytest.raises(moie.InputError, match="is one of the runs of a swarm"):
        moie.resume(out / "s3", quiet=True)
    moie.resume(out, quiet=True, workers=1)
    for seed in ("s0", "s3"):
        assert tiny.policy_bytes(out / seed) == tiny.policy_bytes(runs / seed)
        assert tiny.metrics(out / seed) == tiny.metrics(runs / seed)
        assert not tiny.leftovers(out / seed)


@pytest.mark.parametrize("is_first_saved", [False, True])
def test_a_swarm_killed_while_a_moment_is_saved_ends_with_the_same_bytes(
    is_first_saved: bool, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moie.accelerated.members import Member

    out, saved = tmp_path / "swarm", []

    def save(member: Member, learner: Any, real: Any = Member.save) -> Any:
        saved.append(member.config.seed)
        if saved == ([0, 3, 0, 3] if is_first_saved else [0, 3]):
            raise SystemExit  # seed 3 has not saved what seed 0 has
        return real(member, learner)

    with monkeypatch.context() as patch:
        patch.setattr(Member, "save", save)
        with pytest.raises(SystemExit):
            swarm(out)
    assert [len(list((out / s / "checkpoints").iterdir())) for s in ("s0", "s3")] == (
        [2, 1] if is_first_saved else [1, 0]
    )
    saved.clear()
    with monkeypatch.context() as patch:  # and once more, at the first moment that is saved again
        patch.setattr(Member, "save", save)
        with pytest.raises(SystemExit):
            moie.resume(out, quiet=True, workers=1)
    moie.resume(out, quiet=True, workers=1)
    for seed in ("s0", "s3"):
        assert tiny.policy_bytes(out / seed) == tiny.policy_bytes(runs / seed)
        assert tiny.metrics(out / seed) == tiny.metrics(runs / seed)


@pytest.mark.parametrize(
    "error", [moie.InputError("no"), Stopped("stopped"), KeyboardInterrupt(), RuntimeError("a bug")]
)
@pytest.mark.parametrize("place", ["swarm", "some/where", "empty"])
def test_a_swarm_without_an_iteration_leaves_nothing_behind(
    error: BaseException, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moie.accelerated.program import Program

    def fail(*_: Any) -> None:
        assert folder.is_swarm(tmp_path / place)
        raise error

    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(Program, "compile", fail)
    with pytest.raises(type(error)) as caught:
        swarm(tmp_path / place)
    if isinstance(error, Stopped):
        said = "stopped before the first iteration was complete; nothing is kept"
        assert str(caught.value) == said
    assert os.listdir(tmp_path) == ["empty"]
    assert os.listdir(tmp_path / "empty") == []


def test_a_complete_swarm_continues_with_more_iterations(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tiny.copy(runs, tmp_path / "swarm")
    before = tiny.policy_bytes(out / "s0")
    assert main(["resume", str(out)]) == 0
    assert f"compare them with: moie compare {out}" in capsys.readouterr().out
    assert tiny.policy_bytes(out / "s0") == before
    assert repr(moie.resume(out, iterations=27, quiet=True)) == f"<swarm {out}: seeds 0, 3>"
    assert [row["iteration"] for row in tiny.metrics(out / "s3")][-3:] == [25, 26, 27]


def _change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def _without_checkpoints(out: Path) -> None:
    for seed in ("s0", "s3"):
        shutil.rmtree(out / seed / "checkpoints")


def _of_different_iterations(out: Path) -> None:
    shutil.rmtree(out / "s3" / "checkpoints" / "000025")
    for path in (out / "s0" / "checkpoints").iterdir():
        if path.name != "000025":
            shutil.rmtree(path)


@pytest.mark.parametrize(
    ("damage", "options", "said"),
    [
        (lambda out: None, {"iterations": 3}, "iterations is 3, expected at least the 25 that"),
        (
            lambda out: _change(out / "s3/run.json", '"candidates": 50', '"candidates": 60'),
            {},
            "s3/run.json has candidates = 60, the run was started with 50",
        ),
        (
            lambda out: _change(out / "swarm.json", "3", "4"),
            {},
            "s4 is not a run: there is no run.json in it",
        ),
        (
            lambda out: _change(out / "s0/run.json", '"seed": 0', '"seed": 7'),
            {},
            "s0/run.json has seed = 7, the run was started with 0",
        ),
        (_without_checkpoints, {}, "s0 has policy.safetensors and metrics.jsonl, but no check"),
        (_of_different_iterations, {}, "is whole in all of its runs: they are of different iter"),
        (
            lambda out: (
                shutil.copy(out / "s0/metrics.jsonl", out / "s3/metrics.jsonl")
                and _change(out / "s3/metrics.jsonl", '"steps": 3584', '"steps": 3585')
            ),
            {},
            "s3/metrics.jsonl has 3585 steps after iteration 24, the checkpoint 000025 has 3584",
        ),
    ],
)
def test_a_swarm_that_was_damaged_is_refused_and_left_as_it_is(
    damage: Callable[[Path], Any], options: dict[str, Any], said: str, runs: Path, tmp_path: Path
) -> None:
    out = tiny.copy(runs, tmp_path / "swarm")
    damage(out)
    before = tiny.contents(out)
    with pytest.raises(moie.InputError, match=re.escape(said)):
        moie.resume(out, quiet=True, **({"iterations": 30} | options))
    assert tiny.contents(out) == before


def test_a_run_without_its_swarm_does_not_continue_alone(runs: Path, tmp_path: Path) -> None:
    run = tiny.copy(runs / "s0", tmp_path / "run")
    before = tiny.contents(run)
    with pytest.raises(moie.FileError, match=r"is one of the runs of a swarm, .* swarm\.json"):
        moie.resume(run, iterations=30, quiet=True)
    assert tiny.contents(run) == before


def test_one_process_at_a_time_works_on_a_swarm(runs: Path, tmp_path: Path) -> None:
    from moie.runs.disk.directory import RunDirectory

    out = tiny.copy(runs, tmp_path / "swarm")
    before = tiny.contents(out)
    with RunDirectory(out).lock(), pytest.raises(moie.InputError, match="another process is work"):
        moie.resume(out, iterations=30, quiet=True)
    assert tiny.contents(out) == before


def test_the_folder_of_a_swarm_is_not_a_run_but_has_some(runs: Path) -> None:
    for command in (moie.show, moie.evaluate, moie.load):
        with pytest.raises(moie.FileError, match=f"it has runs in it, name one .*: {runs}/s0$"):
            command(runs)


def test_a_seed_that_diverges_is_marked_and_disturbs_no_other(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import equinox as eqx

    from moie.accelerated.program import Program
    from moie.accelerated.records import Seeds

    def start(program: Program, seeds: list[int], real: Any = Program.start) -> Seeds:
        state = real(program, seeds)
        bad = state.learner.critic.matrices[0].at[1].set(np.nan)
        return eqx.tree_at(lambda s: s.learner.critic.matrices[0], state, bad)

    monkeypatch.setattr(Program, "start", start)
    swarm(tmp_path / "swarm")
    assert tiny.policy_bytes(tmp_path / "swarm" / "s0") == tiny.policy_bytes(runs / "s0")
    lost = tmp_path / "swarm" / "s3"
    assert "is nan" in json.loads((lost / "fault.json").read_text())["diverged"]
    assert not tiny.metrics(lost)
    moie.resume(tmp_path / "swarm", iterations=26, quiet=True, workers=1)
    assert tiny.metrics(tmp_path / "swarm" / "s0")[-1]["iteration"] == 26
    assert not tiny.metrics(lost)


@pytest.fixture
def own_program() -> Iterator[None]:
    """For a test that changes what is compiled."""
    from moie.accelerated import program

    program._program_of.cache_clear()
    yield
    program._program_of.cache_clear()


@pytest.mark.usefixtures("own_program")
def test_a_seed_keeps_its_last_sound_state_however_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import equinox as eqx
    import jax.numpy as jnp

    from moie.accelerated import training
    from moie.accelerated.members import Member
    from moie.accelerated.program import Program

    def learn(program: Program, state: Any, *given: Any, real: Any = Program.learn) -> Any:
        learned, report = real(program, state, *given)
        bad = jnp.max(state.iteration) == jnp.array([-1, 15])
        std = jnp.where(bad[:, None], jnp.nan, learned.policy.log_std)
        return eqx.tree_at(lambda s: s.policy.log_std, learned, std), report

    def save(member: Member, learner: Any, real: Any = Member.save) -> Any:
        if member.config.seed == 3 and member.divergence is not None:
            raise SystemExit  # seed 0 has saved what comes after
        return real(member, learner)

    def linear(out: Path) -> None:  # which is compiled in no time
        known = {k: v for k, v in SETTINGS.items() if k not in ("experts", "temperature")}
        known |= {"algorithm": "trpo-linear", "workers": 1, "quiet": True}
        moie.swarm("InvertedPendulum-v5", out=out, **known)

    monkeypatch.setattr(Program, "learn", learn)
    alone, broken = tmp_path / "alone", tmp_path / "broken"
    with monkeypatch.context() as patch:
        patch.setattr(Member, "save", save)
        with pytest.raises(SystemExit):
            linear(broken)
    assert {p.name for p in (broken / "s0" / "checkpoints").iterdir()} == {"000011", "000021"}
    monkeypatch.setattr(training, "CALL", 1e-4)  # an iteration a call from here on
    moie.resume(broken, quiet=True, workers=1)
    linear(alone)
    for seed in ("s0", "s3"):
        assert tiny.policy_bytes(broken / seed) == tiny.policy_bytes(alone / seed)
        assert tiny.metrics(broken / seed) == tiny.metrics(alone / seed)
    lost = broken / "s3"
    assert [row["iteration"] for row in tiny.metrics(lost)] == list(range(15))
    assert "iteration 15" in json.loads((lost / "fault.json").read_text())["diverged"]
    moie.resume(broken, iterations=27, quiet=True, workers=1)
    moie.resume(alone, iterations=27, quiet=True, workers=1)
    assert tiny.policy_bytes(broken / "s0") == tiny.policy_bytes(alone / "s0")


def test_a_swarm_whose_seeds_all_diverge_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import equinox as eqx

    from moie.accelerated.program import Program
    from moie.accelerated.records import Seeds

    def start(program: Program, seeds: list[int], real: Any = Program.start) -> Seeds:
        return eqx.tree_at(
            lambda s: s.learner.critic.matrices[0], real(program, seeds), replace_fn=lambda x: x / 0
        )

    monkeypatch.setattr(Program, "start", start)
    with pytest.raises(moie.DivergenceError, match=r"all seeds diverged; seed 0: .* is nan"):
        swarm(tmp_path / "swarm")
    assert not list(tmp_path.iterdir())


def test_the_learner_is_the_same(runs: Path) -> None:
    import equinox as eqx
    import jax

    from moie.accelerated.program import Program
    from moie.accelerated.records import Plan
    from moie.accelerated.tasks import Task
    from moie.learn import learner
    from moie.runs.disk.directory import RunDirectory

    config = RunDirectory.open(runs / "s0").read_config()
    program = Program(Task(config.task), config, 8, 1)
    seeds = program.start([0, 3])
    columns: Any = (np.bool_(True), np.bool_(True), np.float32(0), np.int32(1))

    def both(seeds: Any) -> Any:
        after, moments, _ = program.sample(seeds, Plan(*columns))
        rows = jax.tree.map(program.by_environment, moments)
        batch = program.batch(after, rows)
        learned, report = program.learn(seeds.learner, batch, 0.0)
        return batch, learned, report, eqx.tree_at(lambda s: s.learner, after, learned)

    both = jax.jit(both)
    batch, *_, later_seeds = both(seeds)
    assert batch.states.shape == (2, 128, 4)
    assert np.asarray(batch.episode_end).reshape(2, 8, 16)[:, :, -1].all()
    ends = np.asarray(batch.terminated)
    assert np.asarray(batch.episode_end)[ends].all()
    # A state that follows one that is no end is the next one; an end keeps its own.
    follows = ~np.asarray(batch.episode_end)[:, :-1]
    states, later = np.asarray(batch.states), np.asarray(batch.next_states)
    np.testing.assert_array_equal(later[:, :-1][follows], states[:, 1:][follows])
    assert (np.abs(later[ends][:, 1]) > 0.2).all()
    # The first iteration, and the second one, which swaps prototypes.
    for before in (seeds, later_seeds):
        batch, together, reports, _ = both(before)
        for place in range(2):
            alone, report = learner.learn_jit(
                config.learner,
                jax.tree.map(lambda x, at=place: x[at], before.learner),
                jax.tree.map(lambda x, at=place: x[at], batch),
            )
            assert np.array_equal(report.rows, reports.rows[place])
            for one, other in zip(
                jax.tree.leaves(alone.policy), jax.tree.leaves(together.policy), strict=True
            ):
                np.testing.assert_allclose(one, other[place], atol=1e-4)
    assert (np.asarray(reports.facts["swaps"]) > 0).any()


def test_seeds_are_a_number_or_a_list() -> None:
    assert folder.seeds_of("3") == (0, 1, 2)
    assert folder.seeds_of("0,3, 7") == (0, 3, 7)
    assert folder.seeds_of([5]) == (5,)
    assert folder.seeds_of(np.int64(2)) == folder.seeds_of(2.0) == (0, 1)
    assert folder.seeds_of(np.array(2)) == (0, 1)
    assert folder.seeds_of(np.arange(2)) == folder.seeds_of(n for n in (0, 1)) == (0, 1)
    wrong: tuple[Any, ...] = (None, True, b"ab", {0: 1}, [True], 1.5, float("nan"), float("inf"))
    for bad in ("", "a", "1,1", "-1", [], [1, 1], 0, [1.5], "1e3", 10**9, *wrong):
        with pytest.raises(moie.InputError, match="seeds is"):
            folder.seeds_of(bad)


def test_more_seeds_than_fit_are_learned_in_groups() -> None:
    many = folder.Swarm((0, 1, 2, 3, 4), 2, "cpu")
    assert many.groups == [(0, 1), (2, 3), (4,)]


def test_seeds_that_memory_does_not_hold_are_learned_one_group_after_the_other(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import jax

    from moie.accelerated.program import Program

    def compiled(program: Program, seeds: Any, real: Any = Program.compile) -> None:
        if len(seeds.is_sound) > 2:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        real(program, seeds)

    monkeypatch.setattr(Program, "compile", compiled)
    out, settings = tmp_path / "swarm", SETTINGS | {"iterations": 2, "seeds": [0, 3, 1, 2]}
    moie.swarm("InvertedPendulum-v5", out=out, workers=1, **settings)
    said = capsys.readouterr().err
    assert "2 at a time" in said
    row = tiny.metrics(out / "s1")[-1]
    returns = sorted(tiny.metrics(out / seed)[-1]["return_mean"] for seed in ("s1", "s2"))
    assert row["iteration"] == 2
    assert f"mean actions: Gymnasium {np.median(returns):.0f} (" in said.splitlines()[-1]
    assert " MJX " in said.splitlines()[-1]
    assert folder.read(out).groups == [(0, 3), (1, 2)]
    for seed in ("s0", "s3"):
        rows = tiny.metrics(out / seed)
        assert rows[:2] == tiny.metrics(runs / seed)[:2]
        assert rows[-1]["iteration"] == 2
    assert all((out / seed / "policy.safetensors").is_file() for seed in ("s1", "s2"))

    # What is wrong with a later group is found before an earlier one learns.
    _change(out / "s2/run.json", '"candidates": 50', '"candidates": 60')
    before = tiny.contents(out)
    with pytest.raises(moie.InputError, match=r"s2/run\.json has candidates = 60"):
        moie.resume(out, iterations=4, quiet=True, workers=1)
    assert tiny.contents(out) == before


def test_a_new_swarm_appears_as_a_whole(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moie.runs.disk.directory import RunDirectory

    config = RunDirectory.open(runs / "s0").read_config()
    new, out = folder.Swarm((0, 3), 2, "cpu"), tmp_path / "swarm"

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", stopped)
        with pytest.raises(KeyboardInterrupt):
            folder.create(out, new, config)
    assert not list(tmp_path.iterdir())
    folder.create(out, new, config)
    assert folder.read(out) == new
    assert sorted(p.name for p in out.iterdir()) == ["s0", "s3", "swarm.json"]
    assert RunDirectory.open(out / "s3").read_config().seed == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read"),
        ("[]", "it was not written by moie"),
        ('{"format": "moie-swarm"}', "cannot be read"),
        ('{"format": "moie-swarm", "seeds": [-1], "at_once": 1, "machine": "cpu"}', "whole"),
        ('{"format": "moie-swarm", "seeds": [], "at_once": 1, "machine": "cpu"}', "no seeds"),
        ('{"format": "moie-swarm", "seeds": [1], "at_once": 0, "machine": "cpu"}', "no seeds"),
        ('{"format": "moie-swarm", "seeds": [1, 1], "at_once": 1, "machine": "cpu"}', "twice"),
    ],
)
def test_damage_to_the_file_of_a_swarm_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "swarm.json").write_text(content)
    with pytest.raises(moie.FileError, match=said):
        folder.read(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["swarm"], "the task is missing: moie swarm TASK [options]"),
        (["swarm", "hopper"], "task is 'hopper', expected one that can run on an accelerator"),
        (["swarm", "Hopper-v5", "--seeds", "x"], "seeds is 'x', expected a number of seeds"),
        (["swarm", "Hopper-v5", "--seed", "3"], "seed is 3, but a swarm has many: use seeds"),
        (
            ["swarm", "InvertedPendulum-v5", "--environments", "65"],
            "environments is 65, expected a divisor of batch_steps (3008) that leaves two steps "
            "each, such as 47, 64, 94, 188",
        ),
        (["swarm", "Hopper-v5", "--at-once", "0"], "at_once is 0, expected at least 1"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capfd.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_swarm_is_not_overwritten(runs: Path) -> None:
    with pytest.raises(moie.FileError, match="is a swarm already; continue it with: moie resume"):
        swarm(runs)


def test_train_takes_no_environments(tmp_path: Path) -> None:
    with pytest.raises(moie.InputError, match="environments is 8"):
        moie.train("pendulum", out=tmp_path / "run", environments=8, quiet=True)


def test_help_lists_the_tasks_and_its_own_options(capfd: pytest.CaptureFixture) -> None:
    assert main(["swarm", "--help"]) == 0
    text = capfd.readouterr().out
    for word in ("Walker2d-v5", "--seeds", "--environments", "--at-once", "--experts"):
        assert word in text
    assert "--seed " not in text

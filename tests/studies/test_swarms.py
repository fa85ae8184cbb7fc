"""Studies whose MuJoCo runs are made in swarms: with swarms that do as they are told, and one that
is real."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import moie
from moie.accelerated import folder as swarm_folder
from moie.accelerated.folder import Swarm
from moie.cli import main
from moie.comparison import curves
from moie.errors import Stopped
from moie.runs.config import RunConfig, with_seed
from moie.runs.disk.directory import RunDirectory
from moie.studies import conduct
from moie.studies.declaration import Grid, Study, plan
from moie.studies.engines import cells, with_engine
from tests import tiny
from tests.simulators import needs

pytestmark = needs("swarm")

HOPPER, ANT, PENDULUM = "Hopper-v5/moie-k3", "Ant-v5/moie-k3", "Pendulum-v1/moie-k3"
Play = Callable[[Path, tuple[int, ...], int], None]


def declare(*tasks: str, seeds: int = 2, **settings: Any) -> Study:
    settings = {"iterations": 4, **settings}
    return Study("mine", (Grid(list(tasks), "moie", 3, seeds, settings),))


def advance(run: Path, to: int, wanted: int) -> None:
    """A run that has done so many iterations of those that are wanted."""
    rows = [
        {
            "iteration": i,
            "steps": 10 * i + 10,
            "seconds_total": float(i),
            "return_sampled": float(i),
        }
        for i in range(to)
    ]
    rows += [{"iteration": to, "steps": 10 * to, "return_sampled": 1.0}] if to == wanted else []
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "checkpoints" / f"{to:06d}").mkdir(exist_ok=True)


def finish(path: Path, seeds: tuple[int, ...], iterations: int) -> None:
    for seed in seeds:
        advance(path / f"s{seed}", iterations, iterations)


def diverge(path: Path, seeds: tuple[int, ...], iterations: int) -> None:
    for seed in seeds:
        (path / f"s{seed}" / "fault.json").write_text('{"diverged": "kl is nan"}')


def diverge_once(path: Path, seeds: tuple[int, ...], iterations: int) -> None:
    diverge(path, seeds[:1], iterations)
    finish(path, seeds[1:], iterations)


def burn(path: Path, seeds: tuple[int, ...], iterations: int) -> None:
    raise RuntimeError("out of memory")


def stop(path: Path, seeds: tuple[int, ...], iterations: int) -> None:
    for seed in seeds:
        advance(path / f"s{seed}", 2, iterations)
    raise Stopped("stopped after iteration 2")


class Told:
    """Swarms that do as they are told, and otherwise succeed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.play: dict[str, Play] = {}
        self.calls: list[tuple[Any, ...]] = []
        """What was called, for which cell, with how many environments or iterations."""

    def start(
        self, path: Path, config: RunConfig, seeds: tuple[int, ...], at_once: None, machinery: Any
    ) -> None:
        swarm_folder.check_free(path)
        self.calls.append(("start", self._name(path), config.environments))
        for seed in seeds:
            RunDirectory.create(path / f"s{seed}", with_seed(config, seed))
        swarm_folder.write(path, Swarm(seeds, len(seeds), "made up"))
        self._play(path, seeds, config.iterations)

    def resume(self, path: Path, machinery: Any, iterations: int) -> None:
        self.calls.append(("resume", self._name(path), iterations))
        self._play(path, swarm_folder.read(path).seeds, iterations)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _play(self, path: Path, seeds: tuple[int, ...], iterations: int) -> None:
        self.play.get(self._name(path), finish)(path, seeds, iterations)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def told(out: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told(out)
    monkeypatch.setattr("moie.accelerated.lifecycle.start", told.start)
    monkeypatch.setattr("moie.accelerated.lifecycle.resume", told.resume)
    monkeypatch.setattr(conduct, "Supervision", lambda *given: pytest.fail("Ray is not needed"))
    return told


def study(mine: Study, out: Path, **options: Any) -> moie.StudyRuns:
    return moie.study(mine, out=out, engine="swarm", quiet=True, **options)


def states(runs: moie.StudyRuns) -> dict[str, str]:
    return {status.name: status.state for status in runs.statuses}


# --- what is planned -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch_steps", "environments"), [(3008, 94), (128, 64), (64, 32), (100, 50), (97, 1), (2, 1)]
)
def test_environments_share_a_batch(batch_steps: int, environments: int) -> None:
    grid = Grid(["Hopper-v5", "pendulum"], "ppo", settings={"batch_steps": batch_steps})
    planned = with_engine(plan(Study("mine", (grid,))), "swarm")
    assert [one.config.environments for one in planned] == [environments, 0]


def test_all_seeds_of_a_learner_are_a_cell() -> None:
    mine = declare("Hopper-v5", "pendulum", "Ant-v5", seeds=3, temperature=[1.0, 2.0])
    found = cells(with_engine(plan(mine), "swarm"))
    assert [(cell.name, cell.seeds) for cell in found] == [
        (f"{task}/moie-k3-temperature={t}", (0, 1, 2))
        for task in ("Hopper-v5", "Ant-v5")
        for t in (1.0, 2.0)
    ]
    assert cells(plan(mine)) == []


def test_the_user_may_say_how_many_environments(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", environments=32)
    study(mine, out)
    assert told.calls == [("start", HOPPER, 32)]
    with pytest.raises(moie.InputError, match="environments is 32, expected none: they are for"):
        moie.study(mine, out=out)
    with pytest.raises(moie.InputError, match="environments is 7, expected a divisor of batch_ste"):
        study(declare("Hopper-v5", environments=7), out)
    assert len(told.calls) == 1


def test_an_engine_that_is_none(out: Path) -> None:
    with pytest.raises(moie.InputError, match="engine is 'gpu', expected ray or swarm"):
        moie.study(declare("Hopper-v5"), out=out, engine="gpu")  # type: ignore[arg-type]


# --- what is done --------------------------------------------------------------------------------


def test_cells_are_trained_skipped_and_resumed(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", "Ant-v5")
    first = study(mine, out, tasks="Ant-v5", iterations=2)
    assert states(first) == {f"{ANT}/s0": "done", f"{ANT}/s1": "done"}
    done = study(mine, out)
    assert set(states(done).values()) == {"done"}
    study(mine, out)
    assert told.calls == [("start", ANT, 94), ("start", HOPPER, 94), ("resume", ANT, 4)]
    declared = json.loads((out / "study.json").read_text())
    assert declared["settings"]["environments"] == 94
    assert len(curves.read(out / "curves.parquet").rows) == 4 * 5
    assert not (out / "ray.log").exists()


def test_other_tasks_follow_on_ray(out: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    class Supervised:
        def __init__(self, folder: Path, planned: list[Any], *others: Any) -> None:
            given.extend(one.name for one in planned)

        def go(self) -> None:
            assert told.calls  # the swarms come first

    monkeypatch.setattr(conduct, "Supervision", Supervised)
    runs = study(declare("pendulum", "Hopper-v5"), out)
    assert given == [f"{PENDULUM}/s0", f"{PENDULUM}/s1"]
    assert [status.name for status in runs.unfinished] == given


def test_a_study_of_swarms_needs_no_ray(
    out: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conduct, "need", lambda *names: pytest.fail("not needed"))
    assert not study(declare("Hopper-v5"), out).unfinished


def test_a_swarm_that_was_killed_at_its_start_begins_again(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5")
    (first, _) = with_engine(plan(mine), "swarm")
    RunDirectory.create(out / first.name, first.config)
    assert not study(mine, out).unfinished
    assert told.calls == [("start", HOPPER, 94)]


# --- what goes wrong -----------------------------------------------------------------------------


def test_a_cell_that_fails_does_not_stop_the_others(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", "Ant-v5")
    told.play[HOPPER] = burn
    runs = study(mine, out)
    error = "RuntimeError: out of memory"
    assert [(one.name, one.error) for one in runs.failed] == [
        (f"{HOPPER}/s0", error),
        (f"{HOPPER}/s1", error),
    ]
    assert states(runs)[f"{ANT}/s1"] == "done"
    assert states(moie.study_status(mine, out=out, engine="swarm")) == states(runs)
    (file, _) = sorted((out / "failures").iterdir())
    assert "Traceback" in json.loads(file.read_text())["details"]
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [event["end"] for event in events] == ["failed"] * 2 + ["done"] * 2

    del told.play[HOPPER]
    assert not study(mine, out).unfinished
    assert told.calls[2:] == [("resume", HOPPER, 4)]


def test_seeds_that_diverge_are_listed_and_not_repeated(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", "Ant-v5")
    told.play |= {HOPPER: diverge, ANT: diverge_once}
    for _ in range(2):
        runs = study(mine, out)
        failed = [f"{HOPPER}/s0", f"{ANT}/s0", f"{HOPPER}/s1"]
        assert [(one.name, one.error) for one in runs.failed] == [
            (name, "kl is nan") for name in failed
        ]
        assert states(runs)[f"{ANT}/s1"] == "done"
    assert len(told.calls) == 2


def test_ctrl_c_ends_the_study_and_says_how_to_go_on(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", "Ant-v5")
    told.play[HOPPER] = stop
    with pytest.raises(Stopped, match="stopped; the same command goes on"):
        study(mine, out)
    assert told.calls == [("start", HOPPER, 94)]
    assert len(curves.read(out / "curves.parquet").rows) == 2 * 2
    found = moie.study_status(mine, out=out, engine="swarm")
    assert [(one.state, one.iteration) for one in found.statuses] == [
        ("stopped", 2),
        ("waiting", 0),
    ] * 2
    assert not (out / "failures").exists()


def test_a_cell_that_another_process_works_on_is_left_to_it(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", "Ant-v5")
    told.play[HOPPER] = stop
    with pytest.raises(Stopped):
        study(mine, out)
    with RunDirectory(out / HOPPER / "s1").lock():
        runs = study(mine, out)
    assert told.calls[1:] == [("start", ANT, 94)]
    assert not runs.failed


def test_runs_that_were_made_otherwise_are_named(out: Path, told: Told) -> None:
    mine = declare("Hopper-v5", seeds=1)
    (one,) = plan(mine)
    RunDirectory.create(out / one.name, one.config)
    said = "was made with environments = 0, the study wants 94: it was made without --engine swarm"
    with pytest.raises(moie.InputError, match=said):
        study(mine, out)
    RunDirectory(out / one.name).remove()
    study(mine, out)
    said = "was made with environments = 94, the study wants 0: it was made with --engine swarm"
    with pytest.raises(moie.InputError, match=said):
        moie.study(mine, out=out)
    assert said in moie.study_status(mine, out=out).misfits[0]
    assert moie.study_status(mine, out=out, engine="swarm").misfits == []
    assert len(told.calls) == 1


def test_a_swarm_takes_no_other_seeds(out: Path, told: Told) -> None:
    study(declare("Hopper-v5"), out)
    assert not study(declare("Hopper-v5", seeds=1), out).unfinished
    said = f"{HOPPER}: is a swarm of seeds 0, 1, which takes no others: make 2, 3 with another"
    with pytest.raises(moie.InputError, match=said):
        study(declare("Hopper-v5", seeds=4), out)
    (out / HOPPER / "swarm.json").unlink()
    with pytest.raises(moie.InputError, match=f"{HOPPER}: has runs, but no swarm.json"):
        study(declare("Hopper-v5"), out)


def test_what_swarms_need_is_named_before_anything_starts(
    out: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mujoco.mjx" else present(name)
    )
    with pytest.raises(moie.InputError, match=r"Hopper-v5 needs mujoco and .*moie\[swarm\]"):
        study(declare("Hopper-v5", "pendulum"), out)
    assert not out.exists()
    assert moie.study_status(declare("Hopper-v5"), out=out, engine="swarm").statuses


# --- the real one --------------------------------------------------------------------------------


def test_a_real_swarm(tmp_path: Path, out: Path, capsys: pytest.CaptureFixture) -> None:
    given = tiny.SETTINGS | {"iterations": 2, "batch_steps": 64, "evaluation_every": 1}
    del given["experts"], given["temperature"]
    lines = ["tasks = 'InvertedPendulum-v5'", "algorithms = 'ppo'", "seeds = 2"]
    lines += ["[settings]", *(f"{name} = {json.dumps(value)}" for name, value in given.items())]
    (tmp_path / "mine.toml").write_text("\n".join(lines))
    words = ["study", str(tmp_path / "mine.toml"), "--out", str(out), "--engine", "swarm"]

    done = tiny.moie_process(*words, "--cpus", "2", timeout=500)
    assert done.returncode == 0, done.stderr
    assert "done: InvertedPendulum-v5/ppo, 2 of 2 seeds" in done.stderr
    assert not (out / "ray.log").exists()
    for seed in range(2):
        run = out / f"InvertedPendulum-v5/ppo/s{seed}"
        assert RunDirectory(run).read_config().environments == 32
        assert [row["iteration"] for row in tiny.metrics(run)] == [0, 1, 2]

    assert main.main([*words, "--status"]) == 0
    assert "mine: 2 of 2 done" in capsys.readouterr().out
    assert main.main(words) == 0
    assert "all 2 runs are done" in capsys.readouterr().err

"""Who works on what next, with a cluster that does as it is told."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moie.errors import Stopped
from moie.runs.disk.directory import RunDirectory
from moie.studies.cluster import scheduler
from moie.studies.cluster.job import Outcome
from moie.studies.cluster.scheduler import RETRIES, Execution
from moie.studies.declaration import Grid, Planned, Study, plan
from moie.studies.status import damage, look, seconds_left

ITERATIONS = 10
Play = Callable[[Path, int], Outcome]


def advance(run: Path, to: int) -> None:
    """A run that has done so many iterations; `ITERATIONS` is the end."""
    run.mkdir(parents=True, exist_ok=True)
    rows = [
        {"iteration": i, "steps": i, "seconds_total": 2.0 * i, "return_sampled": float(i)}
        for i in range(to)
    ]
    rows += [{"iteration": ITERATIONS, "steps": to}] if to == ITERATIONS else []
    (run / "run.json").write_text("{}")
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def finish(run: Path, attempt: int) -> Outcome:
    advance(run, ITERATIONS)
    return Outcome("done")


class Told:
    """A cluster with room for two, that ends one run at a time."""

    slots, room = 2, 4

    def __init__(self, play: dict[str, Play]):
        self._play, self._numbers = play, itertools.count()
        self.submitted: list[str] = []
        self.running: dict[int, tuple[str, Path]] = {}
        self.stopped: list[int] = []

    def submit(self, folder: Path, planned: Planned) -> int:
        assert planned.name not in [name for name, _ in self.running.values()]
        number = next(self._numbers)
        self.submitted.append(planned.name)
        self.running[number] = (planned.name, folder / planned.name)
        assert len(self.running) <= self.room
        return number

    def ended(self, handles: Any, timeout: float) -> list[tuple[int, Outcome]]:
        handle = min(handles)
        name, path = self.running.pop(handle)
        play = self._play.get(name, finish)
        return [(handle, play(path, self.submitted.count(name)))]

    def stop(self, handles: Any) -> None:
        self.stopped = list(handles)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Planned]:
    monkeypatch.setattr(scheduler, "PAUSE", 0.0)
    monkeypatch.setattr(scheduler, "POLL", 0.0)
    settings = {"iterations": ITERATIONS}
    return plan(Study("s", (Grid("pendulum", ("ppo", "trpo"), seeds=3, settings=settings),)))


def run(folder: Path, planned: list[Planned], cluster: Told, beat: Any = None) -> list[str]:
    """What the user is told."""
    notes: list[str] = []
    going: Any = cluster
    Execution(folder, planned, going, notes.append, beat or (lambda slots: None)).go()
    return notes


def states(folder: Path, planned: list[Planned]) -> list[str]:
    return [look(folder, one).state for one in planned]


def test_all_runs_are_made_once_and_then_never_again(
    planned: list[Planned], tmp_path: Path
) -> None:
    cluster = Told({})
    assert len(run(tmp_path, planned, cluster)) == 6
    assert cluster.submitted == [one.name for one in planned]
    assert set(states(tmp_path, planned)) == {"done"}
    again = Told({})
    assert run(tmp_path, planned, again) == []
    assert again.submitted == []


def test_what_fails_is_tried_four_times_and_the_others_go_on(
    planned: list[Planned], tmp_path: Path
) -> None:
    bad = planned[0].name
    cluster = Told({bad: lambda path, attempt: Outcome("failed", "it is broken", "Traceback")})
    notes = run(tmp_path, planned, cluster)
    assert cluster.submitted.count(bad) == 1 + RETRIES
    assert states(tmp_path, planned) == ["failed"] + 5 * ["done"]
    assert look(tmp_path, planned[0]).error == "it is broken"
    assert notes[-1] == f"failed: {bad} after iteration 0: it is broken; given up"
    (file,) = (tmp_path / "failures").iterdir()
    assert json.loads(file.read_text())["details"] == "Traceback"
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [event["end"] for event in events].count("failed") == 4

    assert run(tmp_path, planned, Told({})) == []  # another driver of the same study leaves it
    file.unlink()  # as the command does when the study is started again
    assert len(run(tmp_path, planned, Told({}))) == 1
    assert set(states(tmp_path, planned)) == {"done"}


def test_a_run_that_gets_further_each_time_is_never_given_up(
    planned: list[Planned], tmp_path: Path
) -> None:
    def die(path: Path, attempt: int) -> Outcome:
        advance(path, min(attempt, ITERATIONS))
        return Outcome("done") if attempt == ITERATIONS else Outcome("died", "the machine is gone")

    cluster = Told({planned[0].name: die})
    run(tmp_path, planned, cluster)
    assert cluster.submitted.count(planned[0].name) == ITERATIONS
    assert set(states(tmp_path, planned)) == {"done"}


def test_going_back_and_forth_is_no_progress(planned: list[Planned], tmp_path: Path) -> None:
    def alternate(path: Path, attempt: int) -> Outcome:
        advance(path, 5 if attempt % 2 else 3)  # rows that waited for an evaluation were lost
        return Outcome("died", "the machine is gone")

    cluster = Told({planned[0].name: alternate})
    run(tmp_path, planned, cluster)
    assert cluster.submitted.count(planned[0].name) == 1 + RETRIES
    assert states(tmp_path, planned) == ["failed"] + 5 * ["done"]


def test_a_run_that_ended_where_we_can_not_see_it_has_failed(
    planned: list[Planned], tmp_path: Path
) -> None:
    cluster = Told({planned[0].name: lambda path, attempt: Outcome("done")})
    notes = run(tmp_path, planned, cluster)
    assert "it ended elsewhere: does its machine see" in notes[-1]
    assert states(tmp_path, planned) == ["failed"] + 5 * ["done"]


def test_a_cluster_without_machines_is_shown_what_is_wanted(
    planned: list[Planned], tmp_path: Path
) -> None:
    cluster = Told({})
    cluster.slots = 0
    cluster.room = 2
    run(tmp_path, planned, cluster)
    assert set(states(tmp_path, planned)) == {"done"}


def test_a_run_that_has_gone_further_is_done(planned: list[Planned], tmp_path: Path) -> None:
    """Its rows may still wait for an evaluation; the checkpoint knows."""
    advance(tmp_path / planned[0].name, 4)
    (tmp_path / planned[0].name / "checkpoints" / f"{ITERATIONS + 1:06d}").mkdir(parents=True)
    found = look(tmp_path, planned[0])
    assert (found.state, found.iteration) == ("done", ITERATIONS)


def test_a_run_that_another_process_works_on_is_left_to_it(
    planned: list[Planned], tmp_path: Path
) -> None:
    theirs = RunDirectory(tmp_path / planned[0].name)
    advance(theirs.path, 3)
    lock = theirs.lock()
    lock.__enter__()
    beats = itertools.count()

    def beat(slots: int) -> None:
        if next(beats) == 20:
            assert look(tmp_path, planned[0]).state == "running"
            advance(theirs.path, ITERATIONS)
            lock.__exit__(None, None, None)

    cluster = Told({})
    run(tmp_path, planned, cluster, beat)
    assert planned[0].name not in cluster.submitted
    assert set(states(tmp_path, planned)) == {"done"}


def test_a_run_that_was_busy_after_all_is_tried_later(
    planned: list[Planned], tmp_path: Path
) -> None:
    def busy_once(path: Path, attempt: int) -> Outcome:
        return Outcome("busy") if attempt < 6 else finish(path, attempt)

    run(tmp_path, planned, Told({planned[1].name: busy_once}))
    assert set(states(tmp_path, planned)) == {"done"}


def test_stopping_asks_the_runs_and_waits_for_them(planned: list[Planned], tmp_path: Path) -> None:
    def beat(slots: int, calls: Any = itertools.count()) -> None:  # noqa: B008
        if next(calls) == 1:
            raise Stopped("stopped")

    cluster = Told({})
    with pytest.raises(Stopped):
        run(tmp_path, planned, cluster, beat)
    assert len(cluster.stopped) == 3  # of four that were submitted one had ended
    assert not cluster.running
    assert states(tmp_path, planned).count("done") == 4


def test_time_left_is_that_of_runs_like_it(planned: list[Planned], tmp_path: Path) -> None:
    statuses = [look(tmp_path, one) for one in planned]
    assert seconds_left(statuses, 2) is None
    assert {status.state for status in statuses} == {"waiting"}
    advance(tmp_path / planned[0].name, 4)
    first, *others = (look(tmp_path, one) for one in planned)
    assert (first.state, first.iteration, first.value, first.pace) == ("stopped", 4, 3.0, 2.0)
    assert first.seconds_left == 12.0
    assert damage(tmp_path, planned[0]) == []
    file = tmp_path / planned[0].name / "metrics.jsonl"
    file.write_text("[]\n" + file.read_text())
    assert damage(tmp_path, planned[0]) == [
        f"{planned[0].name}: metrics.jsonl: line 1 cannot be read: it is [], expected an object"
    ]
    assert look(tmp_path, planned[0]) == first
    assert seconds_left([first, *others], 2) == (12 + 5 * 20) / 2
    assert seconds_left([first, *others], 100) == 20

"""Studies as a user starts them: on a Ray of their own, on a cluster, killed, stopped, wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import moie
from moie import api, cli
from moie.studies import curves
from tests import probes, tiny
from tests.studies.processes import (
    RAY,
    assert_same,
    descendants,
    kill,
    rows,
    runs_of,
    start,
    wait_for,
)

ITERATIONS = 40


def declare(folder: Path, task: str = "tests.probes:Long-v0", **changes: Any) -> Path:
    """Four runs of two learners."""
    settings = tiny.SETTINGS | {"iterations": ITERATIONS, "evaluation_every": 8} | changes
    experts = settings.pop("experts")
    lines = [f"tasks = ['{task}']", "algorithms = ['moie', 'ppo']", f"experts = {experts}"]
    lines += ["seeds = 2", "[settings]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    file = folder / "mine.toml"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs, one after the other, without a study."""
    folder = tmp_path_factory.mktemp("hand")
    for one in runs_of(declare(folder)):
        api.train_config(one.config, folder / one.name, workers=2, quiet=True)
    return folder


# --- survives anything ---------------------------------------------------------------------------


def test_driver_worker_and_ray_killed_ends_like_runs_by_hand(by_hand: Path, tmp_path: Path) -> None:
    file, out = declare(tmp_path), tmp_path / "study"

    process = start(file, out)
    wait_for(lambda: rows(out) >= 5, process)
    process.kill()
    process.communicate()

    process, before = start(file, out), rows(out)
    wait_for(lambda: rows(out) >= before + 5, process)
    wait_for(lambda: kill(process, "ray::work"), process)
    before = rows(out)
    wait_for(lambda: rows(out) >= before + 5, process)
    assert kill(process, "gcs_server", "raylet") >= 2
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert "Ray ended unexpectedly" in said

    assert_same(out, by_hand, file)
    found = curves.read(out / "curves.parquet")
    assert len(found.rows) == 4 * (ITERATIONS + 1)
    again = start(file, out)
    assert "all 4 runs are done" in again.communicate(timeout=60)[1]


def test_ctrl_c_stops_the_runs_and_says_how_to_go_on(by_hand: Path, tmp_path: Path) -> None:
    file, out = declare(tmp_path), tmp_path / "study"
    process = start(file, out)
    wait_for(lambda: rows(out) >= 5, process)

    other = tiny.moie_process("study", str(file), "--out", str(out), "--status")
    assert "mine: 0 of 4 done" in other.stdout
    assert "running" in other.stdout
    assert "/40  return" in other.stdout

    below = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped; the same command goes on" in said
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert {event["end"] for event in events} <= {"stopped", "done"}
    time.sleep(2)
    assert not [line for pid, line in below.items() if "worker" in line and alive(pid)]
    assert (out / "curves.parquet").exists()

    for one in runs_of(file):
        if (out / one.name).exists():  # whoever goes on with it
            tiny.resume(out / one.name)
            assert tiny.policy_bytes(out / one.name) == tiny.policy_bytes(by_hand / one.name)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# --- a cluster -----------------------------------------------------------------------------------

TWO_NODES = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
print("address", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with a CPU each."""
    process = subprocess.Popen(
        [sys.executable, "-c", TWO_NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=tiny.environment(**RAY),
        text=True,
    )
    assert process.stdout is not None
    line = "-"
    while line and not line.startswith("address"):
        line = process.stdout.readline()
    yield line.split()[1]
    process.communicate("", timeout=60)


def test_two_nodes_take_runs_of_one_study(by_hand: Path, two_nodes: str, tmp_path: Path) -> None:
    file, out = declare(tmp_path), tmp_path / "study"
    words = ["study", str(file), "--out", str(out), "--address", two_nodes]
    done = subprocess.run(
        tiny.command(*words), env=tiny.environment(**RAY), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [event["end"] for event in events] == ["done"] * 4
    assert len({event["node"] for event in events}) == 2
    assert_same(out, by_hand, file)


# --- what goes wrong -----------------------------------------------------------------------------


def test_a_run_that_fails_is_listed_and_the_study_goes_on(tmp_path: Path) -> None:
    file, out = declare(tmp_path, "tests.probes:Trouble-v0", iterations=2), tmp_path / "study"
    file.write_text(file.read_text().replace("Trouble-v0'", "Trouble-v0', 'tests.probes:Walk-v0'"))
    words = ["study", str(file), "--out", str(out), "--seeds", "0", "--algorithms", "moie"]
    variables = RAY | {probes.TROUBLE: probes.trouble("raise", "any", 5)}
    done = subprocess.run(
        tiny.command(*words), env=tiny.environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "1 of 2 runs are not done" in done.stderr
    assert "the motor is on fire" in done.stderr
    assert "Traceback" not in done.stderr
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [event["end"] for event in events].count("failed") == 4
    status = tiny.moie_process(*words, "--status")
    assert "1 of 2 done, 1 failed" in status.stdout
    assert "the motor is on fire" in status.stdout
    assert len(list(out.glob("*/*/*"))) == 2  # nothing but the part that was asked for


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["smok"], "unknown study 'smok'; did you mean smoke?"),
        (["smoke", "--tasks", "ant"], "tasks is 'AntBulletEnv-v0', expected some of those"),
        (["smoke", "--seeds", "7"], "seeds is 7, expected some of those in the study: 0, 1"),
        (["smoke", "--cpus", "0"], "cpus is 0, expected at least 1"),
        (["smoke", "--cpus", "2", "--address", "auto"], "leave it out with address"),
        (["smoke", "--iterations", "0"], "iterations is 0, expected at least 1"),
        (["smoke", "--cpus-per-run", "0"], "cpus_per_run is 0"),
        (["smoke", "--worker-timeout", "0"], "worker_timeout is 0.0, expected a positive number"),
    ],
)
def test_wrong_words_start_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert cli.main(["study", *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    words = ["study", str(declare(tmp_path)), "--out", str(tmp_path / "out")]
    done = tiny.moie_process(*words, "--address", "127.0.0.1:1")
    assert done.returncode == 2
    assert "no Ray cluster at 127.0.0.1:1" in done.stderr


def test_runs_with_other_settings_are_all_named(by_hand: Path, tmp_path: Path) -> None:
    before = tiny.contents(by_hand)
    file = declare(tmp_path, bound=0.03)
    with pytest.raises(moie.InputError) as caught:
        moie.study(file, out=by_hand, quiet=True)
    assert str(caught.value).count("was made with bound = 0.015, the study wants 0.03") == 4
    assert tiny.contents(by_hand) == before


def test_a_part_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(moie.InputError, match="part of a study is 'sedes', expected one of tasks"):
        moie.study_status("smoke", out=tmp_path, sedes=[0])
    one = moie.study_status("smoke", out=tmp_path, seeds=0, tasks="pendulum", algorithms="ppo")
    assert [status.name for status in one.statuses] == ["Pendulum-v1/ppo/s0"]


def test_a_damaged_run_stops_a_study_but_not_its_status(by_hand: Path, tmp_path: Path) -> None:
    out, file = tiny.copy(by_hand, tmp_path / "copy"), declare(tmp_path)
    (out / runs_of(file)[0].name / "run.json").write_text("{")
    with pytest.raises(moie.InputError, match=r"run\.json cannot be read"):
        moie.study(file, out=out, quiet=True)
    assert len(moie.study_status(file, out=out).statuses) == 4


def test_a_study_whose_runs_are_done_starts_no_ray(
    by_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tiny.copy(by_hand, tmp_path / "copy")
    monkeypatch.setattr("moie.studies.studying.check_ray", lambda: pytest.fail("not needed"))
    done = moie.study(declare(tmp_path), out=out, quiet=True)
    assert len(curves.read(out / "curves.parquet").rows) == 4 * (ITERATIONS + 1)
    assert [status.state for status in done.statuses] == ["done"] * 4
    assert not done.failed
    part = moie.study_status(declare(tmp_path), out=out, algorithms=["ppo"], seeds=[1])
    assert [status.name for status in part.statuses] == ["tests.probes_Long-v0/ppo/s1"]
    fewer = moie.study_status(declare(tmp_path), out=out, iterations=10)
    assert {status.state for status in fewer.statuses} == {"done"}
    more = moie.study_status(declare(tmp_path), out=out, iterations=50)
    assert {(status.state, status.iteration) for status in more.statuses} == {("stopped", 40)}

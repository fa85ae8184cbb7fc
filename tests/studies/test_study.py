"""Studies as a user starts them: on a Ray of their own, on a cluster, killed, stopped, wrong."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import moie
from moie import api
from moie.cli import main
from moie.comparison import curves
from moie.environments import specs
from moie.studies import status as status_of
from moie.studies.cluster import ray_cluster, supervisor
from moie.studies.cluster.job import work
from tests import probes, tiny
from tests.simulators import needs
from tests.studies.processes import (
    RAY,
    assert_same,
    descendants,
    kill,
    listening,
    rows,
    runs_of,
    start,
    variables,
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
    check_privacy(below)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped; the same command goes on" in said
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert {event["end"] for event in events} <= {"stopped", "done"}
    deadline = time.monotonic() + 5
    while left := [line for pid, line in below.items() if "worker" in line and alive(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert (out / "curves.parquet").exists()

    for one in runs_of(file):
        if (out / one.name).exists():  # whoever goes on with it
            tiny.resume(out / one.name)
            assert tiny.policy_bytes(out / one.name) == tiny.policy_bytes(by_hand / one.name)


def check_privacy(processes: dict[int, str]) -> None:
    """Nobody but us can talk to Ray: it cannot be reached from other machines, and it asks for a
    token that no file has."""
    (server,) = [pid for pid, line in processes.items() if "gcs_server" in line]
    there = listening(processes)
    assert len(listening([server])) >= 1
    assert [str(a) for a in there if not (a.ipv4_mapped or a).is_loopback] == []
    known = variables(server)
    assert known["RAY_AUTH_MODE"] == "token"
    assert len(known["RAY_AUTH_TOKEN"]) == 64
    assert not [line for line in processes.values() if known["RAY_AUTH_TOKEN"] in line]


def test_the_file_of_a_token_is_made_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("RAY_AUTH_MODE", "")  # so that it is put back in the end
    monkeypatch.delenv("RAY_AUTH_MODE")
    ray_cluster._use_token()
    assert "RAY_AUTH_MODE" not in os.environ
    file = tmp_path / ".ray" / "auth_token"
    file.parent.mkdir()
    file.write_text("secret")
    file.chmod(0o644)
    ray_cluster._use_token()
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.environ["RAY_AUTH_MODE"] == "token"


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
    (tmp_path / "queue.py").write_text("raise SystemExit")  # of the user, and of no concern to us
    done = subprocess.run(
        [sys.executable, "-P", "-m", "moie", *words],
        env=tiny.environment(**variables),
        cwd=tmp_path,
        capture_output=True,
        text=True,
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


@needs("bullet")
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
        (["smoke", "--worker-timeout", "inf"], "worker_timeout is inf, expected a positive number"),
        (["smoke", "--cpus", "1", "--cpus-per-run", "2"], "cpus_per_run is 2, expected at most"),
        (["smoke", "--address", "127.0.0.1:1"], "no Ray cluster at 127.0.0.1:1"),
        (["smoke", "--seeds"], "seeds is (), expected at least one"),
        (
            ["smoke", "--algorithms", "ppo", "--tasks", "ant"],
            "tasks is 'AntBulletEnv-v0', expected some of those in the study",
        ),
    ],
)
def test_wrong_words_start_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main.main(["study", *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_leaves_what_failed_before(tmp_path: Path) -> None:
    file, out = declare(tmp_path), tmp_path / "study"
    status_of.write_failure(out, runs_of(file)[0].name, {"error": "the motor is on fire"})
    before = tiny.contents(out)
    with pytest.raises(moie.InputError, match="no Ray cluster at"):
        moie.study(file, out=out, address="127.0.0.1:1", quiet=True)
    assert tiny.contents(out) == before
    assert [status.error for status in moie.study_status(file, out=out).failed] == [
        "the motor is on fire"
    ]


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of somebody who lets us in and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_cluster_that_does_not_answer(
    deaf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "JOIN", 1.0)
    began = time.monotonic()
    with pytest.raises(moie.InputError, match=f"no Ray cluster at {deaf}: no answer within 1 s"):
        moie.study(declare(tmp_path), out=tmp_path / "out", address=deaf, quiet=True)
    assert time.monotonic() - began < 60  # Ray itself would try for minutes


def test_ctrl_c_does_not_wait_for_a_cluster_that_does_not_answer(deaf: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["study", str(declare(tmp_path)), "--out", str(out), "--address", deaf]
    process = subprocess.Popen(
        tiny.command(*words), env=tiny.environment(**RAY), stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: descendants(process.pid), process)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopping the runs" not in said


@needs("bullet")
def test_what_studies_need_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for missing, words in (
        ("ray", ["study", "smoke"]),
        ("pandas", ["study", "smoke"]),
        ("scipy", ["compare", "."]),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            assert main.main([*words, "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert f"need {missing}, not installed: pip install 'moie[study]'" in said
        assert list(tmp_path.iterdir()) == []


def test_only_the_chosen_part_of_a_study_must_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    hidden = {"pybullet", "pybullet_envs_gymnasium", "Box2D"}
    present = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in hidden else present(name)
    )
    monkeypatch.setattr("moie.studies.conduct.run_study", lambda *given: [])
    out = tmp_path / "out"
    with pytest.raises(moie.InputError, match="study paper-small has 2 mistakes") as caught:
        moie.study("paper-small", out=out)
    assert "BipedalWalker-v3 needs Box2D, not installed: pip install 'moie[box2d]'" in str(caught)
    with pytest.raises(moie.InputError, match="InvertedPendulumBulletEnv-v0 needs pybullet"):
        moie.study("paper-small", out=out, tasks=["pendulum", "inverted-pendulum"])
    assert not out.exists()
    assert main.main(["study", "paper-small", "--tasks", "pendulum", "--out", str(out)]) == 0
    assert len(json.loads((out / "study.json").read_text())["runs"]) == 3 * 6 * 25
    for task in ("pendulum", "inverted-pendulum"):
        assert len(moie.study_status("paper-small", out=out, tasks=task).statuses) == 6 * 25
    assert "nothing was started" not in capsys.readouterr().err


@needs("bullet")
def test_a_status_needs_nothing_else(tmp_path: Path) -> None:
    hide = "import sys; sys.modules |= {n: None for n in ('ray', 'pandas', 'pyarrow', 'scipy')}; "
    run = "from moie.cli.main import main; main(['study', 'smoke', '--status'])"
    done = subprocess.run(
        [sys.executable, "-c", hide + run],
        env=tiny.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "smoke: 0 of 36 done, 36 waiting" in done.stdout, done.stderr
    assert "there is nothing at runs/smoke yet" in done.stdout


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    out, file = tmp_path / "study", declare(tmp_path)
    out.mkdir()
    for name, content, said in (
        ("study.json", '{"best_trial": 3}', "was not written by moie study; choose another --out"),
        ("study.json", "{", "was not written by moie study; choose another --out"),
        (
            "study.json",
            '{"format": "moie-study", "name": "hers"}',
            "is the folder of the study 'hers', not of 'mine'; choose another --out",
        ),
        ("run.json", "{}", "is a run, not the folder of a study; choose another --out"),
    ):
        (out / name).write_text(content)
        before = tiny.contents(out)
        with pytest.raises(moie.InputError, match=said):
            moie.study(file, out=out, quiet=True)
        assert tiny.contents(out) == before


def test_a_task_that_only_the_user_has_registered(tmp_path: Path) -> None:
    gym.register("Mine-v0", lambda: probes.Walk(), max_episode_steps=60)
    (planned, *_) = runs_of(declare(tmp_path, "Mine-v0", iterations=2))
    spec = specs.pack("Mine-v0")
    del gym.registry["Mine-v0"]
    try:
        outcome = work(tmp_path / "run", planned.config, spec, 1, 300.0)
        assert (outcome.end, outcome.error) == ("done", "")
    finally:
        gym.registry.pop("Mine-v0", None)


def test_runs_with_other_settings_are_all_named(by_hand: Path, tmp_path: Path) -> None:
    before = tiny.contents(by_hand)
    file = declare(tmp_path, bound=0.03)
    with pytest.raises(moie.InputError) as caught:
        moie.study(file, out=by_hand, quiet=True)
    # PPO does not look at it
    said = "was made with bound = 0.015, the study wants 0.03"
    assert str(caught.value).count(said) == 2
    assert tiny.contents(by_hand) == before
    status = tiny.moie_process("study", str(file), "--out", str(by_hand), "--status")
    assert status.stdout.count(said) == 2


@needs("bullet")
def test_a_part_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(moie.InputError, match="seeds is 7, expected some of those in the study"):
        moie.study_status("smoke", out=tmp_path, seeds=[7])
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
    monkeypatch.setattr("moie.studies.conduct.need", lambda *names: pytest.fail("not needed"))
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

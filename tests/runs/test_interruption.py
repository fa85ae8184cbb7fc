"""Real processes, really killed: what is left goes on to the same end, bit for bit."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import moie
from moie.cli import main
from tests import tiny
from tests.rollout.test_pool import alive

TASK = "tests.probes:Long-v0"  # a step takes a millisecond: most signals meet an episode
ITERATIONS = 30


@pytest.fixture(scope="module", params=["moie", "crisp"])
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    return tiny.train(TASK, out, iterations=ITERATIONS, algorithm=request.param).path


def words_for(undisturbed: Path, run: Path) -> list[str]:
    """What a user types for the same run elsewhere."""
    algorithm = moie.load(undisturbed).trained["algorithm"]
    return tiny.arguments(TASK, run, iterations=ITERATIONS, algorithm=algorithm)


def start(*words: str) -> subprocess.Popen[str]:
    """A process group of its own, as a terminal makes one for each command."""
    return subprocess.Popen(
        tiny.command(*words),
        env=tiny.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def done(run: Path) -> int:
    """Iterations in the newest checkpoint."""
    return max((int(path.name) for path in run.glob("checkpoints/[0-9]*")), default=0)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def assert_same(run: Path, expected: Path) -> None:
    assert tiny.policy_bytes(run) == tiny.policy_bytes(expected)
    assert tiny.metrics(run) == tiny.metrics(expected)
    assert [row["iteration"] for row in tiny.metrics(run)] == list(range(ITERATIONS + 1))
    assert tiny.leftovers(run) == []


def test_a_run_killed_again_and_again_ends_the_same(undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    draw = random.Random(time.time_ns())  # another moment each time: this must always hold
    words = words_for(undisturbed, run)
    workers: list[int] = []
    for least in (0, 2, 10, 20):
        process = start(*words)
        wait_for(lambda least=least: (run / "run.json").exists() and done(run) >= least, process)
        time.sleep(draw.uniform(0, 0.3))
        workers += children(process.pid)
        process.kill()
        process.communicate()
        words = ["resume", str(run), "--trust-task", "--workers", "2"]
    last_kill = time.monotonic()
    finished = tiny.moie_process(*words)
    assert finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr
    assert_same(run, undisturbed)

    time.sleep(max(0.0, last_kill + 5 - time.monotonic()))
    assert len(workers) >= 4
    assert [pid for pid in workers if alive(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_stop_says_how_to_go_on(
    number: signal.Signals, undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    run = tmp_path / "run"
    process = start(*words_for(undisturbed, run))
    wait_for(lambda: done(run) >= 2, process)
    workers = children(process.pid)
    assert len(workers) == 2

    # Meanwhile nobody else works on it.
    assert main.main(["resume", str(run)]) == 2
    assert capfd.readouterr().err == f"moie: another process is working on {run}\n"

    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    line = said.splitlines()[-1]
    assert line.startswith("moie: stopped after iteration ")
    assert line.endswith(f"of {ITERATIONS}; go on with: moie resume {run} --trust-task")
    assert "Traceback" not in said
    assert [pid for pid in workers if alive(pid)] == []
    assert 2 <= done(run) < ITERATIONS

    tiny.resume(run)
    assert_same(run, undisturbed)

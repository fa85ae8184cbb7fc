"""Ctrl-C in the first second and SIGKILL at any moment. A few of each; the long parts, 200 and more
than 100, are marked slow."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from moie.learn import registry
from tests import tiny
from tests.runs.test_interruption import ITERATIONS, TASK, assert_same, done, wait_for

MARK = "MOIE_TEST_MARK"
SMALL = {"policy_hidden": (8,), "ppo_epochs": 2, "crisp_epochs": 2, "iterations": ITERATIONS}
KILLS = 12


def start(mark: str, *words: str) -> subprocess.Popen[str]:
    """A process group of its own, which the mark tells from all others. Where the tests themselves
    run in the background Ctrl-C is ignored, and would be there, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            tiny.command(*words),
            env=tiny.environment(**{MARK: mark}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def alive(mark: str) -> list[str]:
    """Processes with the mark, ours or started by ours."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:  # gone meanwhile
            continue
    return found


def all_gone(mark: str) -> bool:
    deadline = time.monotonic() + 10
    while found := alive(mark):
        if time.monotonic() > deadline:
            pytest.fail(f"still there: {found}")
        time.sleep(0.05)
    return True


def interrupt(folder: Path, delay: float) -> str:
    """Press Ctrl-C so long after the start of a training; how it ended."""
    out = folder / "run"
    process = start(str(folder), *tiny.arguments("pendulum", out, iterations=1000))
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    if process.returncode != 130 and "/moie/" not in said:
        return "before moie"  # the interpreter was not up yet: nothing that moie can see to
    assert process.returncode == 130, f"after {delay:.3f} s: {process.returncode}\n{said}"
    assert "Traceback" not in said, f"after {delay:.3f} s: {said}"
    assert all_gone(str(folder))
    if done(out):  # it was fast: there is something to go on with
        assert f"go on with: moie resume {out}" in said
        shutil.rmtree(out)
        return "after an iteration"
    assert os.listdir(folder) == [], f"after {delay:.3f} s"
    return "at once" if "interrupted" in said else "at a good moment"


@pytest.mark.parametrize("delay", [0.1, 0.4, 1.0, 1.6])
def test_ctrl_c_soon_after_the_start_leaves_nothing(delay: float, tmp_path: Path) -> None:
    assert interrupt(tmp_path, delay)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "last", "count"), [(0.0, 1.0, 200), (1.0, 5.0, 40)])
def test_ctrl_c_many_times(first: float, last: float, count: int, tmp_path: Path) -> None:
    draw, ends = random.Random(0), Counter[str]()
    while sum(ends.values()) - ends["before moie"] < count:
        ends[interrupt(tmp_path, draw.uniform(first, last))] += 1
    print(f"\nafter {first} to {last} s: {dict(ends)}")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", registry.names())
def test_a_run_killed_at_any_moment_ends_the_same(algorithm: str, tmp_path: Path) -> None:
    """Also while it starts, and while it estimates the scale of the features."""
    options = SMALL | {"algorithm": algorithm}
    expected = tiny.train(TASK, tmp_path / "whole", **options).path
    run, moments = tmp_path / "run", Counter[str]()
    draw = random.Random(time.time_ns())  # other moments each time: this must always hold
    words = tiny.arguments(TASK, run, **options)
    for number in range(KILLS):
        process = start(str(tmp_path), *words)
        if number % 3 == 0:
            time.sleep(draw.uniform(0.0, 3.0))
        else:
            least = done(run) + number // 4  # none yet: it estimates the scale
            wait_for(lambda least=least: run.exists() and done(run) >= least, process)
            time.sleep(draw.uniform(0.0, 0.3))
        process.kill()
        _, said = process.communicate()
        assert "Traceback" not in said
        moments["learning" if done(run) else "scaling" if run.exists() else "starting"] += 1
        if run.exists():
            words = ["resume", str(run), "--trust-task", "--workers", "2"]
    finished = tiny.moie_process(*words)
    assert finished.returncode == 0, finished.stderr
    assert_same(run, expected)
    assert all_gone(str(tmp_path))
    print(f"\n{algorithm}: killed {dict(moments)}")

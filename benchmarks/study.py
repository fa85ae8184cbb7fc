"""What a study costs beside the same runs started by hand, one after the other, on the same cores.

Each round makes the runs both ways, by turns, and checks that the policies are the same bytes.
With one core the study has no more to win from it than the runs by hand; with all cores it makes
several runs at a time with one simulating process each, where by hand each run has them all.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

from moie.studies.toml_file import load


@dataclass(frozen=True)
class Benchmark:
    """Overhead of a study."""

    task: str = "pendulum"
    algorithms: tuple[str, ...] = ("moie", "ppo")
    seeds: int = 2
    iterations: int = 100
    rounds: int = 2
    """Turns of both ways."""
    cores: tuple[int, ...] = (1, 2)
    """How many cores both ways get."""


def moie(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moie", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def declare(benchmark: Benchmark, folder: Path) -> Path:
    file = folder / "overhead.toml"
    lines = [f"tasks = ['{benchmark.task}']", f"algorithms = {list(benchmark.algorithms)}"]
    lines += [f"seeds = {benchmark.seeds}", "[settings]", f"iterations = {benchmark.iterations}"]
    file.write_text("\n".join(lines))
    return file


def by_hand(file: Path, out: Path) -> float:
    """Seconds for all runs, one after the other, with as many workers as a user gets."""
    began = time.perf_counter()
    for one in load(str(file))[1]:
        config, learner = one.config, one.config.learner
        words = ["--algorithm", learner.algorithm, "--iterations", str(config.iterations)]
        moie("train", config.task, *words, "--seed", str(config.seed), "--out", str(out / one.name))
    return time.perf_counter() - began


def as_study(file: Path, out: Path) -> float:
    """Seconds for the same as a study, with its Ray."""
    began = time.perf_counter()
    moie("study", str(file), "--out", str(out))
    return time.perf_counter() - began


def compare(benchmark: Benchmark, cores: set[int]) -> None:
    """Both ways by turns, on some cores."""
    os.sched_setaffinity(0, cores)
    hand, study = 0.0, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = declare(benchmark, folder)
        for turn in range(benchmark.rounds):
            one, other = folder / f"hand{turn}", folder / f"study{turn}"
            took = by_hand(file, one), as_study(file, other)
            hand, study = hand + took[0], study + took[1]
            for run in load(str(file))[1]:
                files = [path / run.name / "policy.safetensors" for path in (one, other)]
                assert files[0].read_bytes() == files[1].read_bytes()
            print(
                f"  turn {turn + 1}: by hand {took[0]:.1f} s, study {took[1]:.1f} s, "
                f"study / by hand {took[1] / took[0]:.3f}",
                flush=True,
            )
    print(f"  study / by hand {study / hand:.3f}  (bar: below 1.05)")


def main(benchmark: Benchmark) -> None:
    n_runs = len(benchmark.algorithms) * benchmark.seeds
    print(f"{benchmark.task}, {n_runs} runs of {benchmark.iterations} iterations")
    available = sorted(os.sched_getaffinity(0))
    for count in benchmark.cores:
        print(f" on {count} of {len(available)} cores", flush=True)
        compare(benchmark, set(available[:count]))


if __name__ == "__main__":
    main(tyro.cli(Benchmark))

"""Kill a swarm again and again, resume it, and compare its files with those of one left alone.

    python benchmarks/killed.py Hopper-v5 --algorithm crisp --seeds 25 --iterations 60

On the machine that this runs on, whatever its accelerator. Policies must be the same byte for byte,
metrics the same but for times. Exit code 1 where they are not. Further options go to both.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def moie(*words: str) -> subprocess.Popen:
    """A command of moie's, in a process group of its own."""
    command = [sys.executable, "-m", "moie", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def learned(run: Path) -> int:
    """Iterations of the newest checkpoint."""
    folders = [p.name for p in (run / "checkpoints").glob("[0-9]*") if p.name.isdecimal()]
    return max(map(int, folders), default=0)


def kill_after(process: subprocess.Popen, run: Path, iteration: int) -> int | None:
    """Kill it, workers and all, once so many iterations are saved, or a moment later; how many
    were, None where it ended before."""
    while process.poll() is None:
        if learned(run) >= iteration:
            time.sleep(random.uniform(0.0, 3.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return learned(run)
        time.sleep(0.01)
    return None


def rows(run: Path) -> list[dict[str, Any]]:
    """Metrics without times."""
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in lines]


def main() -> int:
    """Print what was killed when, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--algorithm", default="moie")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--kills", type=int, default=2)
    given, settings = parser.parse_known_args()
    name = f"{given.task} {given.algorithm}"
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder, "whole"), Path(folder, "broken")
        words = ["swarm", given.task, "--algorithm", given.algorithm, "--seeds", str(given.seeds)]
        words += ["--iterations", str(given.iterations), "--evaluation-every", "20"]
        words += settings
        alone = moie(*words, "--out", str(whole))
        process = moie(*words, "--out", str(broken))
        n_killed = 0
        for kill in range(given.kills):
            wanted = 1 + kill * given.iterations // given.kills
            at = kill_after(process, broken / f"s{given.seeds - 1}", wanted)
            in_time = at is not None and at < given.iterations
            n_killed += in_time
            print(f"{name}: " + (f"killed after {at}" if in_time else "not in time"), flush=True)
            process = moie("resume", str(broken))
        codes = (alone.wait(), process.wait())
        if any(codes) or not n_killed:
            print(f"{name}: exit codes {codes}, killed {n_killed} times")
            return 1
        differ = []
        for seed in range(given.seeds):
            one, other = whole / f"s{seed}", broken / f"s{seed}"
            policies = [(run / "policy.safetensors").read_bytes() for run in (one, other)]
            if policies[0] != policies[1] or rows(one) != rows(other):
                differ.append(seed)
        said = f"seeds {differ} differ" if differ else "the same bytes"
        print(f"{name}, {given.seeds} seeds, {given.iterations} iterations: {said}", flush=True)
        return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())

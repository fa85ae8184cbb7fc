"""Speed of swarms: physics alone, whole training, the learner's share; by seeds and environments.

    python benchmarks/swarm.py Hopper-v5 --seeds 1 5 25 75 --environments 64
    python benchmarks/swarm.py Hopper-v5 --seeds 1 --cpu-pool   # beside `moie train`

Run it alone on the machine: an accelerator that others use, too, tells little.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from moie.learn.runtime import prepare

prepare(accelerator=True)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import moie  # noqa: E402
from moie.accelerated.program import Program  # noqa: E402
from moie.accelerated.records import Plan  # noqa: E402
from moie.accelerated.tasks import Task, World  # noqa: E402
from moie.api import task_preset  # noqa: E402
from moie.system import n_cores  # noqa: E402

STEPS, REPEATS = 20, 3


def physics(task: Task, n: int) -> tuple[float, float]:
    """Seconds to compile, and environment steps a second, of n robots with random actions."""

    def step(worlds: World, key: Any) -> tuple[World, Any]:
        shape = (n, len(task.action_low))
        action = jax.random.uniform(key, shape, minval=task.action_low, maxval=task.action_high)
        answer = jax.vmap(task.step)(worlds, action)
        fresh = jax.vmap(task.reset)(jax.random.split(key, n))

        def begun(new: Any, old: Any) -> Any:
            over = answer.terminated.reshape(n, *(1,) * (new.ndim - 1))
            return jnp.where(over, new, old)

        return jax.tree.map(begun, fresh, answer.world), answer.reward.mean()

    def steps(worlds: World, key: Any) -> Any:
        return jax.lax.scan(step, worlds, jax.random.split(key, STEPS))

    began = time.perf_counter()
    worlds = jax.jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), n))
    with jax.default_matmul_precision("highest"):
        compiled = jax.jit(steps).lower(worlds, jax.random.key(1)).compile()
    seconds = time.perf_counter() - began
    worlds, _ = jax.block_until_ready(compiled(worlds, jax.random.key(2)))
    began = time.perf_counter()
    for number in range(REPEATS):
        worlds, _ = compiled(worlds, jax.random.key(3 + number))
    jax.block_until_ready(worlds)
    return seconds, REPEATS * STEPS * n / (time.perf_counter() - began)


def training(task: Task, algorithm: str, n_seeds: int, n_environments: int) -> tuple[float, ...]:
    """Seconds to compile, and steps a second of sampling alone and of sampling and learning."""
    config = task_preset(task.name, algorithm)
    began = time.perf_counter()
    program = Program(task, config, n_environments, REPEATS + 1)
    seeds = program.start(list(range(n_seeds)))
    program.compile(seeds)
    seconds = time.perf_counter() - began

    def speed(learns: bool) -> float:
        nonlocal seeds
        took = []
        for n in (1, REPEATS + 1):
            goes = np.arange(REPEATS + 1) < n
            columns: Any = (goes, np.full_like(goes, learns), np.zeros(len(goes), np.float32))
            plan = Plan(*columns, np.ones(len(goes), np.int32), np.ones(len(goes), np.float32))
            began = time.perf_counter()
            seeds, _ = jax.block_until_ready(program.compiled(seeds, plan))
            took.append(time.perf_counter() - began)
        return (REPEATS + 1) * n_seeds * config.batch_steps / took[-1]

    return seconds, speed(False), speed(True)


def pool(task: str, algorithm: str) -> float:
    """Steps a second of `moie train` on this machine, evaluations left out."""
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"evaluation_every": 0, "evaluation_episodes": 1, "quiet": True}
        out = Path(folder, "run")
        run = moie.train(task, algorithm=algorithm, iterations=12, out=out, **options)
        rows = run.metrics[:-1]
    first, last = rows[2], rows[-1]  # the first ones compile, and estimate the scale
    return (last["steps"] - first["steps"]) / (last["seconds_total"] - first["seconds_total"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--algorithm", default="moie")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 5, 25, 75])
    parser.add_argument("--environments", type=int, nargs="*", default=[64])
    parser.add_argument(
        "--cpu-pool", action="store_true", help="also `moie train` on the processor"
    )
    given = parser.parse_args()
    task = Task(given.task)
    print(f"{given.task}, {given.algorithm}, {jax.devices()[0].device_kind}")
    for n_environments in given.environments:
        for n_seeds in given.seeds:
            compiling, alone = physics(task, n_seeds * n_environments)
            seconds, sampling, whole = training(task, given.algorithm, n_seeds, n_environments)
            print(
                f"{n_seeds:3d} seeds x {n_environments:3d} environments: "
                f"physics {alone:,.0f} steps/s, "
                f"sampling {sampling:,.0f}, sampling and learning {whole:,.0f} "
                f"({whole / alone:.2f} of physics; learner {1 - whole / sampling:.0%} of it); "
                f"compiling {compiling:.0f} s and {seconds:.0f} s",
                flush=True,
            )
    if given.cpu_pool:
        speed = pool(given.task, given.algorithm)
        print(f"moie train, {n_cores()} cores: {speed:,.0f} steps/s")


if __name__ == "__main__":
    main()

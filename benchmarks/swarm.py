"""Speed of swarms: physics alone, whole training, the learner's share; by seeds and environments.

    python benchmarks/swarm.py Hopper-v5 --sizes 1x64 25x64 25x188   # seeds x environments of each
    python benchmarks/swarm.py Hopper-v5 --sizes --cpu-pool          # `moie train` alone

Run it alone on the machine: an accelerator that others use, too, tells little. All configurations
are compiled first, each in a process of its own, and then measured one after the other.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes share it

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

STEPS, REPEATS, ITERATIONS = 20, 3, 4


def physics(task: Task, n: int) -> Callable[[], float]:
    """Compile n robots with random actions; what measures their steps a second."""

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

    first = jax.jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(0), n))
    with jax.default_matmul_precision("highest"):
        compiled = jax.jit(steps).lower(first, jax.random.key(1)).compile()

    def measure() -> float:
        worlds, _ = jax.block_until_ready(compiled(first, jax.random.key(2)))
        began = time.perf_counter()
        for number in range(REPEATS):
            worlds, _ = compiled(worlds, jax.random.key(3 + number))
        jax.block_until_ready(worlds)
        return REPEATS * STEPS * n / (time.perf_counter() - began)

    return measure


def training(
    task: Task, algorithm: str, n_seeds: int, n_environments: int
) -> Callable[[bool], float]:
    """Compile a swarm; what measures its steps a second, without and with learning."""
    config = task_preset(task.name, algorithm)
    program = Program(task, config, n_environments, ITERATIONS)
    seeds = program.start(list(range(n_seeds)))
    program.compile(seeds)

    def measure(learns: bool) -> float:
        nonlocal seeds
        for n in (1, ITERATIONS):
            goes = np.arange(ITERATIONS) < n
            columns: Any = (goes, np.full_like(goes, learns), np.zeros(len(goes), np.float32))
            plan = Plan(*columns, np.ones(len(goes), np.int32))
            began = time.perf_counter()
            seeds, _ = jax.block_until_ready(program.run(seeds, plan))
            seconds = time.perf_counter() - began
        return ITERATIONS * n_seeds * config.batch_steps / seconds

    return measure


def measured(
    name: str,
    algorithm: str,
    size: tuple[int, int],
    compiling: Semaphore,
    turn: Connection,
) -> None:
    """One configuration, in a process of its own: compile it, then wait for its turn."""
    n_seeds, n_environments = size
    with compiling:
        task = Task(name)
        began = time.perf_counter()
        physics_speed = physics(task, n_seeds * n_environments)
        between = time.perf_counter()
        swarm_speed = training(task, algorithm, *size)
        seconds = between - began, time.perf_counter() - between
    turn.send(None)
    turn.recv()
    alone, sampling, whole = physics_speed(), swarm_speed(False), swarm_speed(True)
    turn.send(
        f"{n_seeds:3d} seeds x {n_environments:3d} environments: "
        f"physics {alone:,.0f} steps/s, "
        f"sampling {sampling:,.0f}, sampling and learning {whole:,.0f} "
        f"({whole / alone:.2f} of physics; learner {1 - whole / sampling:.0%} of it); "
        f"compiling {seconds[0]:.0f} s and {seconds[1]:.0f} s"
    )


def compare(name: str, algorithm: str, sizes: list[tuple[int, int]]) -> None:
    """Print a line for each number of seeds and environments."""
    context = multiprocessing.get_context("spawn")
    compiling, turns = context.Semaphore(n_cores()), []
    for size in sizes:
        here, there = context.Pipe()
        given = (name, algorithm, size, compiling, there)
        context.Process(target=measured, args=given, daemon=True).start()
        there.close()  # where the process ends early, so does the wait for it
        turns.append(here)
    for turn in turns:
        turn.recv()
    for turn in turns:
        turn.send(None)
        print(turn.recv(), flush=True)


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
    parser.add_argument("--sizes", nargs="*", default=["1x64", "5x64", "25x64", "75x64"])
    parser.add_argument(
        "--cpu-pool", action="store_true", help="also `moie train` on the processor"
    )
    given = parser.parse_args()
    print(f"{given.task}, {given.algorithm}, {jax.devices()[0].device_kind}", flush=True)
    sizes = [tuple(map(int, size.split("x"))) for size in given.sizes]
    compare(given.task, given.algorithm, sizes)
    if given.cpu_pool:
        speed = pool(given.task, given.algorithm)
        print(f"moie train, {n_cores()} cores: {speed:,.0f} steps/s")


if __name__ == "__main__":
    main()

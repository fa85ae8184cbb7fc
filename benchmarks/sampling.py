"""How close sampling comes to the physics engine: every figure is a ratio within one run.

    python benchmarks/sampling.py [--rounds 4] [--iterations 22] [--tasks ant ...]

For each PyBullet walker, with a random policy: steps per second of the packaged environment, of
ours and of `stepSimulation` alone, in one process, by turns; a queue of episodes on one and on two
workers, by turns; then real training, where the packaged environment is measured before and after.
"""

import argparse
import math
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
import pybullet

import moie
from moie.environments import bullet, specs, tasks
from moie.learn import learner
from moie.rollout.episode import Job, Purpose
from moie.rollout.pool import Pool
from moie.runs import presets
from moie.runs.deployment import first_policy

WALKERS = ("hopper", "walker2d", "halfcheetah", "ant")
STEPS = 2000  # a turn


class Clock:
    """Time spent in calls of one function."""

    def __init__(self, function):
        self.function, self.seconds, self.calls = function, 0.0, 0

    def __call__(self, *arguments):
        began = time.perf_counter()
        result = self.function(*arguments)
        self.seconds += time.perf_counter() - began
        self.calls += 1
        return result


def as_packaged(task: str):
    """What `gymnasium.make` gives, without our repair of resets."""
    return tasks.make(task, packaged=True).env


def steps_per_second(env, n_steps: int, first_seed: int = 0) -> float:
    """Of whole episodes with uniformly random actions, resets included."""
    rng = np.random.default_rng(first_seed)
    size, done, seed = env.action_space.shape, 0, first_seed
    began = time.perf_counter()
    while done < n_steps:
        env.reset(seed=seed)
        ended, seed = False, seed + 1
        actions = rng.uniform(-1, 1, (1000, *size)).astype(np.float32)
        while not ended:
            _, _, terminated, truncated, _ = env.step(actions[done % 1000])
            ended, done = terminated or truncated, done + 1
    return done / (time.perf_counter() - began)


def one_process(task: str, rounds: int) -> None:
    """Packaged, ours, physics alone, by turns."""
    theirs, ours = as_packaged(task), tasks.make(task)
    found = []
    for number in range(rounds + 1):
        packaged = steps_per_second(theirs, STEPS, number)
        batched = steps_per_second(ours, 2 * STEPS, number)
        bullet.pybullet.stepSimulation = clock = Clock(pybullet.stepSimulation)
        steps_per_second(ours, STEPS, number)
        bullet.pybullet.stepSimulation = clock.function
        found.append((packaged, batched, clock.calls / clock.seconds))
    packaged, batched, physics = rates = np.mean(found[1:], axis=0)  # the first is for warming up
    ratios = [batched / packaged for packaged, batched, _ in found[1:]]
    print(f"{task}: steps per second, one process, random policy")
    for name, rate in zip(("packaged", "ours", "stepSimulation alone"), rates, strict=True):
        print(f"  {name:<22} {rate:7.0f}   {rate / packaged:5.2f} times packaged")
    print(f"  ours, turn by turn      {min(ratios):.2f} to {max(ratios):.2f} times packaged")
    print(f"  ours is {batched / physics:.2f} of what the physics alone would give")


def one_and_two_workers(task: str, rounds: int) -> None:
    """A queue of episodes of the untrained policy, the same on one worker and on two."""
    env = tasks.make(task)
    config = presets.preset(tasks.resolve(task), 0)
    spaces = (env.observation_space, env.action_space)
    sizes = (math.prod(space.shape) for space in spaces)
    untrained = learner.start_jit(config.learner, *sizes, key=jax.random.key(0)).policy
    policy = first_policy(config, env, untrained)
    env.close()
    spec, found = specs.pack(task), []

    def run(pool: Pool, seed: int, count: int) -> tuple[float, int]:
        numbers = range(count)
        jobs = [Job(seed, Purpose.EVALUATION_SAMPLED, 0, number, 1000) for number in numbers]
        began = time.perf_counter()
        pool.queue(policy, jobs)
        n_steps = sum(episode.length for episode in pool.collect(jobs))
        return time.perf_counter() - began, n_steps

    with Pool(spec, 1) as one, Pool(spec, 2) as two:
        run(two, 0, 16)
        _, n_steps = run(one, 0, 16)
        count = 16 * max(1, round(16_000 / n_steps))  # more of them where they fall early
        for number in range(1, rounds + 1):
            found.append((*run(one, number, count), *run(two, number, count)))
    first, n_steps, second, _ = np.sum(found, axis=0)
    length = n_steps / count / rounds
    print(f"  {count} episodes of {length:.0f} steps, on one worker and on two by turns")
    print(f"  one worker             {n_steps / first:7.0f}")
    print(f"  two workers            {n_steps / second:7.0f}   {first / second:5.2f} times one")


def training(task: str, iterations: int, every: int) -> None:
    """`moie train` with two workers, against the packaged environment before and after."""
    env = as_packaged(task)
    before = steps_per_second(env, STEPS)
    with tempfile.TemporaryDirectory() as folder:
        options = {"experts": 10, "evaluation_every": every, "iterations": iterations}
        run = moie.train(task, out=Path(folder) / "run", workers=2, quiet=True, **options)
        rows = run.metrics
    packaged = (before + steps_per_second(env, STEPS)) / 2
    start, *timed = rows[1:-1]  # iteration 0 compiles
    seconds = timed[-1]["seconds_total"] - start["seconds_total"]
    trained = timed[-1]["steps"] - start["steps"]
    evaluated = sum(
        5 * (row["length_sampled"] + row["length_mean"]) for row in timed if "length_mean" in row
    )

    def share(name: str) -> float:
        return sum(row[name] for row in timed) / seconds

    print(f"  training, 10 experts, two workers, evaluation every {every}: {len(timed)} iterations")
    print(f"    packaged, one process   {packaged:7.0f} steps/s")
    for name, n_steps in (("training", trained), ("with evaluation", trained + evaluated)):
        rate = n_steps / seconds
        print(f"    {name:<22} {rate:8.0f} steps/s   {rate / packaged:5.2f} times packaged")
    print(
        f"    share of wall time that workers simulate    {1 - share('seconds_workers_idle'):.2f}"
    )
    print(f"    share of wall time that the learner learns  {share('seconds_learning'):.2f}")


def main() -> None:
    """Print one block a task."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=22)
    parser.add_argument("--tasks", nargs="+", default=WALKERS, choices=WALKERS)
    given = parser.parse_args()
    for task in given.tasks:
        one_process(task, given.rounds)
        one_and_two_workers(task, given.rounds)
        for every in (1, 10):
            training(task, given.iterations, every)


if __name__ == "__main__":
    main()

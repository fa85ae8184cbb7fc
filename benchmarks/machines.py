"""The same learning on an accelerator and on a processor, iteration by iteration.

    python benchmarks/machines.py Hopper-v5 --algorithms moie crisp ppo --iterations 4

The swarm's program samples and learns on the accelerator. Every seed's batch is given to the
processor's learner, too, which starts from the same state; the largest difference of any parameter
of the policy is printed, relative where parameters are large. Exit code 1 where one is above 1e-4.
"""

import argparse
import sys
from typing import Any

from moie.learn.runtime import prepare

prepare(accelerator=True)

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

from moie.accelerated.program import Program  # noqa: E402
from moie.accelerated.records import Plan  # noqa: E402
from moie.accelerated.tasks import Task  # noqa: E402
from moie.api import task_preset  # noqa: E402
from moie.learn import learner  # noqa: E402

LIMIT = 1e-4


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference between two policies."""
    found = 0.0
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = np.asarray(one, np.float64), np.asarray(other, np.float64)
        found = max(found, float(np.max(np.abs(x - y) / np.maximum(1.0, np.abs(y)))))
    return found


def compare(task: Task, algorithm: str, n_seeds: int, n_iterations: int) -> float:
    """Print a line for each iteration; the largest difference."""
    config = task_preset(task.name, algorithm)
    program = Program(task, config, 64, 1)
    seeds = program.start(list(range(n_seeds)))
    columns: Any = (np.bool_(True), np.bool_(True), np.float32(0), np.int32(1), np.float32(1))
    plan = Plan(*columns)

    def iterate(seeds: Any, progress: Any) -> Any:
        after, moments, _ = program.sample(seeds, plan)
        batch = program.batch(after, jax.tree.map(program.by_environment, moments))
        learned, report = program.learn(seeds.learner, batch, progress)
        return batch, report, eqx.tree_at(lambda s: s.learner, after, learned)

    with jax.default_matmul_precision("highest"):
        iterate_jit = jax.jit(iterate)
        worst, processor = 0.0, jax.devices("cpu")[0]
        for iteration in range(n_iterations):
            progress = np.float32(iteration / n_iterations)
            batch, report, after = iterate_jit(seeds, progress)
            largest = 0.0
            for place in range(n_seeds):
                state, own = jax.device_put(
                    jax.tree.map(lambda x, at=place: x[at], (seeds.learner, batch)), processor
                )
                alone, alone_report = learner.learn_jit(config.learner, state, own, progress)
                ours = jax.tree.map(lambda x, at=place: x[at], after.learner.policy)
                largest = max(largest, apart(ours, alone.policy))
                if report.rows is not None:
                    same = np.array_equal(report.rows[place], alone_report.rows)
                    largest = largest if same else np.inf  # other prototypes
            swaps = np.asarray(report.facts["swaps"]) if "swaps" in report.facts else "-"
            print(
                f"{task.name} {algorithm:14} iteration {iteration}: {largest:.1e}; swaps {swaps}",
                flush=True,
            )
            worst, seeds = max(worst, largest), after
    return worst


def main() -> int:
    """Print the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--algorithms", nargs="+", default=["moie", "crisp", "ppo", "trpo"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=4)
    given = parser.parse_args()
    task = Task(given.task)
    print(f"{jax.devices()[0].device_kind} and a processor")
    worst = [compare(task, name, given.seeds, given.iterations) for name in given.algorithms]
    return int(max(worst) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

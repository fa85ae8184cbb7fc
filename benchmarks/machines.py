"""The same learning on an accelerator and on a processor, iteration by iteration.

    python benchmarks/machines.py Hopper-v5 --algorithms moie crisp ppo --iterations 4

The swarm's program samples and learns on the accelerator. Every seed's batch is given to the
processor's learner, too, which starts from the same state; the largest difference of any parameter
of the policy is printed, relative where parameters are large. Some iterations magnify any rounding:
beside it stands what the processor makes of its own batch with each number changed in its last
digit, the largest of three times. Exit code 1 where the two machines differ by more than 1e-4 and
the processor alone does not.
"""

import argparse
import sys
from typing import Any

from moie.learn.runtime import prepare

prepare(accelerator=True)

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from moie.accelerated.program import Program  # noqa: E402
from moie.accelerated.records import Plan  # noqa: E402
from moie.accelerated.tasks import Task  # noqa: E402
from moie.api import task_preset  # noqa: E402
from moie.core.batch import Batch  # noqa: E402
from moie.learn import learner  # noqa: E402
from moie.learn.config import LearnerConfig  # noqa: E402
from moie.learn.learner import LearnerState  # noqa: E402

LIMIT, TRIALS = 1e-4, 3


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference between two policies."""
    found = 0.0
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = np.asarray(one, np.float64), np.asarray(other, np.float64)
        found = max(found, float(np.max(np.abs(x - y) / np.maximum(1.0, np.abs(y)))))
    return found


def policies_apart(ours: tuple[Any, Any], theirs: tuple[Any, Any]) -> float:
    """Of policies and of the rows that their prototypes came from: infinite where those differ."""
    if ours[1] is not None and not np.array_equal(ours[1], theirs[1]):
        return np.inf
    return apart(ours[0], theirs[0])


def nudged(batch: Batch, rng: np.random.Generator) -> Batch:
    """Each number a little larger or smaller: the next one that single precision has."""

    def one(x: Any) -> Any:
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return x
        towards = np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf)
        return np.nextafter(np.asarray(x), towards.astype(x.dtype))

    return jax.tree.map(one, batch)


def differences(
    config: LearnerConfig,
    given: tuple[LearnerState, Batch],
    progress: np.float32,
    ours: tuple[Any, Any],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Between our policy and the processor's, and between the processor's own by rounding."""
    state, batch = given

    def learned(batch: Batch) -> tuple[Any, Any]:
        after, report = learner.learn_jit(config, state, batch, progress)
        return after.policy, report.rows

    alone = learned(batch)
    others = [learned(nudged(batch, rng)) for _ in range(TRIALS)]
    return policies_apart(ours, alone), max(policies_apart(one, alone) for one in others)


def compare(task: Task, algorithm: str, n_seeds: int, n_iterations: int) -> float:
    """Print a line for each iteration; the largest difference that is not of rounding alone."""
    config = task_preset(task.name, algorithm)
    program = Program(task, config, 64, 1)
    seeds = program.start(list(range(n_seeds)))
    columns: Any = (np.bool_(True), np.bool_(True), np.float32(0), np.int32(1))
    plan = Plan(*columns)

    def iterate(seeds: Any, progress: Any) -> Any:
        after, moments, _ = program.sample(seeds, plan)
        batch = program.batch(after, jax.tree.map(program.by_environment, moments))
        learned, report = program.learn(seeds.learner, batch, progress)
        return batch, report, eqx.tree_at(lambda s: s.learner, after, learned)

    with jax.default_matmul_precision("highest"):
        iterate_jit = jax.jit(iterate)
        worst, processor, rng = 0.0, jax.devices("cpu")[0], np.random.default_rng(0)
        for iteration in range(n_iterations):
            progress = np.float32(iteration / n_iterations)
            batch, report, after = iterate_jit(seeds, progress)
            largest, largest_alone = 0.0, 0.0
            for place in range(n_seeds):
                given, ours = jax.tree.map(
                    lambda x, at=place: x[at],
                    ((seeds.learner, batch), (after.learner.policy, report.rows)),
                )
                given = jax.device_put(given, processor)
                difference, by_rounding = differences(config.learner, given, progress, ours, rng)
                largest = max(largest, difference)
                largest_alone = max(largest_alone, by_rounding)
                if by_rounding <= LIMIT:
                    worst = max(worst, difference)
            swaps = np.asarray(report.facts["swaps"]) if "swaps" in report.facts else "-"
            print(
                f"{task.name} {algorithm:14} iteration {iteration}: {largest:.1e}; the processor "
                f"alone, by rounding: {largest_alone:.1e}; swaps {swaps}",
                flush=True,
            )
            seeds = after
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

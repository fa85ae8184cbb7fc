"""Learning time as a share of the simulation time of the same iterations, by part.

    python benchmarks/learner.py [--iterations 20]

One process simulates the environment as packaged, then learns from the batch: a ratio in one run,
so that a busy machine slows both sides. Each part is compiled by itself and timed on the inputs
that it has in that iteration; "all" is the compiled learning step as training runs it. Then the
compiled step of every algorithm on Hopper, measured in the same way.
"""

import argparse
import time
from collections import defaultdict
from functools import partial

import jax.numpy as jnp
import numpy as np
from session import Session, jax, learner

from moie.core.advantage import standardise
from moie.core.selection import compress, swap_prototypes
from moie.core.trust_region import Anchor
from moie.learn import registry
from moie.learn.update import Problem, fit_critic, update_actions, update_all

CASES = (("HopperBulletEnv-v0", 10, 0.30), ("AntBulletEnv-v0", 40, 0.45))
BAR_OF_EACH = 0.30


def timed(seconds: dict, name: str, function, *arguments, **options):
    """Call, wait for the result, and add the time under a name."""
    began = time.perf_counter()
    result = jax.block_until_ready(function(*arguments, **options))
    seconds[name].append(time.perf_counter() - began)
    return result


def parts(config):
    """The pieces of `learner.learn`, each compiled by itself."""
    bound, selection = config.trust_region.bound, config.selection

    @jax.jit
    def critic(twins, moments, batch, key):
        advantages, targets = learner.evaluate_policy(config, twins, batch)
        fitted = fit_critic(config.critic, twins, moments, batch.states, targets, key=key)
        return standardise(advantages), fitted

    @jax.jit
    def swap(policy, batch, anchor, n_swaps, key):
        options = {"n_candidates": selection.candidates, "key": key}
        return swap_prototypes(policy, batch.states, anchor, bound, n_swaps, **options).policy

    @jax.jit
    def shrink(policy, batch, advantages, anchor):
        limits = (selection.delete_share * bound, selection.reweight_share * bound)
        return compress(policy, batch.states, batch.taken, advantages, anchor, *limits).policy

    def update(kind):
        return jax.jit(
            lambda policy, moments, problem, key: kind(config, policy, moments, problem, key=key)
        )

    return critic, swap, shrink, update(update_all), update(update_actions)


def measure(task: str, experts: int, iterations: int) -> tuple[dict, int]:
    """Seconds of every part in every iteration after the compiling ones, and compilations."""
    session = Session(task, experts, packaged=True)
    config = session.config.learner
    critic, swap, shrink, full, partial_update = parts(config)
    anchor_of = jax.jit(Anchor.of)
    seconds: dict[str, list[float]] = defaultdict(list)
    add = partial(timed, seconds)
    for iteration in range(iterations + 2):
        if iteration == 2:  # both kinds of update are compiled by now
            seconds.clear()
        batch = add("simulation", session.sample)
        state, key = session.state, jax.random.key(iteration)
        advantages, _ = add("critic", critic, state.critic, state.critic_moments, batch, key)
        anchor = anchor_of(state.policy, batch.states, batch.taken)
        kind, policy = full, state.policy
        if iteration % 2:
            swapped = add("swap", swap, state.policy, batch, anchor, state.own.n_swaps, key)
            kind = partial_update
            policy = add("compress", shrink, swapped, batch, advantages, anchor)
        problem = Problem(batch.states, batch.taken, advantages, anchor, jnp.asarray(-1e4))
        add("update", kind, policy, state.own.moments, problem, key)
        session.take(*add("all", learner.learn_jit, config, state, batch))
    return seconds, learner.learn_jit._cache_size()


def measure_step(algorithm: str, iterations: int) -> dict:
    """Seconds of Hopper's simulation and of the whole learning step, after the compiling ones."""
    session = Session("HopperBulletEnv-v0", 10, algorithm=algorithm, packaged=True)
    seconds: dict[str, list[float]] = defaultdict(list)
    for iteration in range(iterations + 2):
        if iteration == 2:
            seconds.clear()
        batch = timed(seconds, "simulation", session.sample)
        arguments = (session.config.learner, session.state, batch)
        session.take(*timed(seconds, "all", learner.learn_jit, *arguments))
    return seconds


def main() -> None:
    """Print one block a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20)
    iterations = parser.parse_args().iterations
    for task, experts, bar in CASES:
        learner.learn_jit.clear_cache()
        seconds, compilations = measure(task, experts, iterations)
        simulation = np.sum(seconds.pop("simulation"))
        print(f"{task}, {experts} experts, {iterations} iterations: share of simulation time")
        for name in ("critic", "update", "swap", "compress", "all"):
            share = np.sum(seconds[name]) / simulation
            per = 1e3 * np.mean(seconds[name])
            extra = f"   (bar: at most {bar:.2f})" if name == "all" else ""
            print(f"  {name:<9} {share:6.3f}   {per:7.1f} ms each time{extra}")
        steps_per_second = iterations * 3008 / simulation
        print(f"  compilations of the learning step: {compilations}")
        print(f"  simulation: {steps_per_second:.0f} steps/s")
    print(f"every algorithm on Hopper: share of simulation time (bar: at most {BAR_OF_EACH:.2f})")
    for algorithm in registry.names():
        seconds = measure_step(algorithm, iterations)
        share = np.sum(seconds["all"]) / np.sum(seconds["simulation"])
        per = 1e3 * np.mean(seconds["all"])
        print(f"  {algorithm:<23} {share:6.3f}   {per:7.1f} ms each time", flush=True)


if __name__ == "__main__":
    main()

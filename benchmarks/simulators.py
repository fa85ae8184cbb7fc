"""The same robots in MJX and in Gymnasium: one step, ten steps, and whole episodes of a policy.

    python benchmarks/simulators.py steps [Ant-v5 ...]       one step and ten, 1,000 random states
    python benchmarks/simulators.py steps --policies P ...   and 1,000 states of these policies
    python benchmarks/simulators.py returns --policies P ... 64 episodes of each policy in both

Policies: files, runs or folders of swarms (of which --first takes the first seeds), of one task.

Errors are relative where numbers are large: |ours - theirs| / max(1, |theirs|).
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from moie.learn.runtime import prepare

prepare(accelerator=True)

import gymnasium  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from moie import load  # noqa: E402
from moie.accelerated import folder  # noqa: E402
from moie.accelerated.catalogue import TASKS  # noqa: E402
from moie.accelerated.tasks import Task, World  # noqa: E402

N, EPISODES, SEVERAL = 1000, 64, 10


def visited(name: str, policies: list[Any], seed: int = 0) -> dict[str, np.ndarray]:
    """States on the way of policies that sample their actions, or of random actions; what one step
    in Gymnasium makes of them, and where ten steps with the same actions lead."""
    env: Any = gymnasium.make(name)
    base, rng, rows, number = env.unwrapped, np.random.default_rng(seed), [], 0
    other: Any = gymnasium.make(name).unwrapped
    other.reset(seed=0)
    while len(rows) < N:
        observation, _ = env.reset(seed=seed + number)
        policy = policies[number % len(policies)] if policies else None
        number, over, held, action = number + 1, False, 0, None
        while not over and len(rows) < N:
            if policy is not None:
                action = policy.predict(observation, deterministic=rng.random() < 0.5)[0]
            elif held == 0:
                action, held = env.action_space.sample(), int(rng.integers(1, 8))
            held -= 1
            # The same state in both: one that single precision can hold.
            qpos, qvel = (np.float64(np.float32(x)) for x in (base.data.qpos, base.data.qvel))
            if rng.random() < (0.1 if policies else 1.0):
                rows.append((qpos, qvel, action, *_steps(other, qpos, qvel, action)))
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
    names = ("qpos", "qvel", "action", "observation", "reward", "terminated", "later")
    return {
        name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


def _steps(env: Any, qpos: np.ndarray, qvel: np.ndarray, action: np.ndarray) -> tuple:
    env.reset(seed=0)
    env.set_state(qpos, qvel)
    observation, reward, terminated, _, _ = env.step(action)
    later = observation
    for _ in range(SEVERAL - 1):
        later = env.step(action)[0]
    return observation, reward, terminated, later


def error(ours: Any, theirs: np.ndarray) -> np.ndarray:
    """The largest of each state."""
    found = np.abs(np.asarray(ours, np.float64) - theirs) / np.maximum(1.0, np.abs(theirs))
    return found.reshape(len(theirs), -1).max(axis=1)


def trained(path: Path, n_first: int) -> dict[str, Any]:
    """The policy of a file or run, or those of the first seeds of a swarm."""
    if not folder.is_swarm(path):
        return {str(path): load(path)}
    runs = [folder.member_path(path, seed) for seed in folder.read(path).seeds[:n_first]]
    return {str(run): load(run) for run in runs}


def compare_steps(name: str, policies: list[Any]) -> str:
    """A line of the table."""
    task, states = Task(name), visited(name, policies)

    def steps(qpos: Any, qvel: Any, action: Any) -> Any:
        first = task.step(task.at(qpos, qvel), action)

        def further(world: World, _: None) -> tuple[World, None]:
            return task.step(world, action).world, None

        last, _ = jax.lax.scan(further, first.world, None, SEVERAL - 1)
        return first, task.observe(last)

    arguments = [jnp.asarray(states[one], jnp.float32) for one in ("qpos", "qvel", "action")]
    with jax.default_matmul_precision("highest"):
        ours, later = jax.jit(jax.vmap(steps))(*arguments)
    seen, paid = (
        error(ours.observation, states["observation"]),
        error(ours.reward, states["reward"]),
    )
    differs = np.asarray(ours.terminated) != states["terminated"]
    return (
        f"{name:20} {'trained' if policies else 'random ':8} "
        f"observation: median {np.median(seen):.1e}, 99% {np.quantile(seen, 0.99):.1e}, "
        f"largest {seen.max():.1e}, above 1e-3 {np.sum(seen > 1e-3)}; "
        f"reward: largest {paid.max():.1e}, above 1e-3 {np.sum(paid > 1e-3)}; "
        f"terminated: {differs.sum()} of {states['terminated'].sum()} differ; "
        f"ten steps: median {np.median(error(later, states['later'])):.1e}"
    )


def compare_returns(policies: dict[str, Any]) -> list[str]:
    """Mean return of policies of one task over episodes with mean actions, in both simulators."""
    first = next(iter(policies.values()))
    task = Task(first.task)

    def act(parts: Any, observation: Any) -> Any:
        prototypes, weights, actions, default, factor, scale, low, high = parts
        difference = (observation - prototypes) / scale * factor
        strength = weights * jnp.exp(-jnp.sum(difference * difference, axis=1))
        share = strength / (strength.sum() + 1.0)
        return jnp.clip(default + share @ (actions - default), low, high)

    def episode(parts: Any, key: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            world, total, alive = carry
            answer = task.step(world, act(parts, task.observe(world)))
            total = total + jnp.where(alive, answer.reward, 0.0)
            return (answer.world, total, alive & ~answer.terminated), None

        first = (task.reset(key), jnp.float32(0.0), jnp.asarray(True))
        return jax.lax.scan(step, first, None, task.longest)[0][1]

    def parts_of(one: Any) -> list[Any]:
        metric = np.ones(len(one.feature_names)) if one.metric is None else one.metric
        factor = metric * math.sqrt(one.temperature)
        arrays = (one.prototypes, one.weights, one.actions, one.default_action)
        return [*arrays, factor, one.feature_scale, one.action_low, one.action_high]

    columns = zip(*(parts_of(one) for one in policies.values()), strict=True)
    stacked = [jnp.asarray(np.stack(column), jnp.float32) for column in columns]
    keys = jax.random.split(jax.random.key(1), EPISODES)
    with jax.default_matmul_precision("highest"):
        run = jax.jit(jax.vmap(jax.vmap(episode, in_axes=(None, 0)), in_axes=(0, None)))
        ours = np.asarray(run(stacked, keys))
    lines = []
    for (name, policy), values in zip(policies.items(), ours, strict=True):
        theirs = policy_returns(policy)
        difference = values.mean() - theirs.mean()
        noise = math.sqrt(values.var(ddof=1) / EPISODES + theirs.var(ddof=1) / EPISODES)
        allowed = max(0.05 * abs(theirs.mean()), 2 * noise)
        lines.append(
            f"{name}: MJX {values.mean():.1f}, Gymnasium {theirs.mean():.1f}, difference "
            f"{difference:+.1f} ({difference / abs(theirs.mean()):+.1%}), standard error "
            f"{noise:.1f}: {'within' if abs(difference) <= allowed else 'OUTSIDE'}"
        )
    return lines


def policy_returns(policy: Any) -> np.ndarray:
    """Of episodes in Gymnasium with mean actions."""
    from moie.runs.evaluation import Evaluator
    from moie.system import n_cores

    with Evaluator(policy.task, 1_000_000, n_cores()) as evaluator:
        episodes = evaluator.episodes(policy, EPISODES, kinds=("mean",))["mean"]
    return np.array([episode.rewards.sum() for episode in episodes])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("steps", "returns"))
    parser.add_argument("tasks", nargs="*", help="of random states; all where no policy is given")
    parser.add_argument("--policies", nargs="*", type=Path, default=[])
    parser.add_argument("--first", type=int, default=5, help="seeds of each swarm")
    given = parser.parse_args()
    by_task: dict[str, dict[str, Any]] = {}
    for path in given.policies:
        for name, policy in trained(path, given.first).items():
            by_task.setdefault(policy.task, {})[name] = policy
    if given.what == "returns":
        for policies in by_task.values():
            print("\n".join(compare_returns(policies)), flush=True)
        return
    for name in given.tasks or ([] if by_task else TASKS):
        print(compare_steps(name, []), flush=True)
    for name, policies in by_task.items():
        print(compare_steps(name, list(policies.values())), flush=True)


if __name__ == "__main__":
    main()

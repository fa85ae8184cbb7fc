"""The tasks that can run on an accelerator; no jax is needed to know them."""

import importlib.metadata
import importlib.util

from moie.errors import InputError, shortened

TASKS = ("Ant-v5", "HalfCheetah-v5", "Hopper-v5", "InvertedPendulum-v5", "Walker2d-v5")
ENVIRONMENTS = 100
"""Of each seed, at most, where the user says nothing."""


def environments_of(batch_steps: int) -> int:
    """How many environments a seed has where the user says nothing: they share a batch evenly, with
    two steps each at least."""
    most = min(ENVIRONMENTS, batch_steps // 2)
    return next(n for n in range(most, 0, -1) if batch_steps % n == 0)


def check_environments(n: int, batch_steps: int) -> None:
    """InputError unless so many environments share a batch evenly, with two steps each at least."""
    if n < 1 or batch_steps % n or batch_steps // n < 2:
        most = min(4 * max(n, 1), batch_steps // 2, 10**5)
        near = [str(k) for k in range(1, most + 1) if batch_steps % k == 0]
        raise InputError(
            f"environments is {n}, expected a divisor of batch_steps ({batch_steps}) that leaves "
            f"two steps each, such as {', '.join(near[-4:])}"
        )


def check_task(task: object) -> None:
    """InputError unless the task is one of them and all that it needs is installed."""
    if task not in TASKS:
        raise InputError(
            f"task is {shortened(task)}, expected one that can run on an accelerator: "
            f"{', '.join(TASKS)}"
        )
    found = importlib.util.find_spec("mujoco")
    if found is None or importlib.util.find_spec("mujoco.mjx") is None:
        raise InputError(
            f"{task} needs mujoco and mujoco-mjx on an accelerator, not installed: "
            "pip install 'moie[swarm]', or 'moie[gpu]' for an NVIDIA GPU"
        )
    ours, theirs = (importlib.metadata.version(name) for name in ("mujoco-mjx", "mujoco"))
    if ours.split(".")[:2] != theirs.split(".")[:2]:
        raise InputError(
            f"mujoco is {theirs}, expected the version of mujoco-mjx, {ours}: "
            "pip install 'moie[swarm]'"
        )

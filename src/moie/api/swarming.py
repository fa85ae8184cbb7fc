"""All seeds of a run at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moie.api.run import Run
from moie.api.training import default_out, task_preset
from moie.errors import InputError

if TYPE_CHECKING:
    from moie.runs.config import RunConfig


def swarm_preset(task: str, algorithm: str | None = None) -> RunConfig:
    """The settings that a swarm gets where the user gives none; InputError if the task is not one
    of those that can run on an accelerator."""
    from moie.accelerated.catalogue import check_task

    check_task(task)
    return task_preset(task, algorithm)


def swarm_config(
    config: RunConfig,
    seeds: int | str | Sequence[int] = 25,
    out: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    environments: int | None = None,
    at_once: int | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    quiet: bool = False,
) -> list[Run]:
    """Train with a complete configuration and each of some seeds; `steps` and `environments`
    override its own."""
    from moie.accelerated.catalogue import environments_of
    from moie.accelerated.folder import check_free, member_path, seeds_of
    from moie.runs.config import whole, with_settings, with_steps
    from moie.runs.machinery import machinery

    config = with_steps(config, steps)
    if environments is None:
        environments = config.environments or environments_of(config.batch_steps)
    config = with_settings(config, {"environments": environments})
    if config.seed:
        raise InputError(f"seed is {config.seed}, but a swarm has many: use seeds")
    path = default_out(config, "swarm") if out is None else Path(out)
    check_free(path)
    numbers = seeds_of(seeds)
    if at_once is not None:
        at_once = whole("at_once", at_once)
    with machinery(workers, worker_timeout, False, quiet, accelerator=True) as parts:
        from moie.accelerated import lifecycle

        lifecycle.start(path, config, numbers, at_once, parts)
    return [Run(member_path(path, seed)) for seed in numbers]


def swarm(
    task: str,
    *,
    algorithm: str | None = None,
    experts: int | None = None,
    seeds: int | Sequence[int] = 25,
    steps: int | None = None,
    iterations: int | None = None,
    environments: int | None = None,
    at_once: int | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    worker_timeout: float = 300.0,
    quiet: bool = False,
    **settings: Any,
) -> list[Run]:
    """Train a policy with many seeds at once, on an accelerator if there is one.

    Args:
        task: "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "InvertedPendulum-v5" or "Walker2d-v5".
        algorithm: "moie" (the default), "crisp" or one of the baselines.
        experts: number of experts; default: 10.
        seeds: how many seeds, or which.
        steps: environment steps that each seed learns from, rounded up to whole batches.
        iterations: batches to learn from, if `steps` is not given.
        environments: environments of each seed, side by side; a divisor of `batch_steps`; default:
            the largest up to 100.
        at_once: seeds that learn side by side; default: all that memory holds. The groups follow
            one another.
        out: the folder of the swarm, which must not exist; each seed is a run in it.
        workers: processes that evaluate policies in Gymnasium's environments; default: number of
            cores.
        worker_timeout, quiet: see `moie.train`.
        settings: any other setting that `moie train --help` lists, with underscores.
    """
    from moie.runs.config import with_settings

    named = {
        "algorithm": algorithm,
        "experts": experts,
        "iterations": iterations,
    }
    settings |= {name: value for name, value in named.items() if value is not None}
    config = with_settings(swarm_preset(task, algorithm), settings)
    return swarm_config(
        config, seeds, out, steps, environments, at_once, workers, worker_timeout, quiet
    )

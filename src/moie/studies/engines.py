"""What makes the runs of a study: Ray, one by one, or swarms, all seeds of a cell at once.

Which of the two is in the settings of a run: one of a swarm has `environments`.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from moie.accelerated.catalogue import TASKS, check_environments, environments_of
from moie.errors import InputError, require
from moie.runs.config import RunConfig
from moie.studies.declaration import Planned

Engine = Literal["ray", "swarm"]


@dataclass(frozen=True)
class Cell:
    """A task and a learner, with all seeds: the runs of one swarm."""

    name: str  # the path below the study's folder: TASK/LEARNER
    runs: tuple[Planned, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(one.config.seed for one in self.runs)


def with_engine(planned: list[Planned], engine: Engine) -> list[Planned]:
    """The runs as an engine makes them. Swarms take the tasks that can run on an accelerator."""
    require(engine in get_args(Engine), "engine", engine, "ray or swarm")
    if engine == "swarm":
        return [replace(one, config=_in_swarm(one.config)) for one in planned]
    for one in planned:
        if n := one.config.environments:
            raise InputError(f"environments is {n}, expected none: they are for --engine swarm")
    return planned


def _in_swarm(config: RunConfig) -> RunConfig:
    if config.task not in TASKS:
        return replace(config, environments=0)
    n = config.environments or environments_of(config.batch_steps)
    check_environments(n, config.batch_steps)
    return replace(config, environments=n)


def cells(planned: list[Planned]) -> list[Cell]:
    """The swarms among the runs."""
    runs: dict[str, list[Planned]] = {}
    for one in planned:
        if one.config.environments:
            runs.setdefault(one.name.rpartition("/")[0], []).append(one)
    return [Cell(name, tuple(some)) for name, some in runs.items()]

"""A part of a study: some of its tasks, algorithms, experts or seeds, or fewer iterations."""

from dataclasses import replace
from typing import Any

from moie.errors import InputError
from moie.learn.config import require
from moie.runs.config import RunConfig
from moie.runs.presets import full_id
from moie.studies.declaration import Planned, Values, as_list


def part_of(planned: list[Planned], **chosen: Values | None) -> list[Planned]:
    """The runs with the chosen values; InputError for a value that no run has."""
    part = planned
    for dimension, given in chosen.items():
        if given is None:
            continue
        values = as_list(given)
        require(bool(values), dimension, given, "at least one")
        if dimension == "tasks":
            values = [full_id(task) for task in values]
        present = {_value(one.config, dimension) for one in planned}
        for value in values:
            expected = ", ".join(str(v) for v in sorted(present, key=str) if v is not None)
            require(value in present, dimension, value, f"some of those in the study: {expected}")
        # learners without experts have no number of them to choose
        part = [p for p in part if _value(p.config, dimension) in (*values, None)]
    if not part:
        asked = [f"{name} {given}" for name, given in chosen.items() if given is not None]
        raise InputError(f"no run of the study has all of {', '.join(asked)}")
    return part


def _value(config: RunConfig, dimension: str) -> Any:
    learner = config.learner
    return {
        "tasks": config.task,
        "algorithms": learner.algorithm,
        "experts": learner.policy.experts if learner.has_experts else None,
        "seeds": config.seed,
    }[dimension]


def with_iterations(planned: list[Planned], iterations: int | None) -> list[Planned]:
    """The same runs, up to another number of iterations."""
    if iterations is None:
        return planned
    return [replace(p, config=replace(p.config, iterations=iterations)) for p in planned]

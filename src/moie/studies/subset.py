"""A part of a study: some of its tasks, algorithms, experts or seeds."""

from collections.abc import Mapping

from moie.errors import InputError, require
from moie.runs.config import RunConfig
from moie.runs.presets import full_id
from moie.studies.declaration import Planned, Values, as_list


def part(planned: list[Planned], dimensions: Mapping[str, Values | None]) -> list[Planned]:
    """The runs with the chosen values of tasks, algorithms, experts and seeds, None for all;
    InputError for a value that no run has."""
    some = planned
    chosen = {name: given for name, given in dimensions.items() if given is not None}
    for dimension, given in chosen.items():
        values = as_list(given)
        require(bool(values), dimension, given, "at least one")
        if dimension == "tasks":
            values = [full_id(task) for task in values]
        present = {_value(one.config, dimension) for one in planned}
        for value in values:
            known = ", ".join(str(v) for v in sorted(present, key=str) if v is not None)
            require(value in present, dimension, value, f"some of those in the study: {known}")
        # learners without experts have no number of them to choose
        some = [p for p in some if _value(p.config, dimension) in (*values, None)]
    if not some:
        asked = ", ".join(f"{name} {given}" for name, given in chosen.items())
        raise InputError(f"no run of the study has all of {asked}")
    return some


def _value(config: RunConfig, dimension: str) -> str | int | None:
    learner = config.learner
    return {
        "tasks": config.task,
        "algorithms": learner.algorithm,
        "experts": learner.policy.experts if learner.has_experts else None,
        "seeds": config.seed,
    }[dimension]

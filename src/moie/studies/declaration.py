"""A study: a named list of grids (tasks, algorithms, experts, seeds, settings), and their runs.

It is declared in Python (`Study`, `Grid`) or in a TOML file with the same names. All mistakes in a
declaration are found before anything starts, and reported together. The simulators of the paper's
tasks need to be installed only for the runs that are to be made (`conduct`).
"""

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moie.errors import InputError, require, shortened
from moie.learn import registry
from moie.runs.config import (
    RunConfig,
    flat,
    settings_of,
    to_json,
    unknown_setting,
    unused_settings,
    with_schedule,
    with_seed,
    with_settings,
)
from moie.runs.presets import full_id, task_preset

OWN = {"task": "tasks", "algorithm": "algorithms", "experts": "experts", "seed": "seeds"}
"""Settings that are dimensions of the grid, and the names of these dimensions."""
MOST_SEEDS, MOST_LEARNERS, MOST_RUNS = 10_000, 1_000, 20_000
"""Limits: seeds of a grid; learners, and runs, of an algorithm on a task; runs in all."""
LONGEST_NAME = 200
"""Bytes of a run's name: files are named after it, and may have 255."""
Values = Sequence[Any] | str | int | float


@dataclass(frozen=True)
class Grid:
    """All combinations of some values."""

    tasks: Values = ()  # gymnasium ids or short names
    algorithms: Values = registry.DEFAULT
    experts: Values = 10  # for the algorithms that have experts; one run for the others
    seeds: Values = 1  # how many, counted from 0, or a list of seeds
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any setting of `moie train`; a list of values is one more dimension."""


@dataclass(frozen=True, repr=False)
class Study:
    """A name, and the runs to make."""

    name: str
    grids: tuple[Grid, ...]
    description: str = ""

    def __repr__(self) -> str:
        count = f"{len(self.grids)} grid{'' if len(self.grids) == 1 else 's'}"
        return f"<study {shortened(self.name)}: {count}>"


@dataclass(frozen=True)
class Planned:
    """One run of a study."""

    name: str  # the path below the study's folder: TASK/LEARNER/sSEED
    config: RunConfig


@dataclass
class Mistakes:
    """The mistakes in a declaration, each once."""

    lines: list[str] = field(default_factory=list)

    def add(self, where: str, error: object) -> None:
        line = f"{where}: {error}"
        if line not in self.lines:
            self.lines.append(line)

    @contextlib.contextmanager
    def caught(self, where: str) -> Iterator[None]:
        """Make an InputError a mistake."""
        try:
            yield
        except InputError as error:
            self.add(where, error)

    def sift(self, where: str, values: Values, find: Callable[[Any], Any]) -> list[Any]:
        """What `find` gives for each value; an InputError of it is a mistake."""
        found = []
        for value in as_list(values):
            with self.caught(where):
                found.append(find(value))
        return found

    def check(self, what: str) -> None:
        """InputError with all mistakes, if there are any."""
        if self.lines:
            count = "a mistake" if len(self.lines) == 1 else f"{len(self.lines)} mistakes"
            raise InputError("\n  ".join([f"{what} has {count}; nothing was started", *self.lines]))


def as_list(values: Values) -> list[Any]:
    """The values; a single one is a list of one."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        return [values]
    return list(values)


def plan(study: Study, mistakes: Mistakes | None = None) -> list[Planned]:
    """Every run of a study; all learners and tasks of the first seed come first."""
    mistakes = Mistakes() if mistakes is None else mistakes
    if not re.fullmatch(r"\w[\w.-]*", study.name):
        mistakes.add("name", f"{shortened(study.name)}, expected letters, digits, '.', '_' and '-'")
    if not study.grids:
        mistakes.add("grid", "there is none")
    planned: dict[str, Planned] = {}
    names: dict[RunConfig, str] = {}
    for grid in study.grids:
        for one in _runs(grid, mistakes):
            if len(planned) == MOST_RUNS and one.name not in planned:
                mistakes.add("grid", f"more than {MOST_RUNS:,} runs in all")
                break
            same = planned.setdefault(one.name, one)
            if same.config != one.config:
                mistakes.add(one.name, "two grids have this run, with different settings")
            elif names.setdefault(one.config, one.name) != one.name:
                mistakes.add(one.name, f"the same run as {names[one.config]}, of another grid")
            if len(one.name.encode()) > LONGEST_NAME:
                error = f"a name of over {LONGEST_NAME} bytes: vary fewer settings"
                mistakes.add(f"{one.name[:60]}...", error)
    mistakes.check(f"study {study.name}")
    return sorted(planned.values(), key=lambda one: one.config.seed)


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


def _runs(grid: Grid, mistakes: Mistakes) -> Iterator[Planned]:
    """The runs of a grid that have no mistake."""
    for name in ("tasks", "algorithms", "experts"):
        if not as_list(getattr(grid, name)):
            mistakes.add(name, "there are none")
    tasks = mistakes.sift("tasks", grid.tasks, lambda t: task_preset(t, installed=False).task)
    algorithms = mistakes.sift("algorithms", grid.algorithms, lambda a: registry.algorithm(a).name)
    dimensions = _dimensions(grid.settings, mistakes)
    seeds = _seeds(grid.seeds, mistakes)
    experts = mistakes.sift("settings", grid.experts, functools.partial(_checked, "experts"))
    for task, algorithm in itertools.product(tasks, algorithms):
        base = task_preset(task, algorithm, installed=False)
        unused = unused_settings(algorithm)
        own = {"experts": experts} if registry.algorithm(algorithm).has_experts else {}
        # settings that an algorithm does not use make no difference to its runs
        used = {name: values for name, values in dimensions.items() if name not in unused}
        varied = [name for name, values in used.items() if len(values) > 1]
        grids = own | used
        if _too_many(grids, seeds, f"of {algorithm} on {base.task}", mistakes):
            continue
        for values in itertools.product(*grids.values()):
            settings = {"algorithm": algorithm, **dict(zip(grids, values, strict=True))}
            with mistakes.caught("settings"):
                config = with_schedule(with_settings(base, settings))
                where = _place(config, varied)
                yield from (Planned(f"{where}/s{n}", with_seed(config, n)) for n in seeds)


def _too_many(
    grids: Mapping[str, list[Any]], seeds: list[int], whose: str, mistakes: Mistakes
) -> bool:
    n_learners = math.prod(map(len, grids.values()))
    for n, most, what in (
        (n_learners * len(seeds), MOST_RUNS, "runs"),
        (n_learners, MOST_LEARNERS, "combinations of settings"),
    ):
        if n > most:
            mistakes.add("settings", f"more than {most:,} {what} {whose}")
            return True
    return False


def _place(config: RunConfig, varied: Sequence[str]) -> str:
    """TASK/LEARNER, the folder of a run; the learner's name has the settings that a grid varies."""
    learner = config.learner
    size = f"-k{learner.policy.experts}" if learner.has_experts else ""
    values = flat(to_json(config)) if varied else {}
    marks = "".join(f"-{name}={values[name]}" for name in varied)
    parts = (config.task, f"{learner.algorithm}{size}{marks}")
    return "/".join(re.sub(r"[^\w.=-]+", "_", part) for part in parts)


def _seeds(seeds: Values, mistakes: Mistakes) -> list[int]:
    if isinstance(seeds, int) and seeds > MOST_SEEDS:
        mistakes.add("seeds", f"{shortened(seeds)}, expected at most {MOST_SEEDS}")
        return []
    values = list(range(seeds)) if isinstance(seeds, int) else as_list(seeds)
    good = [s for s in values if type(s) is int and 0 <= s < 2**63]
    if not good or good != values or isinstance(seeds, bool):
        mistakes.add("seeds", f"{shortened(seeds)}, expected how many (3) or which ([0, 1, 2])")
    elif len(set(good)) < len(good):
        mistakes.add("seeds", f"{shortened(seeds)}, the same seed twice")
    return good


def _dimensions(settings: Mapping[str, Any], mistakes: Mistakes) -> dict[str, list[Any]]:
    """The values of each setting; a setting that is itself a list needs a list of lists."""
    known, base = settings_of(RunConfig), RunConfig("Pendulum-v1")
    dimensions: dict[str, list[Any]] = {}
    for name, value in settings.items():
        if name in OWN:
            mistakes.add("settings", f"{name} is a dimension of its own: write {OWN[name]} = ...")
            continue
        if name not in known:
            mistakes.add("settings", unknown_setting(name, [n for n in known if n not in OWN]))
            continue
        default: Any = functools.reduce(getattr, known[name], base)
        values = as_list(value)
        if isinstance(default, tuple) and not all(isinstance(v, list | tuple) for v in values):
            values = [value]
        if not values:
            mistakes.add("settings", f"{name} is an empty list, expected at least one value")
        if good := mistakes.sift("settings", values, functools.partial(_checked, name)):
            dimensions[name] = good
    return dimensions


def _checked(name: str, value: Any) -> Any:
    """A value that is good by itself; combinations of settings are checked in each run."""
    with_settings(RunConfig("Pendulum-v1"), {"algorithm": "ppo", name: value})
    return value

"""Which runs belong together: one learner on one task, with nothing but the seed between them.

A learner is an algorithm, its number of experts, and those settings that differ among runs of the
same algorithm and number of experts on some task. Runs with different settings never meet in one
mean: they are learners of their own, named by what differs.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moie.comparison.checking import RunFacts, StudyFacts, declared
from moie.comparison.curves import ATTENTION, Curves
from moie.learn import registry
from moie.runs.config import ONLY_SHOWN, flat, unused_settings

MEASURES = (
    "return_sampled",
    "return_mean",
    "return_batch",
    "return_sampled_mjx",
    "return_mean_mjx",
    "distance_sampled",
    "distance_mean",
    ATTENTION,
)
NOT_THE_LEARNER = (
    *ONLY_SHOWN,
    "task",
    "seed",
    "iterations",
    "evaluation_every",
    "evaluation_episodes",
    "algorithm",
    "experts",
)
"""Settings that tell runs of one learner apart, or that its name has anyway."""
LARGEST = 1e100  # larger numbers do not count: the sums of their squares would not be finite
Array = NDArray[np.float64]
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, order=True)
class Learner:
    """An algorithm, and what tells it from others of its kind."""

    rank: int  # rank of the algorithm, in the paper's order
    experts: int  # number of experts, or zero
    differing: tuple[tuple[str, str], ...]
    """Settings that differ among runs of one task, and their values as JSON."""

    @property
    def algorithm(self) -> str:
        return registry.names()[self.rank]

    @property
    def name(self) -> str:
        """Its name in figures and tables."""
        who = registry.algorithm(self.algorithm)
        words = who.title + (f" K={self.experts}" if self.experts else "") + who.title_end
        return ", ".join([words, *(said(name, value) for name, value in self.differing)])


def said(name: str, value: str) -> str:
    """A setting in words: "temperature 0.5"."""
    content = json.loads(value)
    if isinstance(content, bool):
        content = "on" if content else "off"
    elif isinstance(content, list):
        content = "x".join(map(str, content))
    return f"{name.replace('_', ' ')} {content}"


@dataclass(frozen=True)
class Declared:
    """A run as its configuration declares it."""

    name: str
    settings: dict[str, Any]  # all settings by name, without the nesting

    @property
    def task(self) -> str:
        return self.settings["task"]

    @property
    def seed(self) -> int:
        return self.settings["seed"]

    @property
    def steps(self) -> int:
        """Steps that it is to learn from; the first iteration has more where it finds the scale."""
        batches = self.settings["iterations"]
        if self.settings["standardise"]:
            batches += self.settings["scaling_batches"] - 1
        return batches * self.settings["batch_steps"]

    @property
    def base(self) -> tuple[str, int]:
        """Algorithm, and number of experts or zero."""
        algorithm = self.settings["algorithm"]
        has_experts = registry.algorithm(algorithm).has_experts
        return algorithm, self.settings["experts"] if has_experts else 0

    @property
    def identity(self) -> tuple[Any, ...]:
        """Task, learner with all its settings, and seed. Runs with the same identity are one run,
        which may have gone on longer in one place than in another."""
        return self.task, self.base, tuple(sorted(self.choices.items())), self.seed

    @cached_property
    def choices(self) -> dict[str, str]:
        """Settings that could make it another learner, as JSON."""
        ignored = {*NOT_THE_LEARNER, *unused_settings(self.settings["algorithm"])}
        named = {name: value for name, value in self.settings.items() if name not in ignored}
        return {name: json.dumps(value) for name, value in named.items()}


@dataclass(frozen=True)
class Run(Declared):
    """A run that exists, and its evaluations in the order of steps."""

    parameters: int | None
    versions: dict[str, str]
    host: dict[str, Any]
    at: NDArray[np.int64]  # steps that the evaluated policies had learned from
    measured: dict[str, Array] = field(repr=False)
    """MEASURES at these steps; NaN where a number is missing or not finite."""

    @property
    def reached(self) -> int:
        """Steps at its last evaluation; -1 without any."""
        return int(self.at[-1]) if len(self.at) else -1

    @property
    def is_complete(self) -> bool:
        """Whether it has come as far as it was to go."""
        return self.reached >= self.steps


def runs_of(curves: Curves) -> list[Run]:
    """All runs, in order of their names."""
    tables = curves.evaluations()
    return [_run(name, facts, tables[name]) for name, facts in sorted(curves.runs.items())]


def _run(name: str, facts: RunFacts, table: pd.DataFrame) -> Run:
    parameters = table["parameters"].dropna()
    return Run(
        name=name,
        settings=flat(facts["config"]),
        parameters=int(parameters.iloc[0]) if len(parameters) else None,
        versions=facts["versions"],
        host=facts["host"],
        at=table["learned_steps"].to_numpy(dtype=np.int64),
        measured={measure: _numbers(table, measure) for measure in MEASURES},
    )


def _numbers(table: pd.DataFrame, column: str) -> Array:
    """A column, with NaN for whatever is missing, not finite or too large."""
    if column not in table:
        return np.full(len(table), np.nan)
    values = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.abs(values) < LARGEST, values, np.nan)


def plan_of(study: StudyFacts | None) -> list[Declared]:
    """The runs that a study declares; none without a study."""
    return [] if study is None else [Declared(name, settings) for name, settings in declared(study)]


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """All values of each key, in their order."""
    values: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        values[key].append(value)
    return dict(values)


class Grouping:
    """Finds the learner of a run."""

    def __init__(self, runs: Iterable[Declared]):
        """`runs`: all that exist or are planned, because any two of them may differ."""
        self.differing: dict[tuple[str, int], set[str]] = defaultdict(set)
        """Settings that differ, by algorithm and number of experts."""
        self.mixed: dict[tuple[str, int], list[str]] = defaultdict(list)
        """Tasks on which they differ."""
        choices = by_key(((run.task, run.base), run.choices) for run in runs)
        for (task, base), some in choices.items():
            names = set().union(*some)
            differing = {n for n in names if len({one.get(n, "null") for one in some}) > 1}
            self.differing[base] |= differing
            if differing:
                self.mixed[base].append(task)

    def learner(self, run: Declared) -> Learner:
        algorithm, experts = run.base
        choices, names = run.choices, sorted(self.differing[run.base])
        differing = tuple((name, choices.get(name, "null")) for name in names)
        return Learner(registry.names().index(algorithm), experts, differing)

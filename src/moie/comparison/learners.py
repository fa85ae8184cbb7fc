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
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moie.comparison.checking import declared
from moie.comparison.curves import ATTENTION, Curves, is_evaluation
from moie.learn import registry
from moie.runs.config import ONLY_SHOWN, flat, unused_settings

MEASURES = {
    "return_sampled": "return_sampled",
    "return_mean": "return_mean",
    "distance_sampled": "distance_sampled",
    "distance_mean": "distance_mean",
    "attention": ATTENTION,
}
"""What is compared, and the columns that have it."""
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
LARGEST = 1e100
Array = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Learner:
    """Who learns, by what tells it from the others."""

    rank: int
    """Of the algorithm, in the paper's order."""
    experts: int
    """Zero where there are none."""
    differing: tuple[tuple[str, str], ...]
    """Settings that differ among runs of one task, and their values as JSON."""

    @property
    def algorithm(self) -> str:
        return registry.names()[self.rank]

    @property
    def name(self) -> str:
        """As figures and tables have it."""
        who = registry.algorithm(self.algorithm)
        words = who.title + (f" K={self.experts}" if self.experts else "") + who.title_end
        return ", ".join([words, *(said(name, value) for name, value in self.differing)])


def said(name: str, value: str) -> str:
    """A setting in words: "temperature 0.5"."""
    found = json.loads(value)
    if isinstance(found, bool):
        found = "on" if found else "off"
    elif isinstance(found, list):
        found = "x".join(map(str, found))
    return f"{name.replace('_', ' ')} {found}"


@dataclass(frozen=True)
class Declared:
    """A run as its configuration declares it."""

    name: str
    settings: dict[str, Any]
    """All, by name, without the nesting."""

    @property
    def task(self) -> str:
        return self.settings["task"]

    @property
    def seed(self) -> int:
        return self.settings["seed"]

    @property
    def steps(self) -> int:
        """That it is to learn from; the first iteration has more where it finds the scale."""
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
        """Task, learner with all its settings, and seed: runs with the same are one run, which may
        have gone on longer in one place than in another."""
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
    at: NDArray[np.int64]
    """Steps that the evaluated policies had learned from."""
    measured: dict[str, Array] = field(repr=False)
    """MEASURES at these steps; NaN where there is none, or none that is finite."""

    @property
    def reached(self) -> int:
        """Steps at its last evaluation; -1 without any."""
        return int(self.at[-1]) if len(self.at) else -1

    @property
    def is_complete(self) -> bool:
        """As far as it was to go."""
        return self.reached >= self.steps


def runs_of(curves: Curves) -> list[Run]:
    """All runs, in order of their names."""
    rows = curves.rows[is_evaluation(curves.rows)]
    wanted = [n for n in ("run", "learned_steps", "parameters", *MEASURES.values()) if n in rows]
    rows = rows[wanted].sort_values(["run", "learned_steps"])
    tables = dict(tuple(rows.groupby("run")))
    found = []
    for name, known in sorted(curves.runs.items()):
        table = tables.get(name, rows.iloc[:0])
        parameters = table["parameters"].dropna()
        run = Run(
            name=name,
            settings=flat(known["config"]),
            parameters=int(parameters.iloc[0]) if len(parameters) else None,
            versions=known.get("versions") or {},
            host=known.get("host") or {},
            at=table["learned_steps"].to_numpy(dtype=np.int64),
            measured={name: _numbers(table, column) for name, column in MEASURES.items()},
        )
        found.append(run)
    return found


def _numbers(table: pd.DataFrame, column: str) -> Array:
    """A column; NaN for whatever is not finite, or so large that sums of squares would not be."""
    if column not in table:
        return np.full(len(table), np.nan)
    found = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.abs(found) < LARGEST, found, np.nan)


def plan_of(curves: Curves) -> list[Declared]:
    """The runs that the study declares; none without a study."""
    if curves.study is None:
        return []
    return planned_by(curves.study)


def planned_by(study: dict[str, Any]) -> list[Declared]:
    """The runs of a declaration."""
    return [Declared(name, settings) for name, settings in declared(study)]


class Grouping:
    """From a run to its learner."""

    def __init__(self, runs: Iterable[Declared]):
        """`runs`: all that exist or are planned, because all may differ from each other."""
        choices: dict[tuple[str, tuple[str, int]], list[dict[str, str]]] = defaultdict(list)
        for run in runs:
            choices[run.task, run.base].append(run.choices)
        self.differing: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.mixed: dict[tuple[str, int], list[str]] = defaultdict(list)
        """Tasks on which a learner's settings differ."""
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

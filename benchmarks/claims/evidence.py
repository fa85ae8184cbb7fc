"""The published evaluations and policies, as the claims ask for them.

Studies are read from docs/results/STUDY/evaluations.parquet through the same facts that tables and
figures are made of. A study without a file has no runs.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moie.comparison import curves
from moie.comparison.curves import Curves
from moie.comparison.facts.assembly import make_facts
from moie.comparison.facts.schema import Facts, Result, Task
from moie.comparison.learners import Learner
from moie.comparison.selection import is_late
from moie.environments.catalogue import charges
from moie.learn import registry

RESULTS = Path(__file__).parents[2] / "docs" / "results"
STUDIES = ("paper-small", "paper-locomotion", "paper-diffproto", "swarm", "hopper-raw")

Who = tuple[str, int]  # an algorithm, and its number of experts or zero


def name_of(who: Who) -> str:
    """A learner's name in tables, where no settings tell it from others."""
    return Learner(registry.names().index(who[0]), who[1], ()).name


@dataclass(frozen=True)
class Cell:
    """The runs of one learner on one task."""

    result: Result
    task: Task
    actions: frozenset[str]
    """What the simulator got while they learned: "raw" or "clipped" actions."""

    @property
    def is_papers(self) -> bool:
        """Whether the simulator got actions as the paper's did: where it charges for those outside
        their range, they were not clipped."""
        return self.actions == {"raw"} or not charges(self.result["task"])

    @property
    def returns(self) -> NDArray[np.float64]:
        """Final return of each run, sampled actions."""
        return np.asarray(self.result["final"]["return_sampled"]["runs"], dtype=np.float64)

    @property
    def distances(self) -> NDArray[np.float64] | None:
        """Distance walked by each run, in the same evaluations."""
        known = self.result["final"]["distance_sampled"]
        return None if known is None else np.asarray(known["runs"], dtype=np.float64)


@dataclass(frozen=True)
class Study:
    """One published file."""

    curves: Curves

    @cached_property
    def facts(self) -> Facts:
        return make_facts(self.curves, "")

    def cell(self, task: str, who: Who) -> Cell | None:
        """None where nothing was run. Runs with settings of their own are other learners'."""
        for one in self.facts["results"]:
            if (one["task"], one["learner"]) == (task, name_of(who)):
                return self.cell_with(one)
        return None

    def cell_with(self, result: Result) -> Cell:
        """The runs behind one result."""
        (about,) = [known for known in self.facts["tasks"] if known["task"] == result["task"]]
        configs = [self.curves.runs[name]["config"] for name in result["runs"]]
        return Cell(result, about, frozenset(config["actions"] for config in configs))

    def late(self, cell: Cell, column: str) -> NDArray[np.float64]:
        """The mean of a column over the evaluations that make a run's final return, run by run;
        NaN where it was not recorded."""
        tables, means = self.curves.evaluations(), []
        for name in cell.result["runs"]:
            at = tables[name]["learned_steps"].to_numpy(dtype=np.int64)
            budget = cell.task["budget"]
            rows = tables[name][is_late(at, budget) & (at <= budget)]
            known = rows[column].dropna() if column in rows else rows.iloc[:, 0].iloc[:0]
            means.append(float(known.mean()) if len(known) else np.nan)
        return np.asarray(means)


Evidence = dict[str, Study]  # by name of the study


def cell_of(evidence: Evidence, study: str, task: str, who: Who) -> Cell | None:
    """None where nothing was run."""
    return evidence[study].cell(task, who) if study in evidence else None


def read(results: Path = RESULTS) -> Evidence:
    """All of the paper's studies that are published."""
    files = {name: results / name / "evaluations.parquet" for name in STUDIES}
    return {name: Study(curves.read(file)) for name, file in files.items() if file.exists()}

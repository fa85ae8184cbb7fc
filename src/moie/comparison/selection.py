"""Which evaluations of which runs are compared: all of a task at the same number of steps."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moie.comparison.learners import Array, Declared, Grouping, Learner, Run
from moie.errors import InputError

LAST_PART = 0.1
"""Evaluations in this last part of the budget make the final return."""


@dataclass(frozen=True)
class Group:
    """The runs of a learner on a task that are compared, one a seed and in order of seeds."""

    task: str
    learner: Learner
    budget: int
    runs: list[Run]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @property
    def common(self) -> NDArray[np.int64]:
        """Steps at which every run was evaluated."""
        found = self.runs[0].at
        for run in self.runs[1:]:
            found = np.intersect1d(found, run.at)
        return found[found <= self.budget]

    def curve(self, measure: str) -> Array:
        """[runs, common steps]."""
        common = self.common
        rows = [run.measured[measure][np.isin(run.at, common)] for run in self.runs]
        return np.asarray(rows, dtype=np.float64)

    def finals(self, measure: str) -> Array:
        """Of each run: the mean of its evaluations in the last tenth of the budget, or of the last
        one before it."""
        found = []
        for run in self.runs:
            late = last_part(run, self.budget)
            found.append(run.measured[measure][late].mean())
        return np.asarray(found)


def last_part(run: Run, budget: int) -> NDArray[np.int64]:
    """Which of its evaluations make the final return; at least one."""
    within = np.flatnonzero(run.at <= budget)
    late = within[is_late(run.at[within], budget)]
    return late if len(late) else within[-1:]


def is_late(at: NDArray[np.int64], budget: int) -> NDArray[np.bool_]:
    """Whether steps are in the last part of the budget; exact where it begins."""
    return (budget - at < LAST_PART * budget - 1e-3) | (at == budget)


@dataclass
class Selection:
    """What is compared, and what is not and why."""

    runs: list[Run]
    plan: list[Declared]
    grouping: Grouping
    steps: int | None
    """That the caller asked for."""
    budgets: dict[str, int] = field(default_factory=dict)
    """Of each task: the steps at which it is compared."""
    groups: list[Group] = field(default_factory=list)
    """In order of tasks and learners."""
    short: list[Run] = field(default_factory=list)
    """Not that far."""
    broken: list[Run] = field(default_factory=list)
    """Without a finite return where the final one is measured."""
    unmeasured: list[Run] = field(default_factory=list)
    """Without an evaluation in the budget."""
    doubles: list[tuple[Run, list[Run]]] = field(default_factory=list)
    """One that is compared, and others with its settings and seed that are not."""

    @property
    def tasks(self) -> list[str]:
        return list(self.budgets)

    @property
    def learners(self) -> list[Learner]:
        """That are compared on some task."""
        return sorted({group.learner for group in self.groups})

    def group(self, task: str, learner: Learner) -> Group | None:
        for one in self.groups:
            if (one.task, one.learner) == (task, learner):
                return one
        return None

    def on_all(self, tasks: list[str]) -> list[Learner]:
        """Learners that are compared on all of these."""
        return [a for a in self.learners if all(self.group(task, a) for task in tasks)]


def select(runs: list[Run], plan: list[Declared], steps: int | None = None) -> Selection:
    """Every task at its budget: the fewest steps that a complete run of it has, or where none is
    complete, the most that one was evaluated at; with `steps`, the last evaluation up to them."""
    found = Selection(runs, plan, Grouping([*runs, *plan]), steps)
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    for task in sorted(by_task):
        at = np.concatenate([run.at for run in by_task[task]])
        at = at[at <= (np.inf if steps is None else steps)]
        if not len(at):
            found.unmeasured += by_task[task]
            continue
        complete = [run.reached for run in by_task[task] if run.is_complete]
        is_free = steps is None and bool(complete)
        found.budgets[task] = min(complete) if is_free else int(at.max())
        _add_task(found, task, by_task[task])
    if not found.groups:
        asked = "" if steps is None else f" at {steps:,} steps or before"
        why = "no run ends with a finite return" if found.broken else "no run was evaluated"
        raise InputError(f"there is nothing to compare: {why}{asked}")
    return found


def _add_task(found: Selection, task: str, runs: list[Run]) -> None:
    budget = found.budgets[task]
    usable: dict[tuple[Learner, int], list[Run]] = defaultdict(list)
    others: dict[tuple[Learner, int], list[Run]] = defaultdict(list)
    for run in runs:
        key = found.grouping.learner(run), run.seed
        left_out = _left_out(found, run, budget)
        if left_out is None:
            usable[key].append(run)
        else:
            left_out.append(run)
            others[key].append(run)
    learners: dict[Learner, list[Run]] = defaultdict(list)
    for key, some in sorted(usable.items()):
        learners[key[0]].append(some[0])
        spare = [*some[1:], *others[key]]
        if spare:
            found.doubles.append((some[0], spare))
    found.groups += [Group(task, who, budget, of_it) for who, of_it in learners.items()]
    if not learners:  # no run ends with a finite return
        del found.budgets[task]


def _left_out(found: Selection, run: Run, budget: int) -> list[Run] | None:
    """Where a run belongs that is not compared."""
    if not len(run.at) or run.at[0] > budget:
        return found.unmeasured
    if run.reached < budget:
        return found.short
    final = run.measured["return_sampled"][last_part(run, budget)]
    return None if np.isfinite(final).all() else found.broken

"""Which evaluations of which runs are compared: all of a task at the same number of steps."""

from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moie.comparison.learners import Array, Declared, Grouping, Learner, Run, by_key
from moie.errors import InputError

LAST_PART = 0.1  # evaluations in this last part of the budget make the final return
NEARLY = 0.01  # complete runs that differ by less are as long as each other
Place = Literal["compared", "unmeasured", "short", "broken"]
"""Where a run belongs: left out are those without an evaluation in the budget, those that have not
come as far, and those without a finite return where the final one is measured."""


@dataclass(frozen=True)
class Group:
    """The compared runs of a learner on a task: one for each seed, in order of seeds."""

    task: str
    learner: Learner
    budget: int
    runs: list[Run]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @property
    def choices(self) -> dict[str, str]:
        """Settings that its runs share, as JSON."""
        return self.runs[0].choices

    @property
    def common(self) -> NDArray[np.int64]:
        """Steps at which every run was evaluated."""
        steps = reduce(np.intersect1d, [run.at for run in self.runs])
        return steps[steps <= self.budget]

    def curve(self, measure: str) -> Array:
        """[runs, common steps]."""
        common = self.common
        rows = [run.measured[measure][np.isin(run.at, common)] for run in self.runs]
        return np.asarray(rows, dtype=np.float64)

    def finals(self, measure: str) -> Array:
        """For each run, the mean of its evaluations in the last tenth of what is compared, or the
        last evaluation before it."""
        late = [run.measured[measure][last_part(run, self.budget)] for run in self.runs]
        return np.asarray([values.mean() for values in late])


def last_part(run: Run, budget: int) -> NDArray[np.int64]:
    """Indices of the evaluations that make the final return; at least one."""
    within = np.flatnonzero(run.at <= budget)
    late = within[is_late(run.at[within], min(run.reached, budget))]
    return late if len(late) else within[-1:]


def is_late(at: NDArray[np.int64], end: int) -> NDArray[np.bool_]:
    """Whether steps are in the last part of all until the end; exact where it begins."""
    return (end - at < LAST_PART * end - 1e-3) | (at == end)


@dataclass(frozen=True)
class Selection:
    """The runs that are compared, and those that are not and why."""

    runs: list[Run]
    plan: list[Declared]
    grouping: Grouping
    steps: int | None  # steps that the caller asked for
    budgets: dict[str, int]  # steps at which each task is compared
    groups: list[Group]  # groups in order of tasks and learners
    places: dict[Place, list[Run]]  # all runs of each place
    doubles: list[tuple[Run, list[Run]]]
    """A compared run, and others with its settings and seed that are not compared."""

    @property
    def tasks(self) -> list[str]:
        return list(self.budgets)

    @property
    def learners(self) -> list[Learner]:
        """Learners that are compared on some task."""
        return sorted({group.learner for group in self.groups})

    @property
    def compared(self) -> list[Run]:
        return [run for group in self.groups for run in group.runs]

    def on(self, task: str) -> list[Group]:
        return [group for group in self.groups if group.task == task]

    def group(self, task: str, learner: Learner) -> Group | None:
        return next((group for group in self.on(task) if group.learner == learner), None)


def select(runs: list[Run], plan: list[Declared], steps: int | None = None) -> Selection:
    """Compare every task at its budget, with one run for each learner and seed."""
    grouping = Grouping([*runs, *plan])
    of_task = by_key((run.task, run) for run in runs)
    budgets = {task: _budget(some, steps) for task, some in of_task.items()}
    by_task = sorted(runs, key=lambda run: run.task)
    places = by_key((_place(run, budgets[run.task]), run) for run in by_task)
    if "compared" not in places:
        asked = "" if steps is None else f" at {steps:,} steps or before"
        why = "no run ends with a finite return" if "broken" in places else "no run was evaluated"
        raise InputError(f"there is nothing to compare: {why}{asked}")

    def by_seed(some: list[Run]) -> dict[tuple[str, Learner, int], list[Run]]:
        return by_key(((run.task, grouping.learner(run), run.seed), run) for run in some)

    usable = dict(sorted(by_seed(places["compared"]).items()))
    chosen = by_key(((task, who), some[0]) for (task, who, _), some in usable.items())
    counted = {some[0].name for some in usable.values()}
    spare = by_seed([run for run in by_task if run.name not in counted])
    budgets = {task: budgets[task] for task, _ in chosen}
    return Selection(
        runs=runs,
        plan=plan,
        grouping=grouping,
        steps=steps,
        budgets=budgets,
        groups=[Group(task, who, budgets[task], some) for (task, who), some in chosen.items()],
        places=places,
        doubles=[(some[0], spare[key]) for key, some in usable.items() if key in spare],
    )


def _budget(runs: list[Run], steps: int | None) -> int:
    """The fewest steps of a complete run of a task, or as many as one has that is nearly as long;
    if none is complete, the most at which one was evaluated. With `steps`, the last evaluation up
    to them. -1 if there is none."""
    complete = [run.reached for run in runs if run.is_complete]
    if steps is None and complete:
        return max(reached for reached in complete if reached <= min(complete) * (1 + NEARLY))
    at = np.concatenate([run.at for run in runs])
    return int(at[at <= (np.inf if steps is None else steps)].max(initial=-1))


def _is_there(run: Run, budget: int) -> bool:
    """Whether a run has come as far as is compared, or to an end that is nearly as far."""
    far = run.reached * (1 + NEARLY) if run.is_complete else run.reached
    return far >= budget


def _place(run: Run, budget: int) -> Place:
    """Where a run belongs."""
    if not len(run.at) or run.at[0] > budget:
        return "unmeasured"
    if not _is_there(run, budget):
        return "short"
    final = run.measured["return_sampled"][last_part(run, budget)]
    return "compared" if np.isfinite(final).all() else "broken"

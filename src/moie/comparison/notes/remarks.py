"""What restricts a comparison, and what a reader should know of it, in sentences.

Problems restrict what the comparison says; notices do not, or were intended. Each names the runs
that it is about, and where there is one, the way out.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moie.comparison.curves import Overlap
from moie.comparison.learners import Declared, Learner, Run
from moie.comparison.notes.likeness import unlike
from moie.comparison.notes.wording import listed, seeds
from moie.comparison.selection import Selection


class Remarks:
    """Goes through everything that can be wrong with a comparison."""

    def __init__(
        self,
        selection: Selection,
        study: str | None,
        aggregated: list[str],
        overlaps: Sequence[Overlap] = (),
    ):
        """`aggregated`: tasks that are put together; `overlaps`: of merged sources."""
        self.of, self.aggregated, self.overlaps = selection, aggregated, overlaps
        self.way_on = "" if study is None else f"; the study {study}, started again, goes on"
        self.name = {run.name: self._learner(run).name for run in selection.runs}
        self.found: dict[tuple[str, Learner], list[Run]] = defaultdict(list)
        for run in selection.runs:
            self.found[run.task, self._learner(run)].append(run)
        self.planned: dict[tuple[str, Learner], list[Declared]] = defaultdict(list)
        for one in selection.plan:
            self.planned[one.task, self._learner(one)].append(one)

    def _learner(self, run: Declared) -> Learner:
        return self.of.grouping.learner(run)

    def problems(self, unreadable: Sequence[str] = ()) -> list[str]:
        """`unreadable`: what is wrong with runs that could not be read."""
        return [
            *unreadable,
            *self._budget(),
            *self._short(),
            *self._broken(),
            *self._unmeasured(),
            *self._without_runs(),
            *self._missing(),
            *self._doubles(),
            *self._contradictions(),
            *self._mixed(is_planned=False),
            *self._left_out_of_aggregates(),
        ]

    def notices(self) -> list[str]:
        return [
            *self._mixed(is_planned=True),
            *self._continued(),
            *self._cut(),
            *self._unexpected(),
            *unlike(self.of),
        ]

    def _budget(self) -> list[str]:
        """Where the comparison ends before what was planned or asked for."""
        said_of = []
        for task, budget in self.of.budgets.items():
            planned = max((one.steps for one in self.of.plan if one.task == task), default=0)
            if planned > budget:
                why = "" if self.of.steps is None else f" (asked for: {self.of.steps:,})"
                text = (
                    f"{task} is compared at {budget:,} steps{why}, the study asks for {planned:,}"
                )
                said_of.append(text + ("" if why else self.way_on) + ".")
            elif self.of.steps is not None and self._furthest(task) < self.of.steps:
                said_of.append(
                    f"{task} is compared at {budget:,} steps: no run was evaluated at "
                    f"{self.of.steps:,} or later."
                )
        return said_of

    def _cut(self) -> list[str]:
        """Runs that have learned from more steps than are compared."""
        if self.of.steps is not None:
            return []
        said_of = []
        for task, budget in self.of.budgets.items():
            further = {
                group.learner.name: max(run.reached for run in group.runs)
                for group in self.of.groups
                if group.task == task and any(run.reached > budget for run in group.runs)
            }
            if further:
                each = [f"{name} ({steps:,})" for name, steps in further.items()]
                said_of.append(
                    f"{task} is compared at {budget:,} steps, where the shortest complete runs "
                    f"end; more steps than that have {listed(each)}: --steps compares later."
                )
        return said_of

    def _furthest(self, task: str) -> int:
        return max(run.reached for run in self.of.runs if run.task == task)

    def _short(self) -> list[str]:
        """Runs that have not come as far as the others."""
        said_of = []
        for task, budget in self.of.budgets.items():
            for has_ended in (False, True):
                short = [run for run in self.of.short if run.task == task]
                short = [run for run in short if run.is_complete == has_ended]
                if not short:
                    continue
                least = min(run.reached for run in short)
                fewer = f", or compare at fewer steps: --steps {least}" if least > 0 else ""
                if has_ended:
                    why, way = f"they end before {budget:,} steps", "; resume with --iterations"
                else:
                    why, way = f"not evaluated at {budget:,} steps yet", self.way_on
                each = self._each(short)
                said_of.append(
                    f"{task}: left out, because {why}: {each}{way or '; resume them'}{fewer}."
                )
        return said_of

    def _each(self, short: list[Run]) -> str:
        """Learner, seeds, and in brackets how far they have come."""
        by_learner: dict[tuple[str, int], list[int]] = defaultdict(list)
        for run in short:
            by_learner[self.name[run.name], run.reached].append(run.seed)
        return listed(
            [f"{name} {seeds(some)} ({reached:,})" for (name, reached), some in by_learner.items()]
        )

    def _broken(self) -> list[str]:
        """Runs whose return is not finite, where it ends and before."""
        said_of = [
            f"{run.task}: {self.name[run.name]} {seeds([run.seed])} is left out, because it does "
            "not end with a finite return; without such runs a learner looks better than it is."
            for run in self.of.broken
        ]
        for group in self.of.groups:
            for run in group.runs:
                returns = run.measured["return_sampled"][run.at <= group.budget]
                n = int((~np.isfinite(returns)).sum())
                if n:
                    said_of.append(
                        f"{group.task}: {group.learner.name} {seeds([run.seed])} has {n} "
                        f"evaluation{'s' if n > 1 else ''} without a finite return; the learner's "
                        "curve has gaps there."
                    )
        return said_of

    def _unmeasured(self) -> list[str]:
        names = [run.name for run in self.of.unmeasured]
        within = "yet" if self.of.steps is None else f"at {self.of.steps:,} steps or before"
        return [f"Left out, because not evaluated {within}: {listed(names)}."] if names else []

    def _without_runs(self) -> list[str]:
        """Declared, but nothing of it is compared."""
        by_learners: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for task in sorted({task for task, _ in self.planned}):
            of_task = sorted(a for one, a in self.planned if one == task)
            names = [a.name for a in of_task if self.of.group(task, a) is None]
            if names:
                everyone = len(names) == len(of_task)
                by_learners[("every learner",) if everyone else tuple(names)].append(task)
        return [
            f"{listed(tasks)}: {listed(names)} {'is' if len(names) == 1 else 'are'} planned but "
            f"{'has' if len(names) == 1 else 'have'} no run to compare{self.way_on}."
            for names, tasks in by_learners.items()
        ]

    def _expected(self, task: str, learner: Learner) -> set[int]:
        """Seeds: those of the plan, or those that any run has; those of the task, beside a plan."""
        if (task, learner) in self.planned:
            return {one.seed for one in self.planned[task, learner]}
        every = [*self.of.runs, *self.of.plan]
        return {one.seed for one in every if one.task == task or not self.of.plan}

    def _missing(self) -> list[str]:
        by_seeds: dict[tuple[str, str], list[str]] = defaultdict(list)
        for task in self.of.tasks:
            missing: dict[str, list[str]] = defaultdict(list)
            there = sorted(a for one, a in self.found if one == task)
            for learner in there:
                has = {run.seed for run in self.found[task, learner]}
                absent = self._expected(task, learner) - has
                if absent:
                    missing[seeds(absent)].append(learner.name)
            for absent_seeds, names in missing.items():
                everyone = len(names) == len(there) > 1
                who = "every learner" if everyone else listed(names)
                by_seeds[absent_seeds, who].append(task)
        return [
            f"{listed(tasks)}: {absent} of {who} {'are' if 'seeds' in absent else 'is'} "
            f"missing{self.way_on}."
            for (absent, who), tasks in by_seeds.items()
        ]

    def _unexpected(self) -> list[str]:
        said_of, strangers = [], defaultdict(list)
        for (task, learner), found in sorted(self.found.items()):
            if not self.of.plan:
                break
            if (task, learner) not in self.planned:
                strangers[learner.name].append(task)
                continue
            extra = {run.seed for run in found} - self._expected(task, learner)
            if extra:
                said_of.append(
                    f"{task}: {seeds(extra)} of {learner.name} "
                    f"{'are' if len(extra) > 1 else 'is'} not planned, but counted."
                )
        return said_of + [
            f"{name} on {listed(tasks)} is not part of the study."
            for name, tasks in strangers.items()
        ]

    def _doubles(self) -> list[str]:
        return [
            f"{used.task}: {self.name[used.name]} has seed {used.seed} more than once; "
            f"{used.name} is counted, {listed([run.name for run in others])} not."
            for used, others in self.of.doubles
        ]

    def _in_two(self, is_same_length: bool) -> list[tuple[str, Overlap]]:
        """Runs that two sources had, as "Walk-v0: moie K=10 seeds 0-2 are", and what all of them
        have in common."""
        by_name = {run.name: run for run in self.of.runs}
        found: dict[tuple[str, str, Overlap], list[int]] = defaultdict(list)
        for one in self.overlaps:
            if (one.reached == one.other_reached) == is_same_length:
                run = by_name[one.run]
                found[run.task, self.name[run.name], replace(one, run="")].append(run.seed)
        return [
            (f"{task}: {name} {seeds(some)} {'are' if len(set(some)) > 1 else 'is'}", one)
            for (task, name, one), some in found.items()
        ]

    def _continued(self) -> list[str]:
        """Of two lengths of a run the longer counts."""
        return [
            f"{what} both in {one.other} ({_evaluated(one.other_reached)}) and in {one.source} "
            f"({_evaluated(one.reached)}); the longer one counts."
            for what, one in self._in_two(is_same_length=False)
        ]

    def _contradictions(self) -> list[str]:
        """The same settings and seed, the same steps, but other numbers."""
        return [
            f"{what} both in {one.source} and in {one.other}, with the same settings and "
            f"{_evaluated(one.reached)}, but their numbers differ; those of {one.source} count."
            for what, one in self._in_two(is_same_length=True)
        ]

    def _mixed(self, is_planned: bool) -> list[str]:
        """Runs whose settings differ are learners of their own; a study may want that."""
        said_of = []
        for base, tasks in self.of.grouping.mixed.items():
            mine = [key for key in self.found if (key[1].algorithm, key[1].experts) == base]
            if all(key in self.planned for key in mine) != is_planned:
                continue
            every = {a for _, a in (*self.found, *self.planned) if (a.algorithm, a.experts) == base}
            plain = Learner(min(every).rank, base[1], ()).name
            names = listed(
                [name.replace("_", " ") for name in sorted(self.of.grouping.differing[base])]
            )
            said_of.append(
                f"Mixed settings: {plain} has runs with different {names} on "
                f"{listed(tasks)}; they are compared as {listed([a.name for a in sorted(every)])}."
            )
        return said_of

    def _left_out_of_aggregates(self) -> list[str]:
        """A learner counts over all tasks only if it has runs on all that are put together."""
        by_tasks: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for learner in self.of.learners:
            absent = tuple(t for t in self.aggregated if self.of.group(t, learner) is None)
            if absent:
                by_tasks[absent].append(learner.name)
        return [
            f"Left out of the aggregates over all tasks, without a run to compare on "
            f"{listed(tasks)}: {listed(names)}."
            for tasks, names in by_tasks.items()
        ]


def _evaluated(reached: int) -> str:
    return "no evaluation yet" if reached < 0 else f"{reached:,} steps"

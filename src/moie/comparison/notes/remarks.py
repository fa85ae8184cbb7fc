"""Sentences on what restricts a comparison, and on what a reader should know about it.

Problems restrict what the comparison says; notices do not, or were intended. Each names the runs
that it is about, and the way out where there is one.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from moie.comparison.curves import Curves
from moie.comparison.learners import Declared, Learner, Run, by_key
from moie.comparison.notes.likeness import differences
from moie.comparison.notes.simulators import simulators
from moie.comparison.notes.wording import joined, seeds
from moie.comparison.selection import Selection


class Remarks:
    """Everything that can be wrong with a comparison, or worth knowing."""

    def __init__(self, selection: Selection, curves: Curves, aggregated: list[str]):
        """`aggregated`: tasks that the aggregates cover."""
        self.of, self.curves, self.aggregated = selection, curves, aggregated
        study = curves.study
        self.way_on = f"; the study {study['name']}, started again, goes on" if study else ""
        self.name = {run.name: self._learner(run).name for run in selection.runs}
        self.existing = by_key(((run.task, self._learner(run)), run) for run in selection.runs)
        self.planned = by_key(((one.task, self._learner(one)), one) for one in selection.plan)

    def _learner(self, run: Declared) -> Learner:
        return self.of.grouping.learner(run)

    def _who(self, run: Run) -> str:
        """ "Walk-v0: moie K=10 seed 0"."""
        return f"{run.task}: {self.name[run.name]} seed {run.seed}"

    def problems(self) -> list[str]:
        return [
            *(f"A run is left out: {what}." for what in self.curves.unreadable),
            *self._left_out_rows(),
            *self._budget(),
            *self._short(),
            *self._broken(),
            *self._gaps(),
            *self._unmeasured(),
            *self._without_runs(),
            *self._missing(),
            *self._doubles(),
            *self._in_two(is_same_length=True),
            *self._mixed(is_planned=False),
            *self._left_out_of_aggregates(),
            *self._without_scale(),
        ]

    def notices(self) -> list[str]:
        return [
            *self._mixed(is_planned=True),
            *self._in_two(is_same_length=False),
            *self._cut(),
            *self._nearly(),
            *self._unexpected(),
            *simulators(self.of),
            *differences(self.of),
        ]

    def _budget(self) -> Iterator[str]:
        """Tasks whose comparison ends before what was planned or asked for."""
        asked = self.of.steps
        for task, budget in self.of.budgets.items():
            planned = max((one.steps for one in self.of.plan if one.task == task), default=0)
            furthest = max(run.reached for run in self.of.runs if run.task == task)
            text = f"{task} is compared at {budget:,} steps"
            if planned > budget and asked is None:
                yield f"{text}, the study asks for {planned:,}{self.way_on}."
            elif planned > budget:
                yield f"{text} (asked for: {asked:,}), the study asks for {planned:,}."
            elif asked is not None and furthest < asked:
                yield f"{text}: no run was evaluated at {asked:,} or later."

    def _cut(self) -> Iterator[str]:
        """Runs that have learned from more steps than are compared."""
        for task, budget in self.of.budgets.items() if self.of.steps is None else ():
            furthest = [
                (group.learner.name, max(run.reached for run in group.runs))
                for group in self.of.on(task)
            ]
            further = [f"{name} ({steps:,})" for name, steps in furthest if steps > budget]
            if further:
                yield (
                    f"{task} is compared at {budget:,} steps, where the shortest complete runs "
                    f"end; more steps than that have {joined(further)}: --steps compares later."
                )

    def _nearly(self) -> Iterator[str]:
        """Complete runs that count as equally long, and are not quite."""
        found = []
        for task, budget in self.of.budgets.items():
            ends = by_key(
                (min(run.reached, budget), group.learner.name)
                for group in self.of.on(task)
                for run in group.runs
            )
            if len(ends) > 1:
                each = [f"{end:,} ({joined(dict.fromkeys(ends[end]))})" for end in sorted(ends)]
                found.append((joined(each), task))
        for each_end, tasks in by_key(found).items():
            are = "are" if len(tasks) > 1 else "is"
            yield f"{joined(tasks)} {are} compared at nearly the same steps: {each_end}."

    def _short(self) -> Iterator[str]:
        """Runs that have not come as far as the others."""
        by_end = by_key(
            ((run.task, run.is_complete), run) for run in self.of.places.get("short", [])
        )
        for (task, has_ended), short in sorted(by_end.items()):
            if task not in self.of.budgets:
                continue
            budget, least = self.of.budgets[task], min(run.reached for run in short)
            if has_ended:
                why, way = f"they end before {budget:,} steps", "; resume with --iterations"
            else:
                why, way = f"not evaluated at {budget:,} steps yet", self.way_on or "; resume them"
            fewer = f", or compare at fewer steps: --steps {least}" if least > 0 else ""
            by_learner = by_key(((self.name[run.name], run.reached), run.seed) for run in short)
            each = joined(
                f"{name} {seeds(some)} ({reached:,})"
                for (name, reached), some in by_learner.items()
            )
            yield f"{task}: left out, because {why}: {each}{way}{fewer}."

    def _broken(self) -> list[str]:
        """Runs whose final return is not finite."""
        return [
            f"{self._who(run)} is left out, because it does not end with a finite return; without "
            "such runs a learner looks better than it is."
            for run in self.of.places.get("broken", [])
        ]

    def _gaps(self) -> Iterator[str]:
        """Compared runs with returns that are not finite before the final one."""
        for group in self.of.groups:
            for run in group.runs:
                returns = run.measured["return_sampled"][run.at <= group.budget]
                n = int((~np.isfinite(returns)).sum())
                if n:
                    yield (
                        f"{self._who(run)} has {n} evaluation{'s' if n > 1 else ''} without a "
                        "finite return; the learner's curve has gaps there."
                    )

    def _unmeasured(self) -> list[str]:
        names = [run.name for run in self.of.places.get("unmeasured", [])]
        within = "yet" if self.of.steps is None else f"at {self.of.steps:,} steps or before"
        return [f"Left out, because not evaluated {within}: {joined(names)}."] if names else []

    def _without_runs(self) -> list[str]:
        """Learners that are planned, but have no run to compare."""
        absent = []
        for task, learners in by_key(sorted(self.planned)).items():
            names = tuple(a.name for a in learners if self.of.group(task, a) is None)
            if names:
                everyone = len(names) == len(learners)
                absent.append((("every learner",) if everyone else names, task))
        return [
            f"{joined(tasks)}: {joined(names)} "
            f"{'is planned but has' if len(names) == 1 else 'are planned but have'} no run to "
            f"compare{self.way_on}."
            for names, tasks in by_key(absent).items()
        ]

    def _expected(self, task: str, learner: Learner) -> set[int]:
        """Seeds of the plan. Of a learner that is not planned, those that other runs of the task
        have; without any plan, those that any run has."""
        if (task, learner) in self.planned:
            return {one.seed for one in self.planned[task, learner]}
        return {run.seed for run in self.of.runs if run.task == task or not self.of.plan}

    def _missing(self) -> list[str]:
        missing = []
        for task, learners in by_key(sorted(self.existing)).items():
            absent = []
            for learner in learners if task in self.of.budgets else []:
                has = {run.seed for run in self.existing[task, learner]}
                lacking = tuple(sorted(self._expected(task, learner) - has))
                way_on = self.way_on if (task, learner) in self.planned else ""
                absent.append(((lacking, way_on), learner.name))
            for some, names in by_key(absent).items():
                everyone = len(names) == len(learners) > 1
                missing.append(((*some, "every learner" if everyone else joined(names)), task))
        return [
            f"{joined(tasks)}: {seeds(lacking)} of {who} {'are' if len(lacking) > 1 else 'is'} "
            f"missing{way_on}."
            for (lacking, way_on, who), tasks in by_key(missing).items()
            if lacking
        ]

    def _unexpected(self) -> Iterator[str]:
        if not self.of.plan:
            return
        for task, learner in sorted(self.existing.keys() & self.planned.keys()):
            has = {run.seed for run in self.existing[task, learner]}
            extra = has - self._expected(task, learner)
            if extra:
                yield (
                    f"{task}: {seeds(extra)} of {learner.name} "
                    f"{'are' if len(extra) > 1 else 'is'} not planned, but counted."
                )
        strangers = sorted(self.existing.keys() - self.planned.keys())
        for name, tasks in by_key((learner.name, task) for task, learner in strangers).items():
            yield f"{name} on {joined(tasks)} is not part of the study."

    def _doubles(self) -> list[str]:
        return [
            f"{used.task}: {self.name[used.name]} has seed {used.seed} more than once; "
            f"{used.name} is counted, {joined(run.name for run in others)} not."
            for used, others in self.of.doubles
        ]

    def _in_two(self, is_same_length: bool) -> Iterator[str]:
        """Runs that two sources had: with as many steps but different numbers, or with more steps
        in one of them."""
        by_name = {run.name: run for run in self.of.runs}
        runs = [(one, by_name[one.run]) for one in self.curves.overlaps]
        overlaps = by_key(
            ((run.task, self.name[run.name], replace(one, run="")), run.seed)
            for one, run in runs
            if (one.reached == one.other_reached) == is_same_length
        )
        for (task, name, one), some in overlaps.items():
            who = f"{task}: {name} {seeds(some)} {'are' if len(set(some)) > 1 else 'is'}"
            if is_same_length:
                yield (
                    f"{who} both in {one.source} and in {one.other}, with the same settings and "
                    f"{_evaluated(one.reached)}, but their numbers differ; those of {one.source} "
                    "count."
                )
            else:
                yield (
                    f"{who} both in {one.other} ({_evaluated(one.other_reached)}) and in "
                    f"{one.source} ({_evaluated(one.reached)}); the longer one counts."
                )

    def _mixed(self, is_planned: bool) -> Iterator[str]:
        """Runs whose settings differ are separate learners; a study may want that."""
        for base, tasks in self.of.grouping.mixed.items():
            existing, planned = (
                {(task, a) for task, a in keys if (a.algorithm, a.experts) == base}
                for keys in (self.existing, self.planned)
            )
            if (existing <= planned) == is_planned:
                every = sorted({learner for _, learner in existing | planned})
                plain = replace(every[0], differing=()).name
                settings = sorted(self.of.grouping.differing[base])
                yield (
                    f"Mixed settings: {plain} has runs with different "
                    f"{joined(name.replace('_', ' ') for name in settings)} on {joined(tasks)}; "
                    f"they are compared as {joined(learner.name for learner in every)}."
                )

    def _left_out_rows(self) -> list[str]:
        """Runs that lack the same rows are named together."""
        by_problem: dict[str, list[str]] = {}
        for what in self.curves.damaged:
            file, _, problem = what.partition(", ")
            by_problem.setdefault(problem, []).append(file)
        return [
            f"Rows are left out: {files[0]}, {problem}."
            if len(files) == 1
            else f"Rows are left out of {len(files)} files, {files[0]} among them: {problem}."
            for problem, files in by_problem.items()
        ]

    def _left_out_of_aggregates(self) -> list[str]:
        """A learner counts over all tasks only if it has runs on all that are aggregated."""
        absent = [
            (tuple(task for task in self.aggregated if self.of.group(task, a) is None), a.name)
            for a in self.of.learners
        ]
        return [
            f"Left out of the aggregates over all tasks, without a run to compare on "
            f"{joined(tasks)}: {joined(names)}."
            for tasks, names in by_key(absent).items()
            if tasks
        ]

    def _without_scale(self) -> list[str]:
        return [
            f"{task} is left out of the aggregates: there is no evaluation of untrained policies, "
            "or no learner became clearly better than them."
            for task in self.of.tasks
            if task not in self.aggregated
        ]


def _evaluated(reached: int) -> str:
    return "no evaluation yet" if reached < 0 else f"{reached:,} steps"

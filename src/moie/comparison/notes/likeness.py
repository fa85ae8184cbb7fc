"""In what compared runs are not alike: evaluations, settings, versions, machines, numbers."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from moie.comparison.learners import Run, said
from moie.comparison.notes.wording import host_name, listed, runs, seeds
from moie.comparison.selection import Group, Selection, is_late, last_part
from moie.learn import registry


def unlike(of: Selection) -> list[str]:
    """All of that, in sentences."""
    return [
        *_schedules(of),
        *_last(of),
        *_episodes(of),
        *_distances(of),
        *_attention(of),
        *_sizes(of),
        *_settings_between_learners(of),
        *_settings_between_tasks(of),
        *_versions(of),
        *_hosts(of),
        *_single(of),
    ]


def _schedules(of: Selection) -> list[str]:
    """Runs and learners that were evaluated more or less often."""
    said_of = []
    for group in of.groups:
        every = sorted({run.settings["evaluation_every"] for run in group.runs})
        if len(every) > 1:
            said_of.append(
                f"{group.task}: runs of {group.learner.name} were evaluated every "
                f"{listed([str(n) for n in every])} iterations; its curve has the "
                f"{len(group.common)} steps that all have."
            )
    for task in of.tasks:
        counts = _differing(of, task, lambda group, run: len(last_part(run, group.budget)))
        if counts:
            each = [f"{n} ({names})" for n, names in counts.items()]
            said_of.append(
                f"{task}: final returns are means of different numbers of evaluations: "
                f"{listed(each)}; those of fewer vary more."
            )
    return said_of


def _differing(of: Selection, task: str, number: Callable[[Group, Run], int]) -> dict[int, str]:
    """A number that compared runs of a task have, and the learners that have it; nothing where all
    have the same."""
    found: dict[int, set[str]] = defaultdict(set)
    for group in of.groups:
        for run in group.runs if group.task == task else []:
            found[number(group, run)].add(group.learner.name)
    each = {n: listed(sorted(names)) for n, names in sorted(found.items())}
    return each if len(each) > 1 else {}


def _last(of: Selection) -> list[str]:
    """Final returns that are not of the last part of the steps."""
    said_of = []
    for group in of.groups:
        early: dict[int, list[int]] = defaultdict(list)
        for run in group.runs:
            last = run.at[last_part(run, group.budget)][-1:]
            if not is_late(last, group.budget).all():
                early[int(last[0])].append(run.seed)
        for last_at, some in sorted(early.items()):
            said_of.append(
                f"{group.task}: {group.learner.name} {seeds(some)} "
                f"{'were' if len(some) > 1 else 'was'} last evaluated at {last_at:,} of "
                f"{group.budget:,} steps; this counts as the final return."
            )
    return said_of


def _episodes(of: Selection) -> list[str]:
    said_of = []
    for task in of.tasks:
        counts = _differing(of, task, lambda _, run: run.settings["evaluation_episodes"])
        if counts:
            each = [f"{n} episodes ({names})" for n, names in counts.items()]
            said_of.append(f"{task}: evaluations have {listed(each)}.")
    return said_of


def _distances(of: Selection) -> list[str]:
    """Locomotion of which some runs do not say how far it went."""
    said_of = []
    for task in of.tasks:
        groups = [group for group in of.groups if group.task == task]
        known = [np.isfinite(group.finals("distance_sampled")) for group in groups]
        if not any(one.any() for one in known):
            continue
        for group, has in zip(groups, known, strict=True):
            if not has.all():
                some = [seed for seed, one in zip(group.seeds, has, strict=True) if not one]
                said_of.append(
                    f"{task}: the distance of {group.learner.name} is left out, because it is not "
                    f"known of {seeds(some)}."
                )
    return said_of


def _attention(of: Selection) -> list[str]:
    """Mixtures of which some runs, or all, did not record how many lines one has to look at, beside
    others that did."""
    said_of, silent = [], defaultdict(list)
    with_experts = [g for g in of.groups if registry.algorithm(g.learner.algorithm).has_experts]
    known = [np.isfinite(group.finals("attention")) for group in with_experts]
    if not any(one.any() for one in known):
        return []
    for group, has in zip(with_experts, known, strict=True):
        if not has.any():
            silent[group.learner.name].append(group.task)
        elif not has.all():
            some = [seed for seed, one in zip(group.seeds, has, strict=True) if one]
            others = set(group.seeds) - set(some)
            said_of.append(
                f"{group.task}: the attention of {group.learner.name} is that of {seeds(some)}; "
                f"{seeds(others)} did not record it."
            )
    each = [f"{name} on {listed(tasks)}" for name, tasks in silent.items()]
    return said_of + ([f"Attention was not recorded for {'; '.join(each)}."] if each else [])


def _sizes(of: Selection) -> list[str]:
    """A learner's policies have the same number of parameters, or something is wrong."""
    said_of = []
    for group in of.groups:
        found = {run.parameters for run in group.runs if run.parameters is not None}
        if len(found) > 1:
            said_of.append(
                f"{group.task}: policies of {group.learner.name} have "
                f"{listed([f'{n:,}' for n in sorted(found)])} parameters; the largest counts."
            )
    return said_of


def _settings_between_learners(of: Selection) -> list[str]:
    """Settings that learners of a task share, and that differ all the same: what looks like the
    algorithm or the number of experts may be them. Those that a learner's name has are known."""
    same: dict[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], list[str]] = defaultdict(list)
    for task in of.tasks:
        groups = [group for group in of.groups if group.task == task]
        for name in sorted(set().union(*(group.runs[0].choices for group in groups))):
            by_value: dict[str, list[str]] = defaultdict(list)
            for group in groups:
                choices = group.runs[0].choices
                if name in choices and name not in dict(group.learner.differing):
                    by_value[choices[name]].append(group.learner.name)
            if len(by_value) > 1:
                values = tuple((value, tuple(names)) for value, names in by_value.items())
                same[name, values].append(task)
    return [
        f"{listed(tasks)}: learners differ in {name.replace('_', ' ')}, too: "
        + "; ".join(f"{said(name, value)} ({listed(names)})" for value, names in values)
        + "."
        for (name, values), tasks in same.items()
    ]


def _settings_between_tasks(of: Selection) -> list[str]:
    """A learner may have other settings on other tasks, as the paper's has."""
    same: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for learner in of.learners:
        groups = [group for group in of.groups if group.learner == learner]
        names = sorted(set().union(*(group.runs[0].choices for group in groups)))
        for name in names:
            of_task = [(g.task, g.runs[0].choices.get(name, "null")) for g in groups]
            if len({value for _, value in of_task}) > 1:
                same[tuple((said(name, value), task) for task, value in of_task)].append(
                    learner.name
                )
    said_of = []
    for differing, names in same.items():
        by_value: dict[str, list[str]] = defaultdict(list)
        for value, task in differing:
            by_value[value].append(task)
        each = [f"{value} on {listed(tasks)}" for value, tasks in by_value.items()]
        said_of.append(f"Settings differ between tasks: {listed(names)}: {'; '.join(each)}.")
    return said_of


def _used(of: Selection) -> list[Run]:
    return [run for group in of.groups for run in group.runs]


def _versions(of: Selection) -> list[str]:
    said_of = []
    for package in sorted(set().union(*(run.versions for run in _used(of)))):
        counts: dict[str, int] = defaultdict(int)
        for run in _used(of):
            counts[run.versions.get(package, "none")] += 1
        if len(counts) > 1:
            each = [f"{version} in {runs(n)}" for version, n in sorted(counts.items())]
            said_of.append(f"Versions of {package} differ: {listed(each)}.")
    return said_of


def _hosts(of: Selection) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    for run in _used(of):
        counts[host_name(run.host)] += 1
    if len(counts) < 2:
        return []
    each = [f"{name}: {runs(n)}" for name, n in sorted(counts.items())]
    return [f"Machines differ, or are not recorded: {'; '.join(each)}."]


def _single(of: Selection) -> list[str]:
    """One run says nothing about how much runs differ."""
    single = [group for group in of.groups if len(group.runs) == 1]
    if not single:
        return []
    if len(single) == len(of.groups):
        return ["Every learner has one seed a task: there are no intervals."]
    by_learner: dict[str, list[str]] = defaultdict(list)
    for group in single:
        by_learner[group.learner.name].append(group.task)
    each = [f"{name} on {listed(tasks)}" for name, tasks in by_learner.items()]
    return [f"No interval, because there is one seed: {'; '.join(each)}."]

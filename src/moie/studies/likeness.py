"""In what compared runs are not alike: evaluations, settings, versions, machines, numbers."""

from collections import defaultdict

from moie.studies.grouping import Run, said
from moie.studies.selection import Selection, is_late, last_part
from moie.studies.wording import host_name, listed, runs, seeds


def unlike(of: Selection) -> list[str]:
    """All of that, in sentences."""
    return [
        *_evaluations(of),
        *_settings_between_tasks(of),
        *_versions(of),
        *_hosts(of),
        *_single(of),
    ]


def _evaluations(of: Selection) -> list[str]:
    """Evaluations that are not alike."""
    said_of = []
    for group in of.groups:
        every = sorted({run.settings["evaluation_every"] for run in group.runs})
        if len(every) > 1:
            said_of.append(
                f"{group.task}: runs of {group.learner.name} were evaluated every "
                f"{listed([str(n) for n in every])} iterations; its curve has the "
                f"{len(group.common)} steps that all have."
            )
        for run in group.runs:
            last = run.at[last_part(run, group.budget)][-1:]
            if not is_late(last, group.budget).all():
                said_of.append(
                    f"{group.task}: {group.learner.name} {seeds([run.seed])} was last "
                    f"evaluated at {last[0]:,} of {group.budget:,} steps; this counts as its "
                    "final return."
                )
    return said_of + _episodes(of)


def _episodes(of: Selection) -> list[str]:
    said_of = []
    for task in of.tasks:
        by_count: dict[int, set[str]] = defaultdict(set)
        for group in of.groups:
            for run in group.runs if group.task == task else []:
                by_count[run.settings["evaluation_episodes"]].add(group.learner.name)
        if len(by_count) > 1:
            each = [
                f"{n} episodes ({listed(sorted(names))})" for n, names in sorted(by_count.items())
            ]
            said_of.append(f"{task}: evaluations have {listed(each)}.")
    return said_of


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

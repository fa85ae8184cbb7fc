"""How compared runs differ: in evaluations, settings, versions, machines and what they recorded."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from moie.comparison.curves import ATTENTION
from moie.comparison.learners import Run, by_key, said
from moie.comparison.notes.wording import host_name, joined, runs, seeds
from moie.comparison.selection import Group, Selection, is_late, last_part
from moie.environments.catalogue import charges
from moie.learn import registry

Values = tuple[tuple[str, tuple[str, ...]], ...]
"""Values of a setting, and the names that have each of them."""


def differences(of: Selection) -> list[str]:
    """All differences, in sentences."""
    return [
        *_clipped(of),
        *_schedules(of),
        *_evaluations(of),
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


def _clipped(of: Selection) -> Iterator[str]:
    """Learners whose actions were clipped where the simulator charges for those outside their
    range."""
    clipped = by_key(
        (group.task, group.learner.name)
        for group in of.groups
        if charges(group.task) and group.runs[0].settings["actions"] != "raw"
    )
    whose = {
        task: names if len(names) < len(of.on(task)) else [] for task, names in clipped.items()
    }
    for names, tasks in by_key((tuple(names), task) for task, names in whose.items()).items():
        yield (
            f"{joined(tasks)}: actions{f' of {joined(names)}' if names else ''} were clipped to "
            "their range. The paper's agents are charged for what lies outside of it, so these "
            "returns are not comparable with the paper's."
        )


def _schedules(of: Selection) -> Iterator[str]:
    """Learners whose runs were not evaluated equally often."""
    for group in of.groups:
        every = sorted({run.settings["evaluation_every"] for run in group.runs})
        if len(every) > 1:
            yield (
                f"{group.task}: runs of {group.learner.name} were evaluated every "
                f"{joined(map(str, every))} iterations; its curve has the "
                f"{len(group.common)} steps that all have."
            )


def _evaluations(of: Selection) -> Iterator[str]:
    for task, counts in _differing(of, lambda group, run: len(last_part(run, group.budget))):
        each = joined(f"{n} ({names})" for n, names in counts)
        yield (
            f"{task}: final returns are means of different numbers of evaluations: {each}; those "
            "of fewer vary more."
        )


def _episodes(of: Selection) -> Iterator[str]:
    for task, counts in _differing(of, lambda _, run: run.settings["evaluation_episodes"]):
        each = joined(f"{n} episodes ({names})" for n, names in counts)
        yield f"{task}: evaluations have {each}."


def _differing(
    of: Selection, number: Callable[[Group, Run], int]
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Tasks whose compared runs differ in a number, with its values and the learners that have
    them."""
    for task in of.tasks:
        pairs = ((number(g, run), g.learner.name) for g in of.on(task) for run in g.runs)
        names = by_key(pairs)
        if len(names) > 1:
            yield task, [(n, joined(sorted(set(some)))) for n, some in sorted(names.items())]


def _last(of: Selection) -> Iterator[str]:
    """Final returns that are not from the last part of the steps."""
    for group in of.groups:
        last = [(run.at[last_part(run, group.budget)][-1], run.seed) for run in group.runs]
        early = by_key((at, seed) for at, seed in last if not is_late(at, group.budget))
        for at, some in sorted(early.items()):
            yield (
                f"{group.task}: {group.learner.name} {seeds(some)} "
                f"{'were' if len(some) > 1 else 'was'} last evaluated at {at:,} of "
                f"{group.budget:,} steps; this counts as the final return."
            )


def _recorded(groups: list[Group], measure: str) -> list[tuple[Group, list[int], list[int]]]:
    """Seeds of each group with and without a measure; nothing where no run has it."""
    each = []
    for group in groups:
        known, its_seeds = np.isfinite(group.finals(measure)), np.asarray(group.seeds)
        each.append((group, its_seeds[known].tolist(), its_seeds[~known].tolist()))
    return each if any(known for _, known, _ in each) else []


def _distances(of: Selection) -> list[str]:
    """Locomotion learners some of whose runs do not say how far they went."""
    return [
        f"{task}: the distance of {group.learner.name} is left out, because it is not known of "
        f"{seeds(unknown)}."
        for task in of.tasks
        for group, _, unknown in _recorded(of.on(task), "distance_sampled")
        if unknown
    ]


def _attention(of: Selection) -> Iterator[str]:
    """Mixtures whose runs did not all record how many lines one has to look at, though others
    did."""
    mixtures = [g for g in of.groups if registry.algorithm(g.learner.algorithm).has_experts]
    each = _recorded(mixtures, ATTENTION)
    for group, known, unknown in each:
        if known and unknown:
            yield (
                f"{group.task}: the attention of {group.learner.name} is that of {seeds(known)}; "
                f"{seeds(unknown)} did not record it."
            )
    silent = [group for group, known, _ in each if not known]
    if silent:
        yield f"Attention was not recorded for {_learners_on_tasks(silent)}."


def _learners_on_tasks(groups: list[Group]) -> str:
    by_learner = by_key((group.learner.name, group.task) for group in groups)
    return "; ".join(f"{name} on {joined(tasks)}" for name, tasks in by_learner.items())


def _sizes(of: Selection) -> Iterator[str]:
    """A learner's policies have the same number of parameters, or something is wrong."""
    for group in of.groups:
        sizes = {run.parameters for run in group.runs if run.parameters is not None}
        if len(sizes) > 1:
            yield (
                f"{group.task}: policies of {group.learner.name} have "
                f"{joined(f'{n:,}' for n in sorted(sizes))} parameters; the largest counts."
            )


def _settings_between_learners(of: Selection) -> Iterator[str]:
    """Settings in which the learners of a task differ besides those in their names: what looks like
    an effect of the algorithm or the number of experts may be one of the setting."""
    differing = ((one, task) for task in of.tasks for one in _differing_settings(of.on(task)))
    for (setting, values), tasks in by_key(differing).items():
        each = "; ".join(f"{said(setting, value)} ({joined(names)})" for value, names in values)
        yield f"{joined(tasks)}: learners differ in {setting.replace('_', ' ')}, too: {each}."


def _differing_settings(groups: list[Group]) -> Iterator[tuple[str, Values]]:
    """Settings in which learners of a task differ, and who has which value."""
    for setting in sorted(set().union(*(group.choices for group in groups))):
        by_value = by_key(
            (group.choices[setting], group.learner.name)
            for group in groups
            if setting in group.choices and setting not in dict(group.learner.differing)
        )
        if len(by_value) > 1:
            yield setting, tuple((value, tuple(names)) for value, names in by_value.items())


def _settings_between_tasks(of: Selection) -> Iterator[str]:
    """A learner may have different settings on different tasks, as the paper's has."""
    learners: list[tuple[Values, str]] = []
    for learner in of.learners:
        groups = [group for group in of.groups if group.learner == learner]
        for name in sorted(set().union(*(group.choices for group in groups))):
            tasks = by_key((said(name, g.choices.get(name, "null")), g.task) for g in groups)
            if len(tasks) > 1:
                values = tuple((value, tuple(some)) for value, some in tasks.items())
                learners.append((values, learner.name))
    for values, names in by_key(learners).items():
        each = "; ".join(f"{value} on {joined(some)}" for value, some in values)
        yield f"Settings differ between tasks: {joined(names)}: {each}."


def _versions(of: Selection) -> Iterator[str]:
    for package in sorted(set().union(*(run.versions for run in of.compared))):
        counts = Counter(run.versions.get(package, "none") for run in of.compared)
        if len(counts) > 1:
            each = joined(f"{version} in {runs(n)}" for version, n in sorted(counts.items()))
            yield f"Versions of {package} differ: {each}."


def _hosts(of: Selection) -> Iterator[str]:
    counts = Counter(host_name(run.host) for run in of.compared)
    if len(counts) > 1:
        each = "; ".join(f"{name}: {runs(n)}" for name, n in sorted(counts.items()))
        yield f"Machines differ, or are not recorded: {each}."


def _single(of: Selection) -> Iterator[str]:
    """One run does not show how much runs differ."""
    single = [group for group in of.groups if len(group.runs) == 1]
    if len(single) == len(of.groups):
        yield "Every learner has one seed a task: there are no intervals."
    elif single:
        yield f"No interval, because there is one seed: {_learners_on_tasks(single)}."

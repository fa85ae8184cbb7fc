"""From curves to one dictionary of facts, which page, figures and tables are made of.

The paper's protocol: evaluations with sampled actions, over the steps that the evaluated policy had
learned from; a band is Student's 95% interval of the mean over seeds.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from moie.comparison import learners
from moie.comparison.aggregates import aggregate, scale
from moie.comparison.curves import Curves
from moie.comparison.notes.remarks import Remarks
from moie.comparison.notes.wording import all_printable, host_name
from moie.comparison.selection import LAST_PART, Group, Selection, select
from moie.comparison.statistics import LEVEL, Array, mean_interval
from moie.files import finite
from moie.policy.truth import TOLERANCE
from moie.runs.config import unused_settings

FORMAT, VERSION = "moie-comparison", 1
Facts = dict[str, Any]


def gather(curves: Curves, name: str, steps: int | None = None) -> Facts:
    """Everything that can be said about these runs. `name`: of the folder, for runs without a
    study."""
    selection = select(learners.runs_of(curves), learners.plan_of(curves), steps)
    study = curves.study or {}
    scales = {task: scale(selection, task) for task in selection.tasks}
    scaled = [task for task, found in scales.items() if found is not None]
    remarks = Remarks(selection, study.get("name"), scaled, curves.overlaps)
    tasks = [_task(selection, task, scales[task]) for task in selection.tasks]
    results = [_result(group) for group in selection.groups]
    for task in selection.tasks:
        of_task = [one for one in results if one["task"] == task]
        _mark_front(of_task, "is_front", lambda one: one["parameters"])
        _mark_front(of_task, "is_attention_front", _attention_of)
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "name": study.get("name") or name,
        "description": study.get("description") or "",
        "steps_asked": steps,
        "level": LEVEL,
        "last_part": LAST_PART,
        "attention_tolerance": TOLERANCE,
        "n_runs": sum(len(group.runs) for group in selection.groups),
        "n_found": len(selection.runs),
        "n_planned": len(selection.plan) if curves.study else None,
        "n_tasks": len(selection.tasks),
        "n_learners": len(selection.learners),
        "fewest_seeds": min(len(group.runs) for group in selection.groups),
        "most_seeds": max(len(group.runs) for group in selection.groups),
        "tasks": tasks,
        "learners": [_learner(learner) for learner in selection.learners],
        "results": results,
        "aggregate": aggregate(selection, scales),
        "problems": remarks.problems(_unreadable(curves)) + _without_scale(scales),
        "notices": remarks.notices(),
        **_provenance(selection),
    }
    return all_printable(finite(facts))


def _task(selection: Selection, task: str, scale: dict[str, Any] | None) -> Facts:
    planned = [one.steps for one in selection.plan if one.task == task]
    groups = [group for group in selection.groups if group.task == task]
    return {
        "task": task,
        "budget": selection.budgets[task],
        "planned": max(planned, default=None),
        "n_runs": sum(len(group.runs) for group in groups),
        "has_distance": any(_is_known(group, "distance_sampled") for group in groups),
        "has_attention": any(np.isfinite(group.finals("attention")).any() for group in groups),
        "scale": scale,
    }


def _unreadable(curves: Curves) -> list[str]:
    return [
        *(f"A run is left out: {what}." for what in curves.unreadable),
        *(f"Rows are left out: {what}." for what in curves.damaged),
    ]


def _without_scale(scales: dict[str, dict[str, Any] | None]) -> list[str]:
    return [
        f"{task} is left out of the aggregates: there is no evaluation of untrained policies, or "
        "no learner became clearly better than them."
        for task, found in scales.items()
        if found is None
    ]


def _learner(learner: learners.Learner) -> Facts:
    return {
        "learner": learner.name,
        "algorithm": learner.algorithm,
        "experts": learner.experts or None,
        "differing": dict(learner.differing),
    }


def _is_known(group: Group, measure: str) -> bool:
    return bool(np.isfinite(group.finals(measure)).all())


def _estimate(runs: Array) -> Facts:
    """Of the mean over runs, and every run."""
    mean, low, high = (float(end) for end in mean_interval(runs))
    return {"mean": mean, "low": low, "high": high, "half": high - mean, "runs": runs.tolist()}


def _attention(group: Group) -> Facts | None:
    """The same of the runs that recorded it: old ones did not, and later seeds may join them."""
    runs = group.finals("attention")
    known = np.isfinite(runs)
    if not known.any():
        return None
    seeds = [seed for seed, is_known in zip(group.seeds, known, strict=True) if is_known]
    return _estimate(runs[known]) | {"runs": runs.tolist(), "seeds": seeds}


def _attention_of(result: Facts) -> float | None:
    found = result["final"]["attention"]
    return None if found is None else float(found["mean"])


def _curve(group: Group, measure: str) -> Facts:
    mean, low, high = mean_interval(group.curve(measure))
    ends = {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
    return {"steps": group.common.tolist(), **ends}


def _result(group: Group) -> Facts:
    """What one learner has reached on one task."""
    parameters = [run.parameters for run in group.runs if run.parameters is not None]
    known = [measure for measure in learners.MEASURES if _is_known(group, measure)]
    return {
        "task": group.task,
        "learner": group.learner.name,
        "parameters": max(parameters, default=None),
        "n": len(group.runs),
        "seeds": group.seeds,
        "runs": [run.name for run in group.runs],
        "final": {
            measure: _estimate(group.finals(measure)) if measure in known else None
            for measure in learners.MEASURES
        }
        | {"attention": _attention(group)},
        "curve": _curve(group, "return_sampled"),
        "distance": _curve(group, "distance_sampled") if "distance_sampled" in known else None,
        "settings": _settings(group),
    }


def _settings(group: Group) -> dict[str, list[Any]]:
    """Those that the learner uses, each with all values that runs have."""
    unused = {"task", "seed", *unused_settings(group.learner.algorithm)}
    values: dict[str, list[Any]] = defaultdict(list)
    for run in group.runs:
        for name, value in run.settings.items():
            if name not in unused and value not in values[name]:
                values[name].append(value)
    return dict(values)


def _mark_front(results: list[Facts], mark: str, cost: Callable[[Facts], float | None]) -> None:
    """Whether no other result of the task is better at the same cost, or as good at a lower one:
    `mark` says so. Where the cost is not known, nothing is on the front or beaten."""
    points = [(cost(one), one["final"]["return_sampled"]["mean"]) for one in results]
    known = [(price, value) for price, value in points if price is not None]
    for one, (price, value) in zip(results, points, strict=True):
        one[mark] = price is not None and not any(
            other <= price and theirs >= value and (other, theirs) != (price, value)
            for other, theirs in known
        )


def _provenance(selection: Selection) -> Facts:
    """Versions and machines of the compared runs, with the number of runs of each."""
    versions: dict[tuple[tuple[str, str], ...], int] = defaultdict(int)
    hosts: dict[str, int] = defaultdict(int)
    for group in selection.groups:
        for run in group.runs:
            versions[tuple(run.versions.items())] += 1
            hosts[host_name(run.host)] += 1
    return {
        "versions": [{"versions": dict(one), "runs": n} for one, n in versions.items()],
        "hosts": [{"host": name, "runs": n} for name, n in sorted(hosts.items())],
    }

"""Makes the facts of curves, from which page, figures and tables are made.

The paper's protocol: evaluations with sampled actions, over the steps that the evaluated policy had
learned from; a band is Student's 95% interval of the mean over seeds.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from moie.comparison import learners
from moie.comparison.curves import ATTENTION, Curves
from moie.comparison.facts import schema
from moie.comparison.facts.aggregates import aggregate, scale
from moie.comparison.facts.schema import Facts
from moie.comparison.notes.remarks import Remarks
from moie.comparison.notes.wording import all_printable, host_name
from moie.comparison.selection import LAST_PART, Group, Selection, select
from moie.comparison.statistics import LEVEL, Array, mean_interval
from moie.files import finite
from moie.policy.truth import TOLERANCE
from moie.runs.config import unused_settings

FORMAT, VERSION = "moie-comparison", 1


def make_facts(curves: Curves, name: str, steps: int | None = None) -> Facts:
    """Everything that can be said about these runs. `name`: that of the folder, for runs without a
    study."""
    study = curves.study
    selection = select(learners.runs_of(curves), learners.plan_of(study), steps)
    scales = {task: scale(selection, task) for task in selection.tasks}
    scaled = [task for task, known in scales.items() if known is not None]
    remarks = Remarks(selection, curves, scaled)
    n_seeds = [len(group.runs) for group in selection.groups]
    versions = Counter(tuple(run.versions.items()) for run in selection.compared)
    hosts = Counter(host_name(run.host) for run in selection.compared)
    facts: Facts = {
        "format": FORMAT,
        "version": VERSION,
        "name": (study and study["name"]) or name,
        "description": study["description"] if study else "",
        "steps_asked": steps,
        "level": LEVEL,
        "last_part": LAST_PART,
        "attention_tolerance": TOLERANCE,
        "n_runs": sum(n_seeds),
        "n_found": len(selection.runs),
        "n_planned": len(selection.plan) if study else None,
        "n_tasks": len(selection.tasks),
        "n_learners": len(selection.learners),
        "fewest_seeds": min(n_seeds),
        "most_seeds": max(n_seeds),
        "tasks": [_task(selection, task, scales[task]) for task in selection.tasks],
        "learners": [
            {
                "learner": learner.name,
                "algorithm": learner.algorithm,
                "experts": learner.experts or None,
                "differing": dict(learner.differing),
            }
            for learner in selection.learners
        ],
        "results": [one for task in selection.tasks for one in _results(selection.on(task))],
        "aggregate": aggregate(selection, scales),
        "problems": remarks.problems(),
        "notices": remarks.notices(),
        "versions": [{"versions": dict(one), "runs": n} for one, n in versions.items()],
        "hosts": [{"host": host, "runs": n} for host, n in sorted(hosts.items())],
    }
    return all_printable(finite(facts))


def _task(selection: Selection, task: str, scale: schema.Scale | None) -> schema.Task:
    planned = [one.steps for one in selection.plan if one.task == task]
    groups = selection.on(task)
    return {
        "task": task,
        "budget": selection.budgets[task],
        "planned": max(planned, default=None),
        "n_runs": sum(len(group.runs) for group in groups),
        "has_distance": any(_is_known(group, "distance_sampled") for group in groups),
        "has_attention": any(np.isfinite(group.finals(ATTENTION)).any() for group in groups),
        "scale": scale,
    }


def _is_known(group: Group, measure: str) -> bool:
    return bool(np.isfinite(group.finals(measure)).all())


def _estimate(runs: Array) -> schema.Estimate:
    """The mean over runs with its interval, and every run."""
    mean, low, high = map(float, mean_interval(runs))
    return {"mean": mean, "low": low, "high": high, "half": high - mean, "runs": runs.tolist()}


def _attention(group: Group) -> schema.Attention | None:
    """The same for the runs that recorded it: old ones did not, and later seeds may join them."""
    runs = group.finals(ATTENTION)
    known = np.isfinite(runs)
    if not known.any():
        return None
    seeds = [seed for seed, is_known in zip(group.seeds, known, strict=True) if is_known]
    return {**_estimate(runs[known]), "runs": runs.tolist(), "seeds": seeds}


def _curve(group: Group, measure: str) -> schema.Curve:
    mean, low, high = (end.tolist() for end in mean_interval(group.curve(measure)))
    return {"steps": group.common.tolist(), "mean": mean, "low": low, "high": high}


def _results(groups: list[Group]) -> list[schema.Result]:
    """The results of all learners of a task."""
    finals = [_final(group) for group in groups]
    parameters = [_parameters(group) for group in groups]
    attention = [one["attention"] and one["attention"]["mean"] for one in finals]
    returns = [one["return_sampled"]["mean"] for one in finals]
    fronts = _front(parameters, returns), _front(attention, returns)
    return [
        {
            "task": group.task,
            "learner": group.learner.name,
            "parameters": size,
            "n": len(group.runs),
            "seeds": group.seeds,
            "runs": [run.name for run in group.runs],
            "final": final,
            "curve": _curve(group, "return_sampled"),
            "distance": _curve(group, "distance_sampled") if final["distance_sampled"] else None,
            "settings": _settings(group),
            "is_front": is_front,
            "is_attention_front": is_attention_front,
        }
        for group, final, size, is_front, is_attention_front in zip(
            groups, finals, parameters, *fronts, strict=True
        )
    ]


def _parameters(group: Group) -> int | None:
    return max((run.parameters for run in group.runs if run.parameters is not None), default=None)


def _final(group: Group) -> schema.Final:
    def known(measure: str) -> schema.Estimate | None:
        return _estimate(group.finals(measure)) if _is_known(group, measure) else None

    return {
        "return_sampled": _estimate(group.finals("return_sampled")),  # every compared run has it
        "return_mean": known("return_mean"),
        "distance_sampled": known("distance_sampled"),
        "distance_mean": known("distance_mean"),
        "attention": _attention(group),
    }


def _settings(group: Group) -> dict[str, list[Any]]:
    """Settings that the learner uses, each with all values that runs have."""
    unused = {"task", "seed", *unused_settings(group.learner.algorithm)}
    settings: dict[str, list[Any]] = {}
    for run in group.runs:
        for name, value in run.settings.items():
            values = settings.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: values for name, values in settings.items() if name not in unused}


def _front(costs: Sequence[float | None], returns: list[float]) -> list[bool]:
    """Whether each result of a task is unbeaten: no other is better at the same cost, or as good at
    a lower one. A result whose cost is not known is not on the front and beats none."""
    points = list(zip(costs, returns, strict=True))
    known = [(price, value) for price, value in points if price is not None]
    return [
        price is not None
        and not any(
            other <= price and theirs >= value and (other, theirs) != (price, value)
            for other, theirs in known
        )
        for price, value in points
    ]

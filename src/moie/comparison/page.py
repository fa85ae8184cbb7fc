"""comparison.html: one file that needs nothing else, made of the facts and the figures.

As in the report of `moie explain`, every number names its place in the facts (`data-fact`).
"""

import json
from importlib.resources import files
from typing import NamedTuple

from moie.comparison.facts.schema import Facts
from moie.comparison.figures.appearance import looks
from moie.present.html import rendered

TEMPLATES = files("moie.comparison") / "templates"


def _settings(facts: Facts, learner: str) -> str:
    """Settings of all runs of a learner; where tasks differ, those of each task."""
    of_task = {
        one["task"]: one["settings"] for one in facts["results"] if one["learner"] == learner
    }
    lines = []
    for name in next(iter(of_task.values())):
        values = {
            task: " or ".join(map(json.dumps, settings.get(name, [])))
            for task, settings in of_task.items()
        }
        if len(set(values.values())) == 1:
            lines.append(f"{name} = {next(iter(values.values()))}")
        else:
            lines += [f"{name} = {value} on {task}" for task, value in values.items()]
    return "\n".join(lines)


class TaskTable(NamedTuple):
    """The page's table of a task."""

    results: list[int]  # indices of its results in the facts
    best: list[int]  # indices of those with the largest return
    has_distance: bool
    has_attention: bool


def _tables(facts: Facts) -> list[TaskTable]:
    """A table for each task."""
    tables = []
    for task in facts["tasks"]:
        means = {
            i: one["final"]["return_sampled"]["mean"]
            for i, one in enumerate(facts["results"])
            if one["task"] == task["task"]
        }
        best = [i for i, mean in means.items() if mean == max(means.values())]
        tables.append(TaskTable(list(means), best, task["has_distance"], task["has_attention"]))
    return tables


def page(facts: Facts, figures: dict[str, bytes]) -> bytes:
    """The whole file. `figures`: SVG by name."""
    scores = facts["aggregate"]
    iqm = [] if scores is None else [one["value"] for one in scores["iqm"]]
    return rendered(
        "moie.comparison",
        "comparison.html",
        facts,
        figures,
        (TEMPLATES / "comparison.css").read_text(),
        tasks=_tables(facts),
        top=[i for i, value in enumerate(iqm) if value == max(iqm)],
        paint={name: look.colour for name, look in looks(facts["learners"]).items()},
        settings=[_settings(facts, one["learner"]) for one in facts["learners"]],
        versions=[
            "\n".join(f"{name} {version}" for name, version in one["versions"].items())
            for one in facts["versions"]
        ],
    )

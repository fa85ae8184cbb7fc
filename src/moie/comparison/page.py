"""comparison.html: one file that needs nothing else, made of the facts and the figures.

As in the report of `moie explain`, every number names its place in the facts (`data-fact`).
"""

import json
from importlib.resources import files
from typing import Any

from moie.comparison.facts.schema import Facts
from moie.comparison.figures.appearance import looks
from moie.present.html import rendered

TEMPLATES = files("moie.comparison") / "templates"


def _settings(facts: Facts, learner: str) -> str:
    """Of all runs of a learner; where tasks differ, of each task."""
    of_task = {
        one["task"]: one["settings"] for one in facts["results"] if one["learner"] == learner
    }
    lines = []
    for name in next(iter(of_task.values())):
        values = {task: _values(settings.get(name, [])) for task, settings in of_task.items()}
        if len(set(values.values())) == 1:
            lines.append(f"{name} = {next(iter(values.values()))}")
        else:
            lines += [f"{name} = {value} on {task}" for task, value in values.items()]
    return "\n".join(lines)


def _values(some: list[Any]) -> str:
    """All that occur."""
    return " or ".join(json.dumps(value) for value in some)


def _tasks(facts: Facts) -> list[dict[str, Any]]:
    """Of each task: where its results stand in the facts, and which of them are the best."""
    found = []
    for task in facts["tasks"]:
        means = {
            i: one["final"]["return_sampled"]["mean"]
            for i, one in enumerate(facts["results"])
            if one["task"] == task["task"]
        }
        best = [i for i, mean in means.items() if mean == max(means.values())]
        has = {name: task[name] for name in ("has_distance", "has_attention")}
        found.append({"results": list(means), "best": best, **has})
    return found


def page(facts: Facts, figures: dict[str, bytes]) -> bytes:
    """The whole file. `figures` are SVG by name."""
    aggregate = facts["aggregate"]
    iqm = [] if aggregate is None else [one["value"] for one in aggregate["iqm"]]
    return rendered(
        "moie.comparison",
        "comparison.html",
        facts,
        figures,
        (TEMPLATES / "comparison.css").read_text(),
        tasks=_tasks(facts),
        top=[i for i, value in enumerate(iqm) if value == max(iqm)],
        paint={name: look.colour for name, look in looks(facts["learners"]).items()},
        settings=[_settings(facts, one["learner"]) for one in facts["learners"]],
        versions=[
            "\n".join(f"{name} {version}" for name, version in one["versions"].items())
            for one in facts["versions"]
        ],
    )

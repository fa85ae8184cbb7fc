"""comparison.html: one file that needs nothing else, made of the facts and the figures.

As in the report of `moie explain`, every number names its place in the facts (`data-fact`).
"""

import json
from importlib.resources import files

from moie.comparison.facts.schema import Facts
from moie.comparison.figures.appearance import looks
from moie.comparison.learners import by_key
from moie.present.html import rendered

TEMPLATES = files("moie.comparison") / "templates"


def _settings(facts: Facts, learner: str) -> str:
    """Settings of all runs of a learner; where tasks differ, those of each task."""
    results = [one for one in facts["results"] if one["learner"] == learner]
    lines = []
    for name in results[0]["settings"]:
        values = [" or ".join(map(json.dumps, one["settings"].get(name, []))) for one in results]
        pairs = zip(values, results, strict=True)
        each = [f"{name} = {value} on {one['task']}" for value, one in pairs]
        lines += each if len(set(values)) > 1 else [f"{name} = {values[0]}"]
    return "\n".join(lines)


def page(facts: Facts, figures: dict[str, bytes]) -> bytes:
    """The whole file. `figures`: SVG by name."""
    scores = facts["aggregate"]
    iqm = [] if scores is None else [one["value"] for one in scores["iqm"]]
    means = [one["final"]["return_sampled"]["mean"] for one in facts["results"]]
    results = by_key((one["task"], i) for i, one in enumerate(facts["results"]))
    return rendered(
        "moie.comparison",
        "comparison.html",
        facts,
        figures,
        (TEMPLATES / "comparison.css").read_text(),
        results=results,
        best=[
            i for some in results.values() for i in some if means[i] == max(means[j] for j in some)
        ],
        top=[i for i, value in enumerate(iqm) if value == max(iqm)],
        paint={name: look.colour for name, look in looks(facts["learners"]).items()},
        settings=[_settings(facts, one["learner"]) for one in facts["learners"]],
    )

"""table.md: final returns and scores as tables that can be pasted anywhere."""

import re
from collections.abc import Iterable, Sequence

from moie.comparison.facts.schema import Estimate, Facts, Interval, Result

HEAD = (
    "task",
    "learner",
    "parameters",
    "seeds",
    "return, sampled actions",
    "return, mean action",
    "distance [m]",
    "attention",
    "every seed, sampled actions",
)
SPECIAL = re.compile(r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that Markdown or HTML may take for more than text; an underscore within a word is
text."""


def plain(text: str) -> str:
    """Markdown that shows a name or a sentence as it is."""
    return SPECIAL.sub(r"\\\g<0>", text)


def _estimate(one: Estimate | None, form: str = ",.1f") -> str:
    """Mean and half the width of its interval, where there is one."""
    if one is None:
        return "-"
    half = "" if one["half"] is None else f" ± {one['half']:{form}}"
    return f"{one['mean']:{form}}{half}"


def _row(one: Result) -> list[str]:
    final = one["final"]
    parameters = "-" if one["parameters"] is None else f"{one['parameters']:,}"
    return [
        plain(one["task"]),
        plain(one["learner"]),
        parameters,
        str(one["n"]),
        _estimate(final["return_sampled"]),
        _estimate(final["return_mean"]),
        _estimate(final["distance_sampled"], ",.2f"),
        _estimate(final["attention"], ".2f"),
        ", ".join(f"{value:.1f}" for value in final["return_sampled"]["runs"]),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return [first, "|" + "---|" * len(head), *others]


def _interval(one: Interval | None) -> str:
    """Value and ends of its interval, where there are any."""
    if one is None:
        return "-"
    ends = "" if one["low"] is None else f" ({one['low']:.2f} to {one['high']:.2f})"
    return f"{one['value']:.2f}{ends}"


def _aggregate(facts: Facts) -> list[str]:
    """Scores over all tasks, and who beats whom."""
    aggregate = facts["aggregate"]
    if aggregate is None:
        return []
    names, tasks = list(map(plain, aggregate["learners"])), map(plain, aggregate["tasks"])
    scores = zip(names, aggregate["iqm"], aggregate["mean"], strict=True)
    beats = zip(names, aggregate["improvement"], strict=True)
    return [
        "",
        "## Over all tasks",
        "",
        f"Normalised scores on {', '.join(tasks)}: 0 is the untrained policy, 1 the best "
        f"learner; bootstrap intervals of {facts['level']:.0%}, too short where runs are few.",
        "",
        *_table(
            ("learner", "interquartile mean", "mean"),
            ([name, _interval(iqm), _interval(mean)] for name, iqm, mean in scores),
        ),
        "",
        "Probability that a run of the row beats a run of the column; an interval without width "
        "says that runs are few, not that there is no doubt:",
        "",
        *_table(["", *names], ([name, *map(_interval, row)] for name, row in beats)),
    ]


def markdown(facts: Facts) -> bytes:
    """Final returns, scores over all tasks, problems and notices."""
    level, part = f"{facts['level']:.0%}", f"{facts['last_part']:.0%}"
    lines = [
        f"# {plain(facts['name'])}: final returns",
        "",
        f"Mean over seeds ± half of Student's {level} interval. The final return of a run is the "
        f"mean of its evaluations in the last {part} of the compared steps. Attention, of the same "
        "policies: how many lines of the program one has to look at, at a time; 1 is best.",
        "",
        *_table(HEAD, map(_row, facts["results"])),
        *_aggregate(facts),
    ]
    steps = [f"{task['task']}: compared at {task['budget']:,} steps" for task in facts["tasks"]]
    sections = {"Steps": steps, "Problems": facts["problems"], "Notices": facts["notices"]}
    for title, items in sections.items():
        lines += ["", f"## {title}", "", *([f"- {plain(text)}" for text in items] or ["None."])]
    return ("\n".join(lines) + "\n").encode()

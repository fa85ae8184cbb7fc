"""table.md: the final returns as a table that can be pasted anywhere."""

from typing import Any

Facts = dict[str, Any]
HEAD = (
    "task",
    "learner",
    "parameters",
    "seeds",
    "return, sampled actions",
    "return, mean action",
    "distance [m]",
    "every seed, sampled actions",
)


def _estimate(found: Facts | None, form: str = ",.1f") -> str:
    """Mean and half the width of its interval, where there is one."""
    if found is None:
        return "-"
    half = "" if found["half"] is None else f" ± {found['half']:{form}}"
    return f"{found['mean']:{form}}{half}"


def _row(one: Facts) -> list[str]:
    final = one["final"]
    parameters = "-" if one["parameters"] is None else f"{one['parameters']:,}"
    return [
        one["task"],
        one["learner"],
        parameters,
        str(one["n"]),
        _estimate(final["return_sampled"]),
        _estimate(final["return_mean"]),
        _estimate(final["distance_sampled"], ",.2f"),
        ", ".join(f"{value:.1f}" for value in final["return_sampled"]["runs"]),
    ]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def markdown(facts: Facts) -> bytes:
    """Final returns, problems and notices."""
    level, part = f"{facts['level']:.0%}", f"{facts['last_part']:.0%}"
    lines = [
        f"# {facts['name']}: final returns",
        "",
        f"Mean over seeds ± half of Student's {level} interval. The final return of a run is the "
        f"mean of its evaluations in the last {part} of the compared steps.",
        "",
        _line(list(HEAD)),
        "|" + "---|" * len(HEAD),
        *(_line(_row(one)) for one in facts["results"]),
    ]
    steps = [f"- {task['task']}: compared at {task['budget']:,} steps" for task in facts["tasks"]]
    for title, items in (
        ("Steps", steps),
        ("Problems", [f"- {text}" for text in facts["problems"]]),
        ("Notices", [f"- {text}" for text in facts["notices"]]),
    ):
        lines += ["", f"## {title}", "", *(items or ["None."])]
    return ("\n".join(lines) + "\n").encode()

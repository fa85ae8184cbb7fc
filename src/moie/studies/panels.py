"""What the figures of a comparison share: panels of tasks, ticks, labels and the legend."""

import math
import re
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from moie.explain.drawing import WIDTH, sheet
from moie.studies.appearance import looks

Facts = dict[str, Any]
TITLE = 8.0
"""Points."""
LETTER = 0.66 * TITLE / 72
"""Inches that a letter of a title takes, about."""


def _title(name: str, most: int) -> str:
    """In two lines where one has no room: parted where a word begins, near the middle. What is
    still too long ends with dots."""
    if len(name) <= most:
        return name
    words = [i for i in range(1, len(name)) if re.match(r"[A-Z_:/-]", name[i])]
    at = min(words or [len(name) // 2], key=lambda i: abs(i - len(name) / 2))
    lines = name[:at], name[at:]
    return "\n".join(line if len(line) <= most else line[: most - 1] + "…" for line in lines)


def panels(
    tasks: list[Facts], each: float, left: float = 0.6, **options: Any
) -> tuple[Figure, Any]:
    """A panel a task, titled; those that are left over are empty. `each`: the height of a row;
    `left`: what labels take of the width."""
    n = len(tasks)
    columns = 2 if n in (2, 4) else min(n, 3)
    rows = -(-n // columns)
    figure, axes = sheet(rows * each + 0.35, rows, columns, **options)
    most = int(((WIDTH - left) / columns - 0.1) / LETTER)
    for axis, task in zip(axes.flat, tasks, strict=False):
        axis.set_title(_title(task["task"], most), fontsize=TITLE)
    for axis in axes.flat[n:]:
        axis.set_axis_off()
    return figure, axes


def ticks(n: int) -> MaxNLocator:
    """Round numbers."""
    return MaxNLocator(n, steps=[1, 2, 2.5, 5, 10])


def labels(axes: Any, n: int, x: str, y: str | None = None) -> None:
    """Names of the axes where no other panel is below, or to the left."""
    columns = axes.shape[1]
    for at, axis in enumerate(axes.flat[:n]):
        if at + columns >= n:
            axis.set_xlabel(x)
        if y is not None and at % columns == 0:
            axis.set_ylabel(y)


def height(n: int) -> float:
    """Of a panel, inches: larger where there is room."""
    return {1: 3.0, 2: 2.4, 4: 2.2}.get(n, 1.85)


def legend_columns(names: list[str]) -> int:
    """One row where it fits the page, otherwise rows of about the same length."""
    widths = [0.55 + 0.062 * len(name) for name in names]
    if sum(widths) <= WIDTH:
        return len(names)
    rows = math.ceil(len(names) / max(1, int(WIDTH / max(widths))))
    return math.ceil(len(names) / rows)


def legend(figure: Figure, facts: Facts, names: list[str], with_lines: bool) -> None:
    """One for all panels, below them."""
    paint = looks(facts["learners"])
    handles = [
        Line2D(
            [],
            [],
            color=paint[name].colour,
            linestyle=paint[name].line if with_lines else "none",
            linewidth=paint[name].width,
            marker="none" if with_lines else paint[name].marker,
            markersize=5,
        )
        for name in names
    ]
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=legend_columns(names),
        handlelength=2.6,
        columnspacing=1.6,
    )


def learners_of(facts: Facts, results: list[Facts]) -> list[str]:
    """Learners of these results, in the facts' order."""
    there = {one["learner"] for one in results}
    return [one["learner"] for one in facts["learners"] if one["learner"] in there]


def unit_of(tasks: list[Facts]) -> tuple[float, str]:
    """Of the axis of steps."""
    large = max(task["budget"] for task in tasks) >= 5e5
    return (1e6, "million environment steps") if large else (1e3, "thousand environment steps")

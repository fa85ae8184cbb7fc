"""What the figures of a comparison share: panels of tasks, ticks, labels and the legend."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from moie.comparison.facts.schema import Facts, Result, Task
from moie.comparison.figures.appearance import Look
from moie.comparison.figures.labels import width, wrapped
from moie.present.style import STYLE, WIDTH, sheet

Handle = Callable[[Look], Line2D]
TITLE = 8.0
"""Points."""
LETTER = 0.66 * TITLE / 72
"""Inches that a letter of a title takes, about."""
NARROWEST = 1.7
"""Inches of a panel and its labels."""
LEGEND, SMALL_LEGEND = float(STYLE["legend.fontsize"]), 7.0
"""Points; the small one for more than so many rows."""
FEW_ROWS = 6
HANDLE, PAD, APART = 2.6, 0.8, 1.6
"""Of the legend, in its letters: the line, from line to name, and between columns."""


def _title(name: str, most: int) -> str:
    """In two lines where one has no room: parted where a word begins, near the middle. What is
    still too long ends with dots."""
    if len(name) <= most:
        return name
    words = [i for i in range(1, len(name)) if re.match(r"[A-Z_:/-]", name[i])]
    at = min(words or [len(name) // 2], key=lambda i: abs(i - len(name) / 2))
    lines = name[:at], name[at:]
    return "\n".join(line if len(line) <= most else line[: most - 1] + "…" for line in lines)


def columns_of(n: int, left: float = 0.6) -> int:
    """Of panels; fewer where labels leave little of the width."""
    columns = 2 if n in (2, 4) else min(n, 3)
    return max(1, min(columns, int((WIDTH - left) / NARROWEST)))


def panels(
    tasks: list[Task], each: float, below: float, left: float = 0.6, **options: Any
) -> tuple[Figure, Any]:
    """A panel a task, titled; those that are left over are empty. `each`: the height of a row;
    `below`: of the legend; `left`: what labels take of the width."""
    n = len(tasks)
    columns = columns_of(n, left)
    rows = -(-n // columns)
    figure, axes = sheet(rows * each + below, rows, columns, **options)
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


class Legend:
    """Names below the panels, in columns. It is made before the figure, which has to be as much
    higher."""

    def __init__(self, names: list[str], handle: float = HANDLE):
        """`handle`: the length of the sign before a name, in letters; zero for none."""
        self.handle, self.pad = handle, PAD if handle else 0.0
        self._arrange(names, LEGEND)
        if self.columns * FEW_ROWS < len(names):
            self._arrange(names, SMALL_LEGEND)

    def _arrange(self, names: list[str], size: float) -> None:
        """In one row where it fits the page, otherwise in rows of about the same length."""
        apart, n = (self.handle + self.pad + APART) * size / 72, len(names)
        room = WIDTH - 0.1
        self.size, self.names = size, [wrapped(name, room - apart, size) for name in names]
        wide = [width(name, size) + apart for name in self.names]

        def fits(columns: int) -> bool:
            parts = np.array_split(wide, columns)
            return sum(max(part) for part in parts) - APART * size / 72 <= room

        most = max((columns for columns in range(1, n + 1) if fits(columns)), default=1)
        rows = -(-n // most)
        fewer = range(-(-n // rows), most)
        self.columns = next((columns for columns in fewer if fits(columns)), most)

    @property
    def height(self) -> float:
        """Inches, with the space around it."""
        parts = np.array_split([name.count("\n") + 1 for name in self.names], self.columns)
        lines = max(sum(1.2 * lines + 0.5 for lines in part) for part in parts)
        return 0.16 + lines * self.size / 72

    def draw(self, figure: Figure, handles: list[Line2D]) -> None:
        figure.legend(
            handles,
            self.names,
            loc="outside lower center",
            fontsize=self.size,
            ncols=self.columns,
            handlelength=self.handle,
            handletextpad=self.pad,
            columnspacing=APART,
        )


def line_of(look: Look) -> Line2D:
    """A piece of its line; with a marker where a line alone does not say who it is."""
    mark = look.mark(4) if look.nth else {}
    return Line2D([], [], color=look.colour, linestyle=look.line, linewidth=look.width, **mark)


def mark_of(look: Look) -> Line2D:
    return Line2D([], [], linestyle="none", **look.mark(5.5))


def learners_of(facts: Facts, results: list[Result]) -> list[str]:
    """Learners of these results, in the facts' order."""
    there = {one["learner"] for one in results}
    return [one["learner"] for one in facts["learners"] if one["learner"] in there]


def unit_of(tasks: list[Task]) -> tuple[float, str]:
    """Of the axis of steps."""
    large = max(task["budget"] for task in tasks) >= 5e5
    return (1e6, "million environment steps") if large else (1e3, "thousand environment steps")

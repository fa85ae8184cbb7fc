"""Parts that the figures of a comparison share: panels of tasks, ticks, labels and the legend."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from moie.comparison.facts.schema import Facts, Result, Task
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.labels import ROW_SIZE, letters, n_lines, widest, width, wrapped
from moie.present.style import STYLE, WIDTH, sheet

Value = TypeVar("Value")
Draw = Callable[[Axes, Task, list[tuple[Value, Result]], int], None]
"""Draws a task's values and results into its panel; the last argument is the number of columns."""
TITLE = 8.0  # points of a title
LETTER = 0.66 * TITLE / 72  # inches that a letter of a title takes, about
NARROWEST = 1.7  # inches of the narrowest panel with its labels
MOST_BESIDE = 2.15  # inches that names may take beside rows
LEGEND, SMALL_LEGEND = float(STYLE["legend.fontsize"]), 7.0
"""Points of the legend, and of one with more than FEW_ROWS rows."""
FEW_ROWS = 6
HANDLE, PAD, APART = 2.6, 0.8, 1.6
"""Lengths in letters of the legend: the line, from line to name, and between columns."""


def _title(name: str, most: int) -> str:
    """A name in two lines where one has no room, split where a word begins, near the middle. Lines
    that are still too long end with dots."""
    if len(name) <= most:
        return name
    words = [i for i in range(1, len(name)) if re.match(r"[A-Z_:/-]", name[i])]
    at = min(words or [len(name) // 2], key=lambda i: abs(i - len(name) / 2))
    lines = name[:at], name[at:]
    return "\n".join(line if len(line) <= most else line[: most - 1] + "…" for line in lines)


def panels(
    tasks: list[Task], each: float, below: float, left: float = 0.6, **options: Any
) -> tuple[Figure, Any]:
    """A panel for each task, titled; places that are left over stay empty. `each`: the height of a
    row; `below`: that of the legend; `left`: the width that labels take."""
    n = len(tasks)
    columns = 2 if n in (2, 4) else min(n, 3)
    columns = max(1, min(columns, int((WIDTH - left) / NARROWEST)))
    rows = -(-n // columns)
    figure, axes = sheet(rows * each + below, rows, columns, **options)
    most = int(((WIDTH - left) / columns - 0.1) / LETTER)
    for axis, task in zip(axes.flat, tasks, strict=False):
        axis.set_title(_title(task["task"], most), fontsize=TITLE)
    for axis in axes.flat[n:]:
        axis.set_axis_off()
    return figure, axes


def ticks(n: int) -> MaxNLocator:
    """About `n` round numbers."""
    return MaxNLocator(n, steps=[1, 2, 2.5, 5, 10])


def labels(axes: Any, n: int, x: str, y: str | None = None) -> None:
    """Name the axes where no other panel is below, or to the left."""
    columns = axes.shape[1]
    for at, axis in enumerate(axes.flat[:n]):
        if at + columns >= n:
            axis.set_xlabel(x)
        if y is not None and at % columns == 0:
            axis.set_ylabel(y)


def task_panels(
    facts: Facts,
    values: Sequence[Value | None],
    draw: Draw[Value],
    x: str,
    y: str,
    handle: Callable[[Look], Line2D],
    room: float = 0.0,
) -> Figure | None:
    """A figure of values, one for each result or None, with a panel for each task that has some.
    `x`, `y`: names of the axes; `handle`: a learner's sign in the legend; `room`: inches that a
    panel needs besides."""
    pairs = zip(values, facts["results"], strict=True)
    known = [(value, one) for value, one in pairs if value is not None]
    there = {one["task"] for _, one in known}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    shown = {one["learner"] for _, one in known}
    paint = {name: look for name, look in looks(facts["learners"]).items() if name in shown}
    legend = Legend(list(paint))
    height = {1: 3.0, 2: 2.4, 4: 2.2}.get(len(tasks), 1.85)  # larger where there is room
    figure, axes = panels(tasks, height + room, legend.height)
    for axis, task in zip(axes.flat, tasks, strict=False):
        of_task = [(value, one) for value, one in known if one["task"] == task["task"]]
        draw(axis, task, of_task, axes.shape[1])
    labels(axes, len(tasks), x, y)
    legend.draw(figure, [handle(look) for look in paint.values()])
    return figure


class Legend:
    """Names below the panels, in columns. It is made before the figure, which has to leave room for
    it."""

    def __init__(self, names: list[str], handle: float = HANDLE):
        """`handle`: the length of the sign before a name, in letters; zero for none."""
        self.handle, self.pad = handle, PAD if handle else 0.0
        self._arrange(names, LEGEND)
        if self.columns * FEW_ROWS < len(names):
            self._arrange(names, SMALL_LEGEND)

    def _arrange(self, names: list[str], size: float) -> None:
        """Put names in one row if it fits the page, otherwise in rows of about equal length."""
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
    """A piece of a learner's line, with a marker where the line alone does not say whose it is."""
    mark = look.mark(4) if look.nth else {}
    return Line2D([], [], color=look.colour, linestyle=look.line, linewidth=look.width, **mark)


def mark_of(look: Look) -> Line2D:
    return Line2D([], [], linestyle="none", **look.mark(5.5))


def row_names(names: list[str], handle: float) -> tuple[list[str], Legend | None]:
    """Names beside rows, in one line or two; where they are too long, letters, and a legend of what
    these stand for, whose signs have the length `handle`."""
    texts = [wrapped(name, MOST_BESIDE, ROW_SIZE) for name in names]
    if n_lines(texts) <= 2 and widest(texts, ROW_SIZE) <= 1.05 * MOST_BESIDE:
        return texts, None
    short = letters(len(names))
    pairs = zip(short, names, strict=True)
    return short, Legend([f"{letter}   {name}" for letter, name in pairs], handle)

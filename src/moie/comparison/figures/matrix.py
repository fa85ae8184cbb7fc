"""Who beats whom: a matrix of all pairs of learners."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from moie.comparison.facts.schema import Facts, Interval
from moie.comparison.figures.labels import ROW_SIZE, letters, n_lines, widest
from moie.comparison.figures.panels import row_names
from moie.present.style import WIDTH, sheet

ON_CELL = "#23272e"
"""Ink on a coloured cell: the same in light and in dark."""
BEATEN_TO_BEATS = LinearSegmentedColormap.from_list("beats", ["#6f9fd0", "#f4f4f2", "#e8935a"])
"""Light enough for dark ink everywhere."""
TITLE = "Probability that a run of the row beats a run of the column"
SMALLEST = 4.5  # points of a number that can be read
SLANT = 30  # degrees of names below columns


class Layout:
    """Names of rows and columns, and the room that they leave for cells."""

    def __init__(self, names: list[str]):
        n, short = len(names), letters(len(names))
        texts, self.legend = row_names(names, handle=0.0)
        slope = np.sin(np.deg2rad(SLANT))
        room = (WIDTH - widest(texts, ROW_SIZE)) / n * slope
        has_room = n_lines(texts) == 1 and room > 1.3 * ROW_SIZE / 72
        self.is_slanted = self.legend is None and has_room
        """Whether whole names stand below the columns, each in one line."""
        self.columns = names if self.is_slanted else short
        self.rows = texts
        if not self.is_slanted and self.legend is None:  # they say what the columns' letters mean
            pairs = zip(texts, short, strict=True)
            self.rows = [f"{text}   {letter}" for text, letter in pairs]
        self.wide = 72 * (WIDTH - widest(self.rows, ROW_SIZE) - 0.25) / n
        """Points of a cell's width, or a little less."""
        self.number = _readable(min(7.0, self.wide / 2.8), SMALLEST)
        """Size of a cell's number; zero where it has no room."""
        self.interval = _readable(min(5.5, self.wide / 5.4), SMALLEST + 0.5)
        """Size of a cell's interval; zero where it has no room."""
        row = 0.19 if n_lines(self.rows) == 1 else 0.33
        cells = n * (min(0.5, max(0.38, 3 / n)) if self.number else row)
        below = 0.2 + slope * widest(self.columns, ROW_SIZE) + (0.0 if self.number else 0.6)
        self.height = 0.4 + cells + below + (self.legend.height if self.legend else 0.0)
        """Inches of the whole figure."""


def _readable(size: float, least: float) -> float:
    return size if size >= least else 0.0


def improvement(facts: Facts) -> Figure | None:
    """The chance that a run of the row's learner beats one of the column's."""
    scores = facts["aggregate"]
    if scores is None or len(scores["learners"]) < 2:
        return None
    layout, pairs = Layout(scores["learners"]), scores["improvement"]
    figure, [[axis]] = sheet(layout.height)
    matrix = [[0.5 if one is None else one["value"] for one in row] for row in pairs]
    shown = np.ma.masked_array(matrix, np.eye(len(matrix), dtype=bool))
    image = axis.imshow(shown, vmin=0, vmax=1, cmap=BEATEN_TO_BEATS, aspect="auto")
    _name(axis, layout)
    axis.set_title(TITLE)
    if layout.number:
        _numbers(axis, pairs, layout)
    else:
        scale = figure.colorbar(image, ax=axis, location="bottom", shrink=0.5, aspect=40, pad=0.01)
        scale.outline.set_visible(False)
    if layout.legend is not None:
        layout.legend.draw(figure, [Line2D([], [], linestyle="none") for _ in layout.rows])
    return figure


def _name(axis: Axes, layout: Layout) -> None:
    axis.set_yticks(range(len(layout.rows)), layout.rows)
    axis.set_xticks(range(len(layout.columns)), layout.columns)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    if layout.is_slanted:
        slanted: dict[str, Any] = {"rotation": SLANT, "ha": "right", "rotation_mode": "anchor"}
        axis.set_xticks(range(len(layout.columns)), layout.columns, **slanted)
    elif 72 * widest(layout.columns, ROW_SIZE) > 0.9 * layout.wide:
        axis.tick_params(axis="x", labelrotation=90, labelsize=min(ROW_SIZE, 0.85 * layout.wide))


def _numbers(axis: Axes, pairs: list[list[Interval | None]], layout: Layout) -> None:
    options: dict[str, Any] = {"ha": "center", "va": "center", "color": ON_CELL}
    for i, row in enumerate(pairs):
        for j, one in enumerate(row):
            if one is None:
                continue
            has_interval = bool(layout.interval) and one["low"] is not None
            value, at = f"{one['value']:.2f}", i - (0.14 if has_interval else 0)
            axis.text(j, at, value, fontsize=layout.number, **options)
            if has_interval:
                ends = f"{one['low']:.2f}-{one['high']:.2f}"
                axis.text(j, i + 0.22, ends, fontsize=layout.interval, **options)

"""Figures with a row for each learner: final returns, and scores over all tasks."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moie.comparison.facts.schema import Estimate, Facts, Interval
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.labels import ROW_SIZE, n_lines, widest
from moie.comparison.figures.panels import labels, mark_of, panels, row_names, ticks
from moie.present.style import grid, sheet

MANY = 20  # rows of more learners than this are narrower


class Rows:
    """Learners as rows, the first on top. Where their names are too long rows have letters, and the
    names are listed below the figure."""

    def __init__(self, facts: Facts, names: list[str], each: float):
        """`each`: inches of a row, with a name of one line."""
        self.names, self.paint = names, looks(facts["learners"])
        self.texts, self.legend = row_names(names, handle=1.0)
        row = each if len(names) <= MANY else 0.75 * each
        self.height = len(names) * (row if n_lines(self.texts) == 1 else max(row, 0.33))
        self.left = 0.2 + widest(self.texts, ROW_SIZE)
        self.below = 0.0 if self.legend is None else self.legend.height

    def name(self, axis: Axes) -> None:
        axis.set_yticks(range(len(self.texts)), self.texts)
        axis.set_ylim(len(self.texts) - 0.4, -0.6)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        grid(axis, "x")

    def list_names(self, figure: Figure) -> None:
        """Say which names the letters of rows stand for."""
        if self.legend is not None:
            self.legend.draw(figure, [mark_of(self.paint[name]) for name in self.names])


def _estimate(axis: Axes, at: float, value: float, of: Estimate | Interval, look: Look) -> None:
    """A mark and its interval, in a row."""
    if of["low"] is not None and of["high"] is not None:
        axis.plot([of["low"], of["high"]], [at, at], color=look.colour, linewidth=2.2)
    size = 7.5 if look.marker in ("P", "X") else 6
    axis.plot([value], [at], linestyle="none", **look.mark(size, edge="white"))


def final(facts: Facts) -> Figure:
    """Final return: every seed, the mean and its interval."""
    rows = Rows(facts, [one["learner"] for one in facts["learners"]], 0.27)
    below = 0.35 + rows.below
    figure, axes = panels(facts["tasks"], 0.55 + rows.height, below, rows.left, sharey=True)
    for axis, task in zip(axes.flat, facts["tasks"], strict=False):
        for one in [one for one in facts["results"] if one["task"] == task["task"]]:
            at, result = rows.names.index(one["learner"]), one["final"]["return_sampled"]
            look = rows.paint[one["learner"]]
            lower = at + 0.27 + (0.06 * (np.arange(one["n"]) % 3 - 1) if one["n"] > 3 else 0.0)
            seeds = np.broadcast_to(lower, one["n"])
            axis.plot(result["runs"], seeds, ".", color=look.colour, alpha=0.6, markersize=4)
            _estimate(axis, at - 0.1, result["mean"], result, look)
        rows.name(axis)
        axis.xaxis.set_major_locator(ticks(12 // axes.shape[1]))
    labels(axes, len(facts["tasks"]), "final return")
    rows.list_names(figure)
    return figure


def aggregate(facts: Facts) -> Figure | None:
    """Interquartile mean and mean of the normalised scores."""
    means = facts["aggregate"]
    if means is None:
        return None
    rows = Rows(facts, means["learners"], 0.26)
    figure, axes = sheet(0.8 + rows.height + rows.below, 1, 2, sharey=True)
    kinds = {"Interquartile mean": means["iqm"], "Mean": means["mean"]}
    for axis, (title, scores) in zip(axes[0], kinds.items(), strict=True):
        for at, (name, one) in enumerate(zip(rows.names, scores, strict=True)):
            _estimate(axis, at, one["value"], one, rows.paint[name])
        rows.name(axis)
        axis.set_title(title)
        axis.xaxis.set_major_locator(ticks(5))
    labels(axes, 2, "normalised score")
    rows.list_names(figure)
    return figure

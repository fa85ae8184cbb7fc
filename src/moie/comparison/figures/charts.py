"""The figures of a comparison, drawn from the facts alone, each as SVG, PDF and PNG. Those with
lines are made here."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moie.comparison.facts.schema import Curve, Facts, Profile, Result, Task
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.front import attention, front
from moie.comparison.figures.matrix import improvement
from moie.comparison.figures.panels import Legend, line_of, task_panels, ticks
from moie.comparison.figures.rows import aggregate, final
from moie.comparison.statistics import Array
from moie.present.style import grid, sheet

MOST_POINTS = 300  # the most points that a line has
LOWEST = -0.25
"""The lowest normalised score that profiles show: one very bad run would take all the room."""


class Line(NamedTuple):
    """A mean and its interval, over steps or scores."""

    at: Array
    mean: Array
    low: Array
    high: Array

    def draw(self, axis: Axes, look: Look, n: int, has_jumps: bool = False) -> None:
        """Draw the mean and its band, which is fainter among many (`n`) lines. With jumps, the line
        keeps its value up to the next one."""
        if np.isfinite(self.low).any():
            band: dict[str, Any] = {"color": look.colour, "alpha": min(0.13, 1 / n), "linewidth": 0}
            step: Any = "post" if has_jumps else None
            axis.fill_between(self.at, self.low, self.high, step=step, **band)
        mark = look.mark(4) | {"markevery": (0.03 * (look.nth % 5), 0.15)} if look.nth else {}
        if np.isfinite(self.mean).sum() == 1:
            mark = look.mark(6)
        style = {"linestyle": look.line, "linewidth": look.width, "color": look.colour}
        kind = "steps-post" if has_jumps else "default"
        axis.plot(self.at, self.mean, drawstyle=kind, **style, **mark)


def _thinned(curve: Curve, unit: float) -> Line:
    """The last point and every second, third, ... before it, as many as paper can show. Numbers
    that are not known are gaps."""
    every = max(1, -(-len(curve["steps"]) // MOST_POINTS))
    kept = np.arange(len(curve["steps"]))[::-every][::-1]
    columns = curve["steps"], curve["mean"], curve["low"], curve["high"]
    at, *values = (np.asarray(column, dtype=np.float64)[kept] for column in columns)
    return Line(at / unit, *values)


def _curves(facts: Facts, curve_of: Callable[[Result], Curve | None], label: str) -> Figure | None:
    """Lines of a kind of curve, for the tasks that have one."""
    every = [curve_of(one) for one in facts["results"]]
    curves = [curve if curve and curve["steps"] else None for curve in every]
    paint = looks(facts["learners"])
    there = {one["task"] for curve, one in zip(curves, facts["results"], strict=True) if curve}
    budgets = [task["budget"] for task in facts["tasks"] if task["task"] in there]
    unit, name = (1e6, "million") if max(budgets, default=0) >= 5e5 else (1e3, "thousand")

    def draw(axis: Axes, task: Task, of_task: list[tuple[Curve, Result]], columns: int) -> None:
        lines = {one["learner"]: _thinned(curve, unit) for curve, one in of_task}
        for learner in reversed(lines):  # the last drawn lies on top: the first learner of the list
            lines[learner].draw(axis, paint[learner], len(lines))
        _show_means(axis, np.concatenate([line.mean for line in lines.values()]))
        axis.set_xlim(0, task["budget"] / unit or 1)
        axis.xaxis.set_major_locator(ticks(12 // columns))
        axis.yaxis.set_major_locator(ticks(5))
        grid(axis)

    return task_panels(facts, curves, draw, f"{name} environment steps", label, line_of)


def _show_means(axis: Axes, means: Array) -> None:
    """Cut bands, but no means: a band of few runs can be many times as wide as everything else."""
    means = means[np.isfinite(means)]
    if not len(means):
        return
    span = float(np.ptp(means)) or max(1.0, abs(float(means[0])))
    low, high = axis.get_ylim()
    axis.set_ylim(max(low, means.min() - 0.35 * span), min(high, means.max() + 0.35 * span))


def curves(facts: Facts) -> Figure | None:
    """The paper's figure: return of sampled actions over the steps of training."""
    return _curves(facts, lambda one: one["curve"], "return")


def distance(facts: Facts) -> Figure | None:
    """How far the robots went, over the steps of training."""
    return _curves(facts, lambda one: one["distance"], "distance [m]")


def profiles(facts: Facts) -> Figure | None:
    """The share of runs above each normalised score."""
    scores = facts["aggregate"]
    if scores is None:
        return None
    names, paint = scores["learners"], looks(facts["learners"])
    legend = Legend(names)
    figure, [[axis]] = sheet(2.95 + legend.height)
    left = _score_axis(axis, scores["thresholds"])
    for name, profile in reversed(list(zip(names, scores["profiles"], strict=True))):
        line = _jumps(scores["thresholds"], profile, left)
        line.draw(axis, paint[name], len(names), has_jumps=True)
    axis.set(ylabel="share of runs above it", ylim=(-0.02, 1.02))
    grid(axis)
    legend.draw(figure, [line_of(paint[name]) for name in names])
    return figure


def _score_axis(axis: Axes, thresholds: list[float]) -> float:
    """Show scores from zero or the lowest one to the highest; an axis that would be too long is
    cut, and says so. Returns where it begins."""
    lowest, top = thresholds[0], thresholds[-1]
    left = max(LOWEST, min(0.0, lowest))
    room = 0.015 * (top - left)  # for the jumps at both ends
    begin = left - room if lowest < 0 else left
    cut = f" (cut at {left:g}; the lowest is {lowest:.3g})" if lowest < left else ""
    axis.set(xlabel="normalised score" + cut, xlim=(begin, top + room))
    return begin


def _jumps(thresholds: list[float], profile: Profile, start: float) -> Line:
    """The points where a profile or its interval changes, and the last one: the same line with
    fewer points. Before the first threshold, or from `start` if that is less, all runs are
    above."""
    values = np.asarray([profile["value"], profile["low"], profile["high"]], dtype=np.float64)
    first = np.where(np.isfinite(values[:, :1]), 1.0, np.nan)
    values = np.concatenate([first, values], axis=1)
    is_new = (np.diff(np.nan_to_num(values, nan=-1.0), axis=1) != 0).any(axis=0)
    kept = np.concatenate([[True], is_new])
    kept[-1] = True
    at = np.asarray([min(start, thresholds[0]), *thresholds])
    return Line(at[kept], *values[:, kept])


FIGURES: dict[str, Callable[[Facts], Figure | None]] = {
    draw.__name__: draw
    for draw in (curves, final, aggregate, profiles, improvement, front, attention, distance)
}

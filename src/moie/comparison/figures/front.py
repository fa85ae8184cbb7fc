"""Readability against return: what a learner reaches with how many parameters, and with how much
attention of its reader."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.panels import (
    Facts,
    Legend,
    columns_of,
    height,
    labels,
    learners_of,
    mark_of,
    panels,
    ticks,
)
from moie.present.style import GRID, INK, WIDTH

APART, MOST_APART = 6.0, 12.0
"""Points between marks of equally many parameters, and from where they all should be."""
STEPS, MOST_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100), 6
"""Of the axis of attention, which begins with one."""


def front(facts: Facts) -> Figure | None:
    """Return against the number of parameters, and who is not beaten by anyone smaller."""
    results = [one for one in facts["results"] if one["parameters"] is not None]
    there = {one["task"] for one in results}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    names, paint = learners_of(facts, results), looks(facts["learners"])
    legend = Legend(names)
    figure, axes = panels(tasks, height(len(tasks)) + 0.15, legend.height)
    for axis, task in zip(axes.flat, tasks, strict=False):
        of_task = [one for one in results if one["task"] == task["task"]]
        sizes = [one["parameters"] for one in of_task]
        _log_axis(axis, min(sizes), max(sizes))
        for one, beside in zip(of_task, _beside(sizes, len(tasks)), strict=True):
            _point(axis, one["parameters"], one, paint[one["learner"]], beside, one["is_front"])
        _steps(axis, [(one["parameters"], one) for one in of_task if one["is_front"]])
    labels(axes, len(tasks), "number of parameters", "final return")
    legend.draw(figure, [mark_of(paint[name]) for name in names])
    return figure


def attention(facts: Facts) -> Figure | None:
    """Return against the number of lines that one has to look at, and who is not beaten by anyone
    with less."""
    results = [one for one in facts["results"] if one["final"]["attention"] is not None]
    there = {one["task"] for one in results}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    names, paint = learners_of(facts, results), looks(facts["learners"])
    legend = Legend(names)
    figure, axes = panels(tasks, height(len(tasks)) + 0.15, legend.height)
    for axis, task in zip(axes.flat, tasks, strict=False):
        of_task = [one for one in results if one["task"] == task["task"]]
        means = [one["final"]["attention"]["mean"] for one in of_task]
        _line_axis(axis, max(means))
        # The last drawn lies on top: the first learner of the list.
        for one, mean in reversed(list(zip(of_task, means, strict=True))):
            look = paint[one["learner"]]
            _lying(axis, one, look)
            _point(axis, mean, one, look, 0.0, one["is_attention_front"])
        front = [(x, o) for x, o in zip(means, of_task, strict=True) if o["is_attention_front"]]
        _steps(axis, front)
    labels(axes, len(tasks), "attention [lines]", "final return")
    legend.draw(figure, [mark_of(paint[name]) for name in names])
    return figure


def _lying(axis: Axes, one: Facts, look: Look) -> None:
    """The interval of the attention; there is nothing below one line."""
    found, y = one["final"]["attention"], one["final"]["return_sampled"]["mean"]
    if found["low"] is not None:
        line: dict[str, Any] = {"color": look.colour, "linewidth": 1, "alpha": 0.6}
        axis.plot([max(1.0, found["low"]), found["high"]], [y, y], scalex=False, **line)


def _line_axis(axis: Axes, most: float) -> None:
    """From one line, the least, to the largest mean: intervals of few runs are cut."""
    span = max(most - 1.0, 0.5)
    axis.set_xlim(1.0 - 0.08 * span, 1.0 + 1.15 * span)
    every = next((step for step in STEPS if 1.15 * span / step <= MOST_TICKS), span)
    axis.set_xticks(np.arange(1.0, 1.0 + 1.15 * span, every))
    _ground(axis)


def _beside(sizes: list[int], n_panels: int) -> list[float]:
    """Points by which each mark stands beside its number of parameters, for others with as many:
    not so far that it would come near the next larger or smaller number."""
    wide = 72 * (WIDTH / columns_of(n_panels) - 0.8)
    decade = wide / math.log10(4 * max(sizes) / min(sizes))
    found, seen = [], dict.fromkeys(sizes, 0)
    for size in sizes:
        gaps = [decade * abs(math.log10(other / size)) for other in {*sizes} - {size}]
        most = min([MOST_APART, *(0.4 * gap for gap in gaps)])
        others = sizes.count(size) - 1
        step = min(APART, 2 * most / others) if others else 0.0
        found.append(step * (seen[size] - others / 2))
        seen[size] += 1
    return found


def _moved(axis: Axes, points: float) -> Transform:
    """To the right, on paper: the axis still says what is true."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    return axis.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def _point(axis: Axes, x: float, one: Facts, look: Look, beside: float, is_ringed: bool) -> None:
    """A mark, the interval of its return, and the ring of those on the front."""
    found, where = one["final"]["return_sampled"], _moved(axis, beside)
    shown = [found[name] for name in ("low", "mean", "high") if found[name] is not None]
    axis.update_datalim([(x, y) for y in shown])  # what is moved does not do it
    if found["low"] is not None:
        line: dict[str, Any] = {"color": look.colour, "linewidth": 1, "alpha": 0.6}
        axis.plot([x, x], [found["low"], found["high"]], transform=where, **line)
    if is_ringed:
        ring: dict[str, Any] = {"mfc": "none", "mec": INK, "mew": 0.8, "markersize": 10}
        axis.plot([x], [found["mean"]], "o", transform=where, **ring)
    mark: dict[str, Any] = {"linestyle": "none", **look.mark(5.5)}
    axis.plot([x], [found["mean"]], transform=where, **mark)


def _steps(axis: Axes, front: list[tuple[float, Facts]]) -> None:
    """From one that nobody beats to the next."""
    unbeaten = sorted((x, one["final"]["return_sampled"]["mean"]) for x, one in front)
    style: dict[str, Any] = {
        "color": INK,
        "linewidth": 0.8,
        "linestyle": ":",
        "drawstyle": "steps-post",
    }
    axis.plot(*zip(*unbeaten, strict=True), zorder=1, **style)


def _short(value: float, _: Any = None) -> str:
    """500, 2k, 10k."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _log_axis(axis: Axes, low: int, high: int) -> None:
    axis.set_xscale("log")
    axis.set_xlim(low / 2, high * 2)
    axis.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if high > 20 * low else (1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(_short))
    axis.xaxis.set_minor_formatter(NullFormatter())
    _ground(axis)


def _ground(axis: Axes) -> None:
    axis.yaxis.set_major_locator(ticks(5))
    axis.grid(color=GRID, linewidth=0.4, alpha=0.5)
    axis.set_axisbelow(True)
    axis.margins(y=0.12)  # room for the rings

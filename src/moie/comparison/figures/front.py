"""Readability against return: what a learner reaches with how many parameters, and with how much
attention of its reader."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from moie.comparison.facts.schema import Result
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
Paint = dict[str, Look]


def front(facts: Facts) -> Figure | None:
    """Return against the number of parameters, and who is not beaten by anyone smaller."""
    sizes = [one["parameters"] for one in facts["results"]]
    return _against(facts, sizes, "number of parameters", _sizes)


def _sizes(axis: Axes, results: list[tuple[float, Result]], paint: Paint, n_panels: int) -> None:
    sizes = [int(size) for size, _ in results]
    _log_axis(axis, min(sizes), max(sizes))
    for (size, one), beside in zip(results, _beside(sizes, n_panels), strict=True):
        _point(axis, size, one, paint[one["learner"]], beside, one["is_front"])
    _steps(axis, [(size, one) for size, one in results if one["is_front"]])


def attention(facts: Facts) -> Figure | None:
    """Return against the number of lines that one has to look at, and who is not beaten by anyone
    with less."""
    found = [one["final"]["attention"] for one in facts["results"]]
    means = [None if one is None else one["mean"] for one in found]
    return _against(facts, means, "attention [lines]", _lines)


def _lines(axis: Axes, results: list[tuple[float, Result]], paint: Paint, n_panels: int) -> None:
    _line_axis(axis, max(mean for mean, _ in results))
    for mean, one in reversed(results):  # the last drawn lies on top: the first learner of the list
        look = paint[one["learner"]]
        _lying(axis, one, look)
        _point(axis, mean, one, look, 0.0, one["is_attention_front"])
    _steps(axis, [(mean, one) for mean, one in results if one["is_attention_front"]])


def _against(
    facts: Facts,
    costs: Sequence[float | None],
    label: str,
    draw: Callable[[Axes, list[tuple[float, Result]], Paint, int], None],
) -> Figure | None:
    """Return against a cost, a panel for each task in which it is known of somebody."""
    pairs = zip(costs, facts["results"], strict=True)
    known = [(cost, one) for cost, one in pairs if cost is not None]
    there = {one["task"] for _, one in known}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    names = learners_of(facts, [one for _, one in known])
    paint, legend = looks(facts["learners"]), Legend(names)
    figure, axes = panels(tasks, height(len(tasks)) + 0.15, legend.height)
    for axis, task in zip(axes.flat, tasks, strict=False):
        draw(axis, [pair for pair in known if pair[1]["task"] == task["task"]], paint, len(tasks))
    labels(axes, len(tasks), label, "final return")
    legend.draw(figure, [mark_of(paint[name]) for name in names])
    return figure


def _lying(axis: Axes, one: Result, look: Look) -> None:
    """The interval of the attention; there is nothing below one line."""
    found, y = one["final"]["attention"], one["final"]["return_sampled"]["mean"]
    if found and found["low"] is not None and found["high"] is not None:
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


def _point(axis: Axes, x: float, one: Result, look: Look, beside: float, is_ringed: bool) -> None:
    """A mark, the interval of its return, and the ring of those on the front."""
    found, where = one["final"]["return_sampled"], _moved(axis, beside)
    shown = (found["low"], found["mean"], found["high"])
    axis.update_datalim([(x, y) for y in shown if y is not None])  # what is moved does not do it
    if found["low"] is not None and found["high"] is not None:
        line: dict[str, Any] = {"color": look.colour, "linewidth": 1, "alpha": 0.6}
        axis.plot([x, x], [found["low"], found["high"]], transform=where, **line)
    if is_ringed:
        ring: dict[str, Any] = {"mfc": "none", "mec": INK, "mew": 0.8, "markersize": 10}
        axis.plot([x], [found["mean"]], "o", transform=where, **ring)
    mark: dict[str, Any] = {"linestyle": "none", **look.mark(5.5)}
    axis.plot([x], [found["mean"]], transform=where, **mark)


def _steps(axis: Axes, front: list[tuple[float, Result]]) -> None:
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

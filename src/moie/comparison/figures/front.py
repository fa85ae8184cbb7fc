"""Readability against return: what a learner reaches with how many parameters, and with how much
attention of its reader."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from moie.comparison.facts.schema import Facts, Result, Task
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.panels import mark_of, task_panels, ticks
from moie.present.style import INK, WIDTH, grid

APART, MOST_APART = 6.0, 12.0
"""Points between marks with equally many parameters, and from their common place to the last."""
STEPS, MOST_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100), 6
"""Ticks of the axis of attention, which begins at one."""


def front(facts: Facts) -> Figure | None:
    """Return against the number of parameters, and who is not beaten by anyone smaller."""
    paint = looks(facts["learners"])

    def draw(axis: Axes, _: Task, results: list[tuple[int, Result]], columns: int) -> None:
        sizes = [size for size, _ in results]
        _log_axis(axis, min(sizes), max(sizes))
        for (size, one), beside in zip(results, _beside(sizes, columns), strict=True):
            _point(axis, size, one, paint[one["learner"]], one["is_front"], beside)
        _join(axis, [(size, one) for size, one in results if one["is_front"]])

    sizes = [one["parameters"] for one in facts["results"]]
    return task_panels(facts, sizes, draw, "number of parameters", "final return", mark_of, 0.15)


def attention(facts: Facts) -> Figure | None:
    """Return against the number of lines that one has to look at, and who is not beaten by anyone
    with fewer."""
    paint = looks(facts["learners"])

    def draw(axis: Axes, _: Task, results: list[tuple[float, Result]], columns: int) -> None:
        _line_axis(axis, max(mean for mean, _ in results))
        for mean, one in reversed(results):  # the last drawn lies on top: the first of the list
            look, known = paint[one["learner"]], one["final"]["attention"]
            if known and known["low"] is not None and known["high"] is not None:
                ends = [max(1.0, known["low"]), known["high"]]  # there is nothing below one line
                height = one["final"]["return_sampled"]["mean"]
                _interval(axis, ends, [height, height], look, scalex=False)
            _point(axis, mean, one, look, one["is_attention_front"])
        _join(axis, [(mean, one) for mean, one in results if one["is_attention_front"]])

    known = [one["final"]["attention"] for one in facts["results"]]
    means = [None if one is None else one["mean"] for one in known]
    return task_panels(facts, means, draw, "attention [lines]", "final return", mark_of, 0.15)


def _line_axis(axis: Axes, most: float) -> None:
    """Show attention from one line, the least, to the largest mean: intervals of few runs are
    cut."""
    span = max(most - 1.0, 0.5)
    axis.set_xlim(1.0 - 0.08 * span, 1.0 + 1.15 * span)
    every = next((step for step in STEPS if 1.15 * span / step <= MOST_TICKS), span)
    axis.set_xticks(np.arange(1.0, 1.0 + 1.15 * span, every))
    _ground(axis)


def _beside(sizes: list[int], columns: int) -> list[float]:
    """Points by which each mark stands beside its number of parameters where others have as many:
    not so far that it would come near the next larger or smaller number."""
    wide = 72 * (WIDTH / columns - 0.8)
    decade = wide / math.log10(4 * max(sizes) / min(sizes))
    shifts, seen = [], dict.fromkeys(sizes, 0)
    for size in sizes:
        gaps = [decade * abs(math.log10(other / size)) for other in {*sizes} - {size}]
        most = min([MOST_APART, *(0.4 * gap for gap in gaps)])
        others = sizes.count(size) - 1
        step = min(APART, 2 * most / others) if others else 0.0
        shifts.append(step * (seen[size] - others / 2))
        seen[size] += 1
    return shifts


def _point(
    axis: Axes, x: float, one: Result, look: Look, is_ringed: bool, beside: float = 0.0
) -> None:
    """A mark, the interval of its return, and the ring of those on the front. It stands `beside`
    points to the right on paper: the axis still says what is true."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    where = axis.transData + ScaledTranslation(beside / 72, 0, figure.dpi_scale_trans)
    result = one["final"]["return_sampled"]
    low, mean, high = result["low"], result["mean"], result["high"]
    # what is moved does not extend the limits by itself
    axis.update_datalim([(x, y) for y in (low, mean, high) if y is not None])
    if low is not None and high is not None:
        _interval(axis, [x, x], [low, high], look, transform=where)
    if is_ringed:
        ring: dict[str, Any] = {"mfc": "none", "mec": INK, "mew": 0.8, "markersize": 10}
        axis.plot([x], [mean], "o", transform=where, **ring)
    axis.plot([x], [mean], transform=where, linestyle="none", **look.mark(5.5))


def _interval(axis: Axes, x: list[float], y: list[float], look: Look, **options: Any) -> None:
    axis.plot(x, y, color=look.colour, linewidth=1, alpha=0.6, **options)


def _join(axis: Axes, front: list[tuple[float, Result]]) -> None:
    """Steps from one learner that nobody beats to the next."""
    unbeaten = sorted((x, one["final"]["return_sampled"]["mean"]) for x, one in front)
    style: dict[str, Any] = {"linewidth": 0.8, "linestyle": ":", "drawstyle": "steps-post"}
    axis.plot(*zip(*unbeaten, strict=True), zorder=1, color=INK, **style)


def _log_axis(axis: Axes, low: int, high: int) -> None:
    axis.set_xscale("log")
    axis.set_xlim(low / 2, high * 2)
    axis.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if high > 20 * low else (1, 2, 5)))
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))  # 500, 2k, 10k
    axis.xaxis.set_minor_formatter(NullFormatter())
    _ground(axis)


def _ground(axis: Axes) -> None:
    axis.yaxis.set_major_locator(ticks(5))
    grid(axis, "both")
    axis.margins(y=0.12)  # room for the rings

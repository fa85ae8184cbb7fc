"""The figures of a comparison, drawn from the facts alone; each as SVG, PDF and PNG."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from moie.explain.drawing import GRID, INK, grid, sheet
from moie.studies.appearance import Look, looks
from moie.studies.panels import Facts, height, labels, learners_of, legend, panels, ticks, unit_of

ON_CELL = "#23272e"
"""Ink on a coloured cell: the same in light and in dark."""
BEATEN_TO_BEATS = LinearSegmentedColormap.from_list("beats", ["#6f9fd0", "#f4f4f2", "#e8935a"])
"""Light enough for dark ink everywhere."""
MOST_POINTS = 300
"""Of one line."""
MOST_NUMBERS, MOST_INTERVALS = 20, 9
"""Learners, up to which the cells of a matrix have room for them."""


def _line(axis: Axes, curve: Facts, look: Look, unit: float, has_jumps: bool = False) -> None:
    """A mean and its band; with jumps it keeps its value up to the next one. Of very many points
    every second, third, ... is drawn, and the last: as many as paper can show."""
    every = max(1, -(-len(curve["steps"]) // MOST_POINTS))
    kept = np.arange(len(curve["steps"]))[::-every][::-1]
    steps, mean, low, high = (
        np.asarray(curve[name], dtype=np.float64)[kept] for name in ("steps", "mean", "low", "high")
    )
    steps = steps / unit
    jumps: Any = "post" if has_jumps else None
    if np.isfinite(low).any():
        axis.fill_between(steps, low, high, color=look.colour, alpha=0.13, linewidth=0, step=jumps)
    style: dict[str, Any] = {"linestyle": look.line, "linewidth": look.width, "color": look.colour}
    style["marker"] = look.marker if len(steps) == 1 else None
    axis.plot(steps, mean, drawstyle="steps-post" if has_jumps else "default", **style)


def _curves(facts: Facts, name: str, label: str) -> Figure | None:
    """Lines of a kind of curve, for the tasks that have one."""
    results = [one for one in facts["results"] if one[name] and one[name]["steps"]]
    there = {one["task"] for one in results}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    figure, axes = panels(tasks, height(len(tasks)))
    paint, (unit, unit_name) = looks(facts["learners"]), unit_of(tasks)
    for axis, task in zip(axes.flat, tasks, strict=False):
        # The last drawn lies on top: the first learner of the list.
        for one in reversed([one for one in results if one["task"] == task["task"]]):
            _line(axis, one[name], paint[one["learner"]], unit)
        _show_means(axis, [one[name] for one in results if one["task"] == task["task"]])
        axis.set_xlim(0, task["budget"] / unit or 1)
        axis.xaxis.set_major_locator(ticks(12 // axes.shape[1]))
        axis.yaxis.set_major_locator(ticks(5))
        grid(axis)
    labels(axes, len(tasks), unit_name, label)
    legend(figure, facts, learners_of(facts, results), with_lines=True)
    return figure


def _show_means(axis: Axes, curves: list[Facts]) -> None:
    """A band of few runs can be many times as wide as everything else: it is cut, the means are
    not."""
    means = np.concatenate([curve["mean"] for curve in curves])
    span = float(np.ptp(means)) or max(1.0, abs(float(means[0])))
    low, high = axis.get_ylim()
    axis.set_ylim(max(low, means.min() - 0.35 * span), min(high, means.max() + 0.35 * span))


def curves(facts: Facts) -> Figure | None:
    """The paper's figure: return of sampled actions over the steps of training."""
    return _curves(facts, "curve", "return")


def distance(facts: Facts) -> Figure | None:
    """How far locomotion went, over the steps of training."""
    return _curves(facts, "distance", "distance [m]")


def _estimate(axis: Axes, at: float, found: Facts, look: Look, value: str = "value") -> None:
    """A mark and its interval, lying."""
    if found["low"] is not None:
        axis.plot([found["low"], found["high"]], [at, at], color=look.colour, linewidth=2.2)
    options: dict[str, Any] = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6}
    axis.plot([found[value]], [at], look.marker, color=look.colour, **options)


def _rows_of(axis: Axes, names: list[str]) -> None:
    """Learners as rows, the first on top."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    grid(axis, "x")


def final(facts: Facts) -> Figure:
    """Final return: every seed, the mean and its interval."""
    names, paint = learners_of(facts, facts["results"]), looks(facts["learners"])
    left = 0.2 + 0.068 * max(map(len, names))
    figure, axes = panels(facts["tasks"], 0.55 + 0.27 * len(names), left, sharey=True)
    for axis, task in zip(axes.flat, facts["tasks"], strict=False):
        for one in facts["results"]:
            if one["task"] != task["task"]:
                continue
            at, found = names.index(one["learner"]), one["final"]["return_sampled"]
            look = paint[one["learner"]]
            below = at + 0.27 + (0.06 * (np.arange(one["n"]) % 3 - 1) if one["n"] > 3 else 0.0)
            seeds = np.broadcast_to(below, one["n"])
            axis.plot(found["runs"], seeds, ".", color=look.colour, alpha=0.6, markersize=4)
            _estimate(axis, at - 0.1, found, look, "mean")
        _rows_of(axis, names)
        axis.xaxis.set_major_locator(ticks(12 // axes.shape[1]))
    labels(axes, len(facts["tasks"]), "final return")
    return figure


def aggregate(facts: Facts) -> Figure | None:
    """Interquartile mean and mean of the normalised scores."""
    found = facts["aggregate"]
    if found is None:
        return None
    names, paint = found["learners"], looks(facts["learners"])
    figure, axes = sheet(0.8 + 0.26 * len(names), 1, 2, sharey=True)
    for axis, kind, title in zip(
        axes[0], ("iqm", "mean"), ("Interquartile mean", "Mean"), strict=True
    ):
        for at, (name, one) in enumerate(zip(names, found[kind], strict=True)):
            _estimate(axis, at, one, paint[name])
        _rows_of(axis, names)
        axis.set_title(title)
        axis.xaxis.set_major_locator(ticks(5))
    labels(axes, 2, "normalised score")
    return figure


def profiles(facts: Facts) -> Figure | None:
    """Share of runs above each normalised score."""
    found = facts["aggregate"]
    if found is None:
        return None
    figure, axes = sheet(3.3)
    axis, paint = axes[0, 0], looks(facts["learners"])
    pairs = list(zip(found["learners"], found["profiles"], strict=True))
    for name, one in reversed(pairs):
        curve = {"steps": found["thresholds"], "mean": one["value"], **one}
        _line(axis, curve, paint[name], 1.0, has_jumps=True)
    axis.set(xlabel="normalised score", ylabel="share of runs above it", ylim=(-0.02, 1.02))
    axis.set_xlim(found["thresholds"][0], found["thresholds"][-1])
    grid(axis)
    legend(figure, facts, found["learners"], with_lines=True)
    return figure


def improvement(facts: Facts) -> Figure | None:
    """The chance that a run of the row's learner beats one of the column's."""
    found = facts["aggregate"]
    if found is None or len(found["learners"]) < 2:
        return None
    names = found["learners"]
    matrix = [[0.5 if one is None else one["value"] for one in row] for row in found["improvement"]]
    figure, axes = sheet(1.7 + 0.38 * len(names))
    axis = axes[0, 0]
    shown = np.ma.masked_array(matrix, np.eye(len(names), dtype=bool))
    image = axis.imshow(shown, vmin=0, vmax=1, cmap=BEATEN_TO_BEATS, aspect="auto")
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    for i, row in enumerate(found["improvement"]):
        for j, one in enumerate(row):
            if one is not None and len(names) <= MOST_NUMBERS:
                _cell(axis, i, j, one, with_interval=len(names) <= MOST_INTERVALS)
    axis.set_title("Probability that a run of the row beats a run of the column")
    if len(names) > MOST_NUMBERS:
        figure.colorbar(image, ax=axis, fraction=0.03, pad=0.02).outline.set_visible(False)
    return figure


def _cell(axis: Axes, i: int, j: int, one: Facts, with_interval: bool) -> None:
    with_interval = with_interval and one["low"] is not None
    options: dict[str, Any] = {"ha": "center", "va": "center", "color": ON_CELL}
    axis.text(j, i - (0.14 if with_interval else 0), f"{one['value']:.2f}", fontsize=7, **options)
    if with_interval:
        axis.text(j, i + 0.22, f"{one['low']:.2f}-{one['high']:.2f}", fontsize=5.5, **options)


def _beside(results: list[Facts]) -> list[float]:
    """Where each result stands on the axis of parameters: beside those with as many."""
    found = []
    for one in results:
        equal = [other for other in results if other["parameters"] == one["parameters"]]
        nth = equal.index(one) - (len(equal) - 1) / 2
        found.append(one["parameters"] * 10 ** (0.09 * nth))
    return found


def front(facts: Facts) -> Figure | None:
    """Return against the number of parameters, and who is not beaten by anyone smaller."""
    results = [one for one in facts["results"] if one["parameters"] is not None]
    there = {one["task"] for one in results}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    figure, axes = panels(tasks, height(len(tasks)) + 0.15)
    paint = looks(facts["learners"])
    for axis, task in zip(axes.flat, tasks, strict=False):
        of_task = [one for one in results if one["task"] == task["task"]]
        at = _beside(of_task)
        for x, one in zip(at, of_task, strict=True):
            _point(axis, x, one, paint[one["learner"]])
        unbeaten = sorted(
            (x, one["final"]["return_sampled"]["mean"])
            for x, one in zip(at, of_task, strict=True)
            if one["is_front"]
        )
        steps = {"color": INK, "linewidth": 0.8, "linestyle": ":", "drawstyle": "steps-post"}
        axis.plot(*zip(*unbeaten, strict=True), zorder=1, **steps)
        _log_axis(axis, at)
        axis.margins(y=0.12)  # room for the rings
    labels(axes, len(tasks), "number of parameters", "final return")
    legend(figure, facts, learners_of(facts, results), with_lines=False)
    return figure


def _point(axis: Axes, x: float, one: Facts, look: Look) -> None:
    found = one["final"]["return_sampled"]
    if found["low"] is not None:
        axis.plot([x, x], [found["low"], found["high"]], color=look.colour, linewidth=1, alpha=0.6)
    if one["is_front"]:
        axis.plot([x], [found["mean"]], "o", mfc="none", mec=INK, mew=0.8, markersize=10)
    axis.plot([x], [found["mean"]], look.marker, color=look.colour, markersize=5)


def _short(value: float, _: Any = None) -> str:
    """500, 2k, 10k."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _log_axis(axis: Axes, at: list[float]) -> None:
    axis.set_xscale("log")
    axis.set_xlim(min(at) / 2, max(at) * 2)
    axis.xaxis.set_major_locator(
        LogLocator(10, subs=(1.0,) if max(at) > 20 * min(at) else (1, 2, 5))
    )
    axis.xaxis.set_major_formatter(FuncFormatter(_short))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(ticks(5))
    axis.grid(color=GRID, linewidth=0.4, alpha=0.5)
    axis.set_axisbelow(True)


FIGURES: dict[str, Callable[[Facts], Figure | None]] = {
    "curves": curves,
    "final": final,
    "aggregate": aggregate,
    "profiles": profiles,
    "improvement": improvement,
    "front": front,
    "distance": distance,
}

"""The figures of a comparison, drawn from the facts alone; each as SVG, PDF and PNG. Here those
with lines."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moie.comparison.facts.schema import Curve, Profile, Result
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.front import attention, front
from moie.comparison.figures.matrix import improvement
from moie.comparison.figures.panels import (
    Facts,
    Legend,
    height,
    labels,
    learners_of,
    line_of,
    panels,
    ticks,
    unit_of,
)
from moie.comparison.figures.rows import aggregate, final
from moie.comparison.statistics import Array
from moie.present.style import grid, sheet

MOST_POINTS = 300
"""Of one line."""
LOWEST = -0.25
"""Normalised score, from which on profiles are shown: one very bad run would take all the room."""


def _line(axis: Axes, curve: dict[str, Array], look: Look, n: int, has_jumps: bool = False) -> None:
    """A mean over steps, and its band, which is fainter where `n`, the lines, are many; with jumps
    it keeps its value up to the next one."""
    steps, mean, low, high = (curve[name] for name in ("steps", "mean", "low", "high"))
    jumps: Any = "post" if has_jumps else None
    if np.isfinite(low).any():
        band: dict[str, Any] = {"color": look.colour, "alpha": min(0.13, 1 / n), "linewidth": 0}
        axis.fill_between(steps, low, high, step=jumps, **band)
    style: dict[str, Any] = {"linestyle": look.line, "linewidth": look.width, "color": look.colour}
    if np.isfinite(mean).sum() == 1:
        style |= look.mark(6)
    elif look.nth:
        style |= look.mark(4) | {"markevery": (0.03 * (look.nth % 5), 0.15)}
    axis.plot(steps, mean, drawstyle="steps-post" if has_jumps else "default", **style)


def _thinned(curve: Curve, unit: float) -> dict[str, Array]:
    """Of very many points every second, third, ... and the last: as many as paper can show. What is
    not known is a gap."""
    every = max(1, -(-len(curve["steps"]) // MOST_POINTS))
    kept = np.arange(len(curve["steps"]))[::-every][::-1]
    found = {name: np.asarray(values, dtype=np.float64)[kept] for name, values in curve.items()}
    return found | {"steps": found["steps"] / unit}


def _curves(facts: Facts, curve_of: Callable[[Result], Curve | None], label: str) -> Figure | None:
    """Lines of a kind of curve, for the tasks that have one."""
    drawn = [(one, curve_of(one)) for one in facts["results"]]
    drawn = [(one, curve) for one, curve in drawn if curve and curve["steps"]]
    results = [one for one, _ in drawn]
    there = {one["task"] for one in results}
    tasks = [task for task in facts["tasks"] if task["task"] in there]
    if not tasks:
        return None
    names, paint = learners_of(facts, results), looks(facts["learners"])
    legend, (unit, unit_name) = Legend(names), unit_of(tasks)
    figure, axes = panels(tasks, height(len(tasks)), legend.height)
    for axis, task in zip(axes.flat, tasks, strict=False):
        lines = {
            one["learner"]: _thinned(curve, unit)
            for one, curve in drawn
            if curve is not None and one["task"] == task["task"]
        }
        # The last drawn lies on top: the first learner of the list.
        for learner in reversed(lines):
            _line(axis, lines[learner], paint[learner], len(lines))
        _show_means(axis, np.concatenate([line["mean"] for line in lines.values()]))
        axis.set_xlim(0, task["budget"] / unit or 1)
        axis.xaxis.set_major_locator(ticks(12 // axes.shape[1]))
        axis.yaxis.set_major_locator(ticks(5))
        grid(axis)
    labels(axes, len(tasks), unit_name, label)
    legend.draw(figure, [line_of(paint[name]) for name in names])
    return figure


def _show_means(axis: Axes, means: Array) -> None:
    """A band of few runs can be many times as wide as everything else: it is cut, the means are
    not."""
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
    """How far locomotion went, over the steps of training."""
    return _curves(facts, lambda one: one["distance"], "distance [m]")


def profiles(facts: Facts) -> Figure | None:
    """Share of runs above each normalised score."""
    found = facts["aggregate"]
    if found is None:
        return None
    names, paint = found["learners"], looks(facts["learners"])
    legend = Legend(names)
    figure, axes = sheet(2.95 + legend.height)
    axis = axes[0, 0]
    left = _score_axis(axis, found["thresholds"])
    for name, one in reversed(list(zip(names, found["profiles"], strict=True))):
        line = _jumps(found["thresholds"], one, left)
        _line(axis, line, paint[name], len(names), has_jumps=True)
    axis.set(ylabel="share of runs above it", ylim=(-0.02, 1.02))
    grid(axis)
    legend.draw(figure, [line_of(paint[name]) for name in names])
    return figure


def _score_axis(axis: Axes, thresholds: list[float]) -> float:
    """From zero or the lowest score to the highest, and where that would be too much, less; then
    it says so. Where it begins."""
    lowest, top = thresholds[0], thresholds[-1]
    left = max(LOWEST, min(0.0, lowest))
    room = 0.015 * (top - left)  # for the jumps at both ends
    begin = left - room if lowest < 0 else left
    cut = f" (cut at {left:g}; the lowest is {lowest:.3g})" if lowest < left else ""
    axis.set(xlabel="normalised score" + cut, xlim=(begin, top + room))
    return begin


def _jumps(thresholds: list[float], profile: Profile, start: float) -> dict[str, Array]:
    """Where a profile or its interval changes, and the last point: the same line with fewer points.
    Before the first threshold, from `start` on if that is less, all runs are above."""
    lines = {"mean": profile["value"], "low": profile["low"], "high": profile["high"]}
    values = np.asarray(list(lines.values()), dtype=np.float64)
    first = np.where(np.isfinite(values[:, :1]), 1.0, np.nan)
    values = np.concatenate([first, values], axis=1)
    is_new = (np.diff(np.nan_to_num(values, nan=-1.0), axis=1) != 0).any(axis=0)
    kept = np.concatenate([[True], is_new])
    kept[-1] = True
    steps = np.concatenate([[min(start, thresholds[0])], np.asarray(thresholds, dtype=np.float64)])
    return {"steps": steps[kept], **dict(zip(lines, values[:, kept], strict=True))}


FIGURES: dict[str, Callable[[Facts], Figure | None]] = {
    "curves": curves,
    "final": final,
    "aggregate": aggregate,
    "profiles": profiles,
    "improvement": improvement,
    "front": front,
    "attention": attention,
    "distance": distance,
}

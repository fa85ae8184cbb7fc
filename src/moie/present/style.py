"""What all figures share: style, colours, and which experts and features are worth drawing.

An expert has the same colour everywhere: one of ten for the most used, grey for all others.
"""

import io
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from moie.present.stages import Stages

INK, GRID, REST, DEFAULT = "#23272f", "#9aa1ac", "#8b93a1", "#c9ced6"
PALETTE = (
    "#2f6fb5",
    "#d9722b",
    "#3a9a63",
    "#b5405a",
    "#7b5fb8",
    "#c9a227",
    "#2aa5a8",
    "#a0683c",
    "#d478a8",
    "#6d8f2d",
)
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
PAPER = "paper"
"""Name of the white ground in a file: its ink is dark, whatever it is shown on."""
WIDTH = 7.2
"""Inches: a text of two columns."""
MOST_FEATURES = 30
"""That one figure shows."""
Facts = dict[str, Any]


def colours(facts: Facts) -> dict[int, str]:
    """Of each expert, in order of use."""
    order = [expert["expert"] for expert in facts["experts"]]
    return {k: PALETTE[i] if i < len(PALETTE) else REST for i, k in enumerate(order)}


def chosen(facts: Facts, most: int = 6) -> list[int]:
    """Experts worth drawing, as the paper picks them: much used, or not active together with one
    that was picked before."""
    picked: list[int] = []
    overlap = facts["overlap"]
    for expert in facts["experts"]:
        k = expert["expert"]
        apart = expert["share"] >= 0.01 and all(overlap[k][j] < 0.8 for j in picked)
        if expert["lead"] >= 0.05 or apart:
            picked.append(k)
    return (picked or [facts["experts"][0]["expert"]])[:most]


def varied(facts: Facts, most: int) -> list[int]:
    """The features in which prototypes differ most, for the range of visited states; in order."""
    at = np.asarray([expert["prototype"] for expert in facts["experts"]])
    wide = np.asarray([feature["high"] - feature["low"] for feature in facts["features"]])
    spread = at.std(axis=0) / np.where(wide > 0, wide, np.inf)
    return sorted(int(i) for i in np.argsort(-spread, kind="stable")[:most])


def sheet(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def grid(axis: Axes, which: Literal["x", "y"] = "y") -> None:
    axis.grid(axis=which, color=GRID, linewidth=0.4, alpha=0.5)
    axis.set_axisbelow(True)


def saved(name: str, build: Callable[[], Figure | None]) -> dict[str, bytes]:
    """A figure in all its forms, by the ending of its file: the same bytes for the same figure.
    Nothing where there is none."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": f"moie-{name}"}):
        figure = build()
        if figure is None:
            return {}
        forms = {}
        figure.patch.set_gid(PAPER)
        figure.draw_without_rendering()  # lays it out, once for all forms
        figure.set_layout_engine("none")
        without_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        for ending, metadata in without_date.items():
            file = io.BytesIO()
            figure.savefig(file, format=ending, dpi=200, metadata=metadata)
            forms[ending] = file.getvalue()
        return forms


def draw_all(
    figures: dict[str, Callable[[Any], Figure | None]],
    facts: Any,
    content: dict[str, bytes],
    progress: Stages,
    check: Callable[[], None],
) -> dict[str, bytes]:
    """All figures into the content of a folder, in all forms; their SVG for a page."""
    drawn = {}
    with progress.stage("figures", len(figures)) as done:
        for name, build in figures.items():
            check()
            forms = saved(name, partial(build, facts))
            content |= {f"figures/{name}.{ending}": form for ending, form in forms.items()}
            if forms:
                drawn[name] = forms["svg"]
            done(name)
    return drawn


def window(facts: Facts) -> range:
    """Steps of the shown episode that can be told apart on paper, some cycles or 200: those in
    which memberships vary most."""
    length, cycle = facts["shown"]["length"], facts["cycle"]
    wide = min(length, 200 if cycle is None else int(np.clip(8 * cycle["period"], 60, 300)))
    memberships = np.asarray(facts["shown"]["memberships"])
    starts = range(0, length - wide + 1, 10)
    start = max(starts, key=lambda at: float(memberships[at : at + wide].var(axis=0).sum()))
    return range(start, start + wide)

"""The common style and colours of all figures, and their forms as files."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moie.present.stages import Stages

INK, GRID, REST, DEFAULT = "#23272f", "#9aa1ac", "#8b93a1", "#c9ced6"
PALETTE = (
    *("#2f6fb5", "#d9722b", "#3a9a63", "#b5405a", "#7b5fb8"),
    *("#c9a227", "#2aa5a8", "#a0683c", "#d478a8", "#6d8f2d"),
)
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "figure.facecolor": "white",
    "figure.titlesize": 9,
    "figure.titleweight": "bold",
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
PAPER = "paper"  # name of the white ground in a file: its ink is dark, whatever it is shown on
WIDTH = 7.2  # width of a figure in inches, as wide as a text of two columns


def sheet(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of this height in inches, and its axes (rows, columns)."""
    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def grid(axis: Axes, which: Literal["x", "y", "both"] = "y") -> None:
    axis.grid(axis=which, color=GRID, linewidth=0.4, alpha=0.5)
    axis.set_axisbelow(True)


def saved(name: str, build: Callable[[], Figure | None]) -> dict[str, bytes]:
    """A figure in all its forms, by the ending of its file: the same bytes for the same figure.
    Empty where there is nothing to draw."""
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
    progress: Stages,
    check: Callable[[], None],
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """All figures of the facts: files of a folder, in all forms; and the SVG of each, by name."""
    contents: dict[str, bytes] = {}
    drawings: dict[str, bytes] = {}
    with progress.stage("figures", len(figures)) as done:
        for name, build in figures.items():
            check()
            forms = saved(name, partial(build, facts))
            contents |= {f"figures/{name}.{ending}": form for ending, form in forms.items()}
            if forms:
                drawings[name] = forms["svg"]
            done(name)
    return contents, drawings

"""Figures that can be read: learners are told apart, nothing overlaps, and axes are true."""

from copy import deepcopy
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from moie.comparison.facts.assembly import make_facts
from moie.comparison.figures import charts
from moie.comparison.figures.appearance import Look, looks
from moie.comparison.figures.labels import letters, wrapped
from moie.learn import registry
from moie.present.style import STYLE
from tests.comparison import synthetic

Facts = dict[str, Any]


def learner(algorithm: str, experts: int | None, variant: int = 0) -> Facts:
    name = f"{algorithm} K={experts}, temperature {variant}"
    return {"learner": name, "algorithm": algorithm, "experts": experts, "differing": {}}


CROWDS = {
    "settings": [learner("moie", 10, variant) for variant in range(70)],
    "experts": [learner("moie", k) for k in (*range(1, 100), *range(100, 1001, 20))],
    "everything": [
        learner(algorithm, k, variant)
        for algorithm in registry.names()
        for k in (1, 2, 5, 10, 20, 40, 60, 80)
        for variant in range(7)
    ],
}


def signs(look: Look) -> tuple[Any, Any]:
    """As a line, and as a mark."""
    return (look.colour, look.line), (look.colour, look.marker, look.is_hollow)


@pytest.mark.parametrize("crowd", CROWDS.values(), ids=CROWDS)
def test_no_two_learners_look_alike(crowd: list[Facts]) -> None:
    found = looks(crowd)
    assert len({signs(look)[0] for look in found.values()}) == len(crowd)
    assert len({signs(look)[1] for look in found.values()}) == len(crowd)


def test_learners_that_a_setting_tells_apart_differ_in_line_and_marker() -> None:
    found = looks([learner("moie", 10, variant) for variant in range(3)])
    assert len({look.line for look in found.values()}) == 3
    assert len({(look.marker, look.is_hollow) for look in found.values()}) == 3


def test_a_plain_learner_looks_the_same_whoever_else_is_there() -> None:
    every = [learner(algorithm, k) for algorithm in registry.names() for k in (3, 5, 10, 20, 40)]
    together = looks(every)
    for one in every:
        assert looks([one])[one["learner"]] == together[one["learner"]]


def test_more_experts_are_darker_however_many() -> None:
    ladder = [1, 2, 3, 5, 10, 20, 40, 60, 80, 160, 320, 1000]
    for algorithm in registry.names():
        alone = [looks([learner(algorithm, k)]).popitem()[1] for k in ladder]
        light = [sum(to_rgb(look.colour)) for look in alone]
        assert light == sorted(light, reverse=True)
        assert len(set(light)) == len(ladder)


def test_names_break_after_commas() -> None:
    assert wrapped("moie K=10", 2.0, 8.5) == "moie K=10"
    long = "moie K=10, bound 0.015, candidates 20, temperature 0.5"
    assert wrapped(long, 2.15, 8.5) == "moie K=10, bound 0.015,\ncandidates 20, temperature 0.5"
    assert wrapped("x" * 100, 2.0, 8.5).replace("\n", "") == "x" * 100
    assert letters(54)[24:30] == ["Y", "Z", "AA", "AB", "AC", "AD"]
    assert len(set(letters(1000))) == 1000


LONG = (
    "HalfCheetahBulletEnv-v0",
    "InvertedDoublePendulumBulletEnv-v0",
    "InvertedPendulumSwingupBulletEnv-v0",
    synthetic.WALKER,
    "Walker2DBulletEnv-v0",
)


@pytest.fixture(scope="module")
def long_tasks() -> Facts:
    names = ("moie", "ppo", "trpo-linear", "trpo-diffproto-entropy", "ppo-diffproto-entropy")
    return make_facts(
        synthetic.curves(synthetic.grid(LONG, names, range(2), iterations=400)), "long"
    )


@pytest.fixture(scope="module")
def pair() -> Facts:
    """Two learners on two tasks."""
    tasks = ("Swing-v0", synthetic.WALKER)
    return make_facts(synthetic.curves(synthetic.grid(tasks, ("moie", "ppo"), range(3))), "pair")


def crowd(facts: Facts, names: list[str]) -> Facts:
    """The first learner again and again, with these names."""
    facts, was = deepcopy(facts), facts["learners"][0]["learner"]
    first = [one for one in facts["results"] if one["learner"] == was]
    facts["learners"] = [facts["learners"][0] | {"learner": name} for name in names]
    facts["results"] = [one | {"learner": name} for one in first for name in names]
    found = facts["aggregate"]
    found["learners"] = names
    for kind in ("iqm", "mean", "profiles"):
        found[kind] = [found[kind][0]] * len(names)
    cell = found["improvement"][0][1]
    found["improvement"] = [[None if a == b else cell for a in names] for b in names]
    return facts


MORE = ", learning rate 0.0003, hidden sizes 64x64, minibatches 32"
NAMES = {
    "long": [f"moie K=10, bound 0.015, candidates {i}, temperature 0.5" for i in range(16)],
    "lettered": [f"moie K=10, bound {i}, candidates 20, temperature 0.5" + MORE for i in range(16)],
    "many": [f"moie K=10, temperature {i / 10}" for i in range(60)],
    "page wide": ["moie K=10, " + ", ".join([f"setting {i}"] * 14) for i in range(3)],
}


@pytest.mark.parametrize("name", charts.FIGURES)
def test_nothing_overlaps_with_long_names_of_tasks(name: str, long_tasks: Facts) -> None:
    check_layout(laid_out(name, long_tasks))


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("name", charts.FIGURES)
def test_nothing_overlaps_however_many_and_long(name: str, names: list[str], pair: Facts) -> None:
    figure = laid_out(name, crowd(pair, names))
    check_layout(figure)
    # A learner's row is high enough for its name; the panels of others, for their lines.
    lowest = min(1.2, 0.25 * len(names))
    for axes in panels_of(figure):
        box = axes.get_window_extent()
        assert box.height / figure.dpi > lowest
        assert box.width / figure.dpi > 1.0
    shown = "\n".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")
    assert all(learner in shown for learner in names)


def laid_out(name: str, facts: Facts) -> Figure:
    with mpl.rc_context(STYLE):
        figure = charts.FIGURES[name](facts)
        assert figure is not None
        figure.draw_without_rendering()
    return figure


def panels_of(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]


def check_layout(figure: Figure) -> None:
    """All texts are on the page, no two on each other, and the legend is on no panel."""
    with mpl.rc_context(STYLE):
        boxes = [(text, text.get_window_extent()) for text in drawn(figure)]
        below = [legend.get_window_extent() for legend in figure.legends]
        panels = [axes.get_tightbbox() for axes in figure.axes]
    assert len(boxes) > 10
    for text, box in boxes:
        assert figure.bbox.x0 - 2 <= box.x0 <= box.x1 <= figure.bbox.x1 + 2, text
        assert figure.bbox.y0 - 2 <= box.y0 <= box.y1 <= figure.bbox.y1 + 2, text
    upright = [(t, box.padded(-1.0)) for t, box in boxes if t.get_rotation() in (0.0, 90.0)]
    for i, (text, box) in enumerate(upright):
        for other, beside in upright[:i]:
            assert not box.overlaps(beside), (text, other)
    for legend in below:
        assert not any(legend.padded(-1.0).overlaps(panel) for panel in panels if panel)


def drawn(figure: Figure) -> list[Text]:
    """Texts that can be seen: without labels of ticks outside of the limits, and without panels
    that are switched off."""
    found = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    hidden: set[int] = set()
    for axes in figure.axes:
        if not axes.axison:
            hidden |= {id(text) for text in axes.findobj(Text)}
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = min(low, high), max(low, high)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    hidden |= {id(tick.label1), id(tick.label2)}
    return [t for t in found if id(t) not in hidden]


@pytest.mark.parametrize("n", [2, 9, 14, 20, 40])
def test_numbers_stay_in_their_cells(n: int, pair: Facts) -> None:
    names = [f"moie K=10, bound 0.015, candidates {i}, temperature 0.5" for i in range(n)]
    figure = laid_out("improvement", crowd(pair, names))
    axes = figure.axes[0]
    wide, high = axes.bbox.width / n, axes.bbox.height / n
    numbers = [text for text in axes.texts if text.get_text()]
    assert bool(numbers) == (n <= 20)
    for text in numbers:
        assert text.get_fontsize() >= 4.5
        box = text.get_window_extent()
        column, row = (box.x0 - axes.bbox.x0) // wide, (axes.bbox.y1 - box.y1) // high
        assert column == (box.x1 - axes.bbox.x0) // wide == text.get_position()[0]
        assert row == (axes.bbox.y1 - box.y0) // high


SIZES = [26, 71, 71, 71, 71, 71, 90, 4610, 4610, 4700]


@pytest.fixture(scope="module")
def sized(pair: Facts) -> Facts:
    """Learners with these numbers of parameters, the larger the better."""
    found = crowd(pair, [f"moie {i}" for i in range(len(SIZES))])
    for i, one in enumerate(found["results"]):
        nth = i % len(SIZES)
        one["parameters"], one["is_front"] = SIZES[nth], nth in (0, 3, 6, 8)
        mean = 10.0 * nth
        values = {"mean": mean, "low": mean - 3, "high": mean + 3}
        one["final"] = {"return_sampled": one["final"]["return_sampled"] | values}
    return found


def marks(axes: Axes) -> list[Line2D]:
    """In the order of the learners: without rings, intervals and the front."""
    alone = [line for line in axes.lines if len(line.get_xdata()) == 1]
    return [line for line in alone if line.get_markerfacecolor() != "none"]


def on_paper(line: Line2D) -> np.ndarray:
    """Points, from the left."""
    at = line.get_transform().transform(line.get_xydata())
    return at[:, 0] * 72 / line.get_figure(root=True).dpi


def test_the_front_is_where_its_axis_says(sized: Facts) -> None:
    figure = laid_out("front", sized)
    for axes in panels_of(figure):
        assert [line.get_xdata()[0] for line in marks(axes)] == SIZES
        front = [line for line in axes.lines if line.get_linestyle() == ":"]
        assert [list(line.get_xdata()) for line in front] == [[26, 71, 90, 4610]]
        assert front[0].get_transform() == axes.transData
        assert axes.get_ylim()[0] < -3
        assert axes.get_ylim()[1] > 93


def test_marks_of_equally_many_parameters_stand_side_by_side(sized: Facts) -> None:
    for axes in panels_of(laid_out("front", sized)):
        at = np.concatenate([on_paper(line) for line in marks(axes)])
        true = axes.transData.transform([(size, 0) for size in SIZES])[:, 0] * 72
        true = true / axes.get_figure(root=True).dpi
        assert (np.diff(at) > 0).all()  # sizes never change their order
        assert np.abs(at - true).max() <= 12
        assert at[1:6].mean() == pytest.approx(true[1])
        assert at[2] - at[1] > 0.5


def test_ring_and_interval_move_with_their_mark(sized: Facts) -> None:
    for axes in panels_of(laid_out("front", sized)):
        places = {round(float(on_paper(line)[0]), 3) for line in marks(axes)}
        others = [line for line in axes.lines if line.get_linestyle() != ":"]
        assert {round(float(x), 3) for line in others for x in on_paper(line)} == places
        assert len(others) == 2 * len(SIZES) + 4


def test_attention_is_where_its_axis_says(pair: Facts) -> None:
    for axes, task in zip(panels_of(laid_out("attention", pair)), pair["tasks"], strict=True):
        (one,) = [r for r in pair["results"] if r["task"] == task["task"] and "K" in r["learner"]]
        found, value = one["final"]["attention"], one["final"]["return_sampled"]
        [mark] = [line for line in marks(axes) if line.get_linestyle() == "None"]
        assert mark.get_xydata().tolist() == [[found["mean"], value["mean"]]]
        lying = [line for line in axes.lines if len(set(line.get_xdata())) == 2]
        assert [list(line.get_xdata()) for line in lying] == [[found["low"], found["high"]]]
        assert axes.get_xlim()[0] < 1 < found["mean"] < axes.get_xlim()[1]


def test_where_nothing_has_attention_there_is_no_figure_of_it(pair: Facts) -> None:
    facts = deepcopy(pair)
    for one in facts["results"]:
        one["final"]["attention"] = None
    assert charts.FIGURES["attention"](facts) is None


def test_what_is_not_known_of_a_curve_is_a_gap(pair: Facts) -> None:
    facts = deepcopy(pair)
    for one in facts["results"]:
        for name in ("curve", "distance"):
            for end in ("mean", "low", "high"):
                if one[name]:
                    one[name][end][2] = None
    for name in ("curves", "distance"):
        for axes in panels_of(laid_out(name, facts)):
            assert len(axes.lines) == 2
            for line in axes.lines:
                assert np.flatnonzero(np.isnan(line.get_ydata())).tolist() == [2]
            assert np.isfinite(axes.get_ylim()).all()


def profile(pair: Facts, scores: list[float]) -> Facts:
    """Facts of a learner with these scores, exactly where they are."""
    facts = crowd(pair, ["moie K=10"])
    found = facts["aggregate"]
    found["thresholds"] = sorted({*scores})
    share = [float(np.mean(np.asarray(scores) > tau)) for tau in found["thresholds"]]
    ends = {"low": [None] * len(share), "high": [None] * len(share)}
    found["profiles"] = [{"value": share, **ends}]
    return facts


@pytest.mark.parametrize("n", [1, 5, 2000])
def test_a_profile_keeps_all_of_its_jumps(n: int, pair: Facts) -> None:
    scores = np.random.default_rng(0).uniform(-0.1, 1.2, n).tolist()
    [axes] = panels_of(laid_out("profiles", profile(pair, scores)))
    x, y = axes.lines[0].get_data()
    assert axes.lines[0].get_drawstyle() == "steps-post"
    for tau in np.linspace(axes.get_xlim()[0], max(scores), 500):
        shown = y[np.searchsorted(x, tau, side="right") - 1]
        assert shown == pytest.approx(np.mean(np.asarray(scores) > tau)), tau


def test_one_very_bad_run_does_not_take_all_the_room(pair: Facts) -> None:
    [axes] = panels_of(laid_out("profiles", profile(pair, [-547.0, 0.2, 0.7, 1.1])))
    assert -0.3 < axes.get_xlim()[0] <= -0.25
    assert 1.1 <= axes.get_xlim()[1] < 1.2
    assert axes.get_xlabel() == "normalised score (cut at -0.25; the lowest is -547)"
    [axes] = panels_of(laid_out("profiles", profile(pair, [-0.1, 0.2, 0.7, 1.1])))
    assert axes.get_xlabel() == "normalised score"
    assert -0.2 < axes.get_xlim()[0] <= -0.1

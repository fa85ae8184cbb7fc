"""The page, its tables and its figures: all from the facts, and a real browser opens it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from moie.comparison import curves
from moie.comparison.facts.assembly import make_facts
from moie.comparison.figures import charts, rows
from moie.comparison.notes import wording
from moie.comparison.tables import plain
from moie.comparison.write import compare
from moie.errors import InputError
from moie.present.style import saved
from tests import tiny
from tests.browser import SIZES, Visit
from tests.comparison import synthetic
from tests.pages import Page, look_up

ODD = "<b>odd</b>|`[x](y)`*-v0"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Curves with something to say of everything: two tasks, intervals, distances, problems."""
    tasks = ("Swing-v0", synthetic.WALKER)
    runs = [*synthetic.grid(tasks, seeds=range(3)), synthetic.run(tasks[0], seed=9, done=5)]
    warm = {"temperature": 0.5, "experts": 20}
    runs += [synthetic.run(tasks[0], seed=s, name=f"warm{s}", **warm) for s in range(2)]
    plan = [synthetic.config(task, "moie", s) for task in tasks for s in range(5)]
    path = tmp_path_factory.mktemp("curves") / "small.parquet"
    curves.write(synthetic.curves(runs, plan), path)
    return path


@pytest.fixture(scope="module")
def folder(file: Path) -> Path:
    """Of the comparison, for reading only."""
    page = compare(file)
    assert page == file.parent / "small-comparison" / "comparison.html"
    return page.parent


@pytest.fixture(scope="module")
def facts(folder: Path) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise AssertionError(name)  # JSON that a browser reads has no NaN

    return json.loads((folder / "facts.json").read_text(), parse_constant=refuse)


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "comparison.html").read_text())


def test_every_number_of_the_page_is_a_fact(page: Page, facts: dict[str, Any]) -> None:
    for path, form, text in page.numbers:
        assert text == format(look_up(facts, path), form), path
    titles = {f"{facts['name']}: learners compared"}
    assert {text for text in page.other if text.strip() not in titles} == set()


def test_the_page_has_every_final_return_and_every_remark(
    page: Page, facts: dict[str, Any]
) -> None:
    named = {path for path, _, _ in page.numbers}
    for i, one in enumerate(facts["results"]):
        for measure in ("return_sampled", "return_mean"):
            assert f"results.{i}.final.{measure}.mean" in named
            assert f"results.{i}.final.{measure}.half" in named
        has_experts = one["learner"].startswith("moie")
        assert (f"results.{i}.final.attention.mean" in named) == has_experts
        for seed in range(one["n"]):
            assert f"results.{i}.final.return_sampled.runs.{seed}" in named
    assert facts["problems"]
    assert facts["notices"]
    for kind in ("problems", "notices"):
        assert {f"{kind}.{i}" for i in range(len(facts[kind]))} <= named


def test_the_page_needs_nothing_else(page: Page, folder: Path) -> None:
    assert all(address.startswith("#") for address in page.addresses)
    links = {address.removeprefix("#") for address in page.addresses}
    ids = set(re.findall(r' id="([^"]+)"', (folder / "comparison.html").read_text()))
    assert links <= ids


def test_all_figures_are_drawn_in_all_forms(folder: Path) -> None:
    assert {path.stem for path in (folder / "figures").iterdir()} == set(charts.FIGURES)
    for name in charts.FIGURES:
        assert (folder / "figures" / f"{name}.svg").read_text().count("<svg") == 1
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        with Image.open(folder / "figures" / f"{name}.png") as picture:
            picture.verify()


def test_the_same_facts_give_the_same_figure(folder: Path, facts: dict[str, Any]) -> None:
    for ending, content in saved("front", lambda: charts.FIGURES["front"](facts)).items():
        assert content == (folder / "figures" / f"front.{ending}").read_bytes()


def test_every_learner_is_in_the_figures(folder: Path) -> None:
    names = ["moie K=10", "moie K=20", "PPO", "TRPO"]
    for name in ("curves", "final", "front"):
        words = re.findall(r"<text[^>]*>([^<]*)<", (folder / "figures" / f"{name}.svg").read_text())
        assert set(names) <= set(words)


def test_a_figure_is_readable_on_every_ground(folder: Path) -> None:
    """Its file is white below the dark ink, for README pages in dark; on the page it has the page's
    own ground and ink."""
    white = re.compile(r"<path d=\"M 0 [^>]*fill: #ffffff")
    page = (folder / "comparison.html").read_text()
    for name in charts.FIGURES:
        text = (folder / "figures" / f"{name}.svg").read_text()
        assert len(white.findall(text)) == 1
        with Image.open(folder / "figures" / f"{name}.png") as picture:
            assert picture.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)
    assert white.findall(page) == []
    assert "currentColor" in page


def test_the_table_has_the_facts(folder: Path, facts: dict[str, Any]) -> None:
    text = (folder / "table.md").read_text()
    lines, first = text.splitlines(), text.split("## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first if "|" in line]
    assert len(cells) == len(facts["results"]) + 2
    for row, one in zip(cells[2:], facts["results"], strict=True):
        final = one["final"]["return_sampled"]
        assert row[:2] == [one["task"], one["learner"]]
        assert row[3:5] == [str(one["n"]), f"{final['mean']:,.1f} ± {final['half']:,.1f}"]
        looked_at = one["final"]["attention"]
        both = looked_at and f"{looked_at['mean']:.2f} ± {looked_at['half']:.2f}"
        assert row[7] == (both or "-")
        assert row[8] == ", ".join(f"{value:.1f}" for value in final["runs"])
        assert (row[6] == "-") == (one["task"] != synthetic.WALKER)
    found = facts["aggregate"]
    for i, name in enumerate(found["learners"]):
        iqm, mean = (
            f"{one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
            for one in (found["iqm"][i], found["mean"][i])
        )
        assert f"| {name} | {iqm} | {mean} |" in lines
        beats = [one and f"{one['value']:.2f} (" for one in found["improvement"][i]]
        (row,) = [line for line in lines if line.startswith(f"| {name} |") and "| - |" in line]
        assert all(cell is None or cell in row for cell in beats)
    for text in (*facts["problems"], *facts["notices"]):
        assert f"- {plain(text)}" in lines


def test_the_evaluations_say_the_same_again(folder: Path, facts: dict[str, Any]) -> None:
    found = curves.read(folder / "evaluations.parquet")
    assert found.rows["return_sampled"].notna().all()
    assert make_facts(found, "small") == facts


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}-{size[1]}")
def visit(request: pytest.FixtureRequest, browser: Any, folder: Path) -> Iterator[Visit]:
    found = Visit(browser, folder / "comparison.html", *request.param)
    yield found
    found.check()
    found.page.context.close()


def test_a_browser_shows_it(visit: Visit) -> None:
    visit.check_width()
    visit.check_colours()
    sizes = visit.page.evaluate(
        "[...document.querySelectorAll('figure svg')].map((s) => s.getBoundingClientRect().width)"
    )
    assert len(sizes) == len(charts.FIGURES)
    assert min(sizes) > 300
    first = visit.page.locator(".problems li").first
    assert first.is_visible()
    top = visit.page.evaluate("document.querySelector('.problems').getBoundingClientRect().top")
    assert 0 <= top < 900
    for i in range(visit.page.locator("summary").count()):
        visit.page.locator("summary").nth(i).click()
    visit.check_width()


def test_nothing_else_runs(browser: Any, folder: Path) -> None:
    visit = Visit(browser, folder / "comparison.html", 1440, "light")
    visit.check()
    visit.check_sealed()
    visit.page.context.close()


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the most time."""
    monkeypatch.setattr(charts, "FIGURES", {})


def test_a_comparison_in_a_folder_of_runs_is_made_again(
    pendulum: Path, tmp_path: Path, without_figures: None
) -> None:
    tiny.copy(pendulum, tmp_path / "runs" / "one")
    page = compare(tmp_path / "runs")
    assert page == tmp_path / "runs" / "comparison" / "comparison.html"
    first = tiny.contents(page.parent)
    assert compare(tmp_path / "runs") == page
    assert tiny.contents(page.parent) == first
    assert tiny.leftovers(tmp_path) == []
    found = json.loads(first["facts.json"])
    assert [one["learner"] for one in found["results"]] == ["moie K=3"]
    assert found["results"][0]["parameters"] > 0
    assert found["n_found"] == 1


def test_only_a_comparison_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    for name in ("facts.json", "table.md", "comparison.html"):
        (tmp_path / "thesis" / name).write_text("do not touch")
    before = tiny.contents(tmp_path)
    with pytest.raises(InputError, match="exists and is not a comparison; choose another --out"):
        compare(file, tmp_path / "thesis")
    assert tiny.contents(tmp_path) == before


def test_an_end_leaves_everything_as_it_was(file: Path, tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(file, tmp_path / "out", check=stop)
    assert list(tmp_path.iterdir()) == []


def test_odd_names_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = synthetic.run(ODD, name="a|<i>b\x1b[31m")
    file = tmp_path / "odd.parquet"
    curves.write(synthetic.curves([run]), file)
    monkeypatch.setattr(charts, "FIGURES", {"final": rows.final})
    page = compare(file)
    assert "<b>odd" not in page.read_text()
    assert "&lt;b&gt;odd&lt;/b&gt;|`[x](y)`*-v0" in page.read_text()
    assert "\x1b" not in page.read_text()
    assert "a|&lt;i&gt;b\\x1b[31m" in page.read_text()
    table = (page.parent / "table.md").read_text()
    assert r"\<b\>odd\</b\>\|\`\[x\](y)\`\*-v0" in table
    assert ODD not in table
    drawn = ElementTree.parse(page.parent / "figures" / "final.svg")
    words = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert ODD in words


def test_markdown_shows_names_as_they_are() -> None:
    assert plain("batch_steps") == "batch_steps"
    assert plain("_a_ __b__ <c> $d$") == r"\_a\_ \_\_b\_\_ \<c\> \$d\$"


def test_what_cannot_be_printed_is_escaped() -> None:
    assert wording.printable("a\nb\x1b[0m\u202e\udcff é") == "a b\\x1b[0m\\u202e\\udcff é"

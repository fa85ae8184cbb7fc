"""A real browser opens the report from disk."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import SIZES, Visit


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}-{size[1]}")
def visit(request: pytest.FixtureRequest, browser: Any, explanation: Path) -> Iterator[Visit]:
    found = Visit(browser, explanation / "report.html", *request.param)
    yield found
    found.check()
    found.page.context.close()


def test_every_image_decodes_and_nothing_is_wider_than_the_screen(visit: Visit) -> None:
    broken = """async () => {
        const images = [...document.images];
        await Promise.all(images.map((image) => image.decode()));
        return [images.length, images.filter((image) => !image.naturalWidth).length];
    }"""
    count, empty = visit.page.evaluate(broken)
    assert count >= 3 + 2  # experts, and sheets of the video
    assert empty == 0
    visit.check_width()


def test_colours_follow_the_scheme(visit: Visit) -> None:
    visit.check_colours()


def test_nothing_else_runs(browser: Any, explanation: Path) -> None:
    visit = Visit(browser, explanation / "report.html", 1440, "light")
    visit.check()
    visit.check_sealed()
    visit.page.context.close()


@pytest.fixture
def player(browser: Any, explanation: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The page, and the episode that it plays."""
    visit = Visit(browser, explanation / "report.html", 1440, "light")
    facts = json.loads((explanation / "facts.json").read_text())
    yield visit.page, facts["shown"]
    visit.check()
    visit.page.context.close()


def leader(page: Any) -> int:
    return int(page.get_attribute("#now-leader", "data-expert"))


def picture(page: Any) -> str:
    return page.evaluate("document.getElementById('screen').toDataURL()")


@pytest.mark.parametrize("step", [0, 57, 199])
def test_the_expert_that_is_named_has_the_largest_membership(player: Any, step: int) -> None:
    page, shown = player
    page.fill("#scrubber", str(step))
    memberships = shown["memberships"][step]
    assert leader(page) == memberships.index(max(memberships))
    assert page.inner_text("#now-step") == str(step)
    first = page.inner_text("#now-members .row:first-child").split()
    assert first[:2] == ["expert", str(leader(page))]
    assert first[2] == f"{100 * max(memberships):.1f}%"


def test_the_player_moves(player: Any) -> None:
    page, _ = player
    before = picture(page)
    page.click("#play")
    for _ in range(100):
        if int(page.input_value("#scrubber")) >= 10:
            break
        page.wait_for_timeout(100)
    else:
        pytest.fail("it does not play")
    assert picture(page) != before
    assert page.inner_text("#play") == "Pause"
    page.click("#play")
    stopped = page.input_value("#scrubber")
    page.wait_for_timeout(200)
    assert page.input_value("#scrubber") == stopped


def test_the_player_obeys_the_keyboard(player: Any) -> None:
    page, shown = player
    page.focus("#player")
    for key, expected in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("PageUp", 26),
        ("PageDown", 1),
        ("End", shown["length"] - 1),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert page.input_value("#scrubber") == str(expected)
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Play"


def test_an_expert_plays_its_action(player: Any) -> None:
    page, _ = player
    button = page.locator(".card .act").first
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() == "Stop"
    script = "getComputedStyle(document.querySelector('.strip.playing img')).animationName"
    assert page.evaluate(script) == "strip"
    timing = page.evaluate(script.replace("animationName", "animationTimingFunction"))
    assert timing.startswith("steps(6")

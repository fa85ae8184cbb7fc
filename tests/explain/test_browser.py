"""A real browser opens the report from disk."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium, as the system has it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        missing = "Chromium is missing: 'apt-get install chromium' (or any of " + ", ".join(
            BROWSERS
        )
        if os.environ.get("MOIE_NO_BROWSER"):
            pytest.skip(f"{missing}); MOIE_NO_BROWSER is set")
        pytest.fail(f"{missing}); set MOIE_NO_BROWSER=1 to go without this test")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=flags)
        yield chromium
        chromium.close()


class Visit:
    """A page, and everything that it asks for or complains about."""

    def __init__(self, browser: Any, report: Path, width: int, scheme: str):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri())
        self.report = report

    def check(self) -> None:
        assert self.complaints == []
        asked = [url for url in self.requests if not url.startswith("data:")]
        assert asked == [self.report.as_uri()]


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
    wide, screen = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen


def test_colours_follow_the_scheme(visit: Visit) -> None:
    script = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    is_dark = visit.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    background = sum(visit.page.evaluate(script)) / 3
    ink = visit.page.evaluate(script.replace("backgroundColor", "color"))
    assert (background < 60) == is_dark
    assert abs(background - sum(ink) / 3) > 150


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

"""A real browser for the pages that moie writes."""

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


class Opened:
    """A page, and everything that it asks for or complains about."""

    def __init__(self, browser: Any, width: int, scheme: str, **options: Any):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def check_width(self) -> None:
        """Nothing is wider than the screen."""
        wide, screen = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen

    def check_colours(self) -> None:
        """They follow the scheme, and can be told from each other."""
        script = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        is_dark = self.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        background = sum(self.page.evaluate(script)) / 3
        ink = self.page.evaluate(script.replace("backgroundColor", "color"))
        assert (background < 60) == is_dark
        assert abs(background - sum(ink) / 3) > 150


class Visit(Opened):
    """A page that is a file."""

    def __init__(self, browser: Any, report: Path, width: int, scheme: str):
        super().__init__(browser, width, scheme, offline=True)
        self.page.goto(report.as_uri())
        self.report = report

    def check(self) -> None:
        assert self.complaints == []
        asked = [url for url in self.requests if not url.startswith("data:")]
        assert asked == [self.report.as_uri()]

    def check_sealed(self) -> None:
        """Nothing that was not written into the page runs or changes how it looks. The browser
        complains about the attempt."""
        found = self.page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "window.intruder = true";
            const sheet = document.createElement("style");
            sheet.textContent = "body { opacity: 0.5 }";
            document.head.append(script, sheet);
            document.body.insertAdjacentHTML("beforeend", '<p style="opacity: 0.5">a</p>');
            const opacity = (element) => getComputedStyle(element).opacity;
            return [window.intruder, opacity(document.body), opacity(document.body.lastChild)];
        }""")
        assert found == [None, "1", "1"]
        blocked = [text for text in self.complaints if "Content Security Policy" in text]
        assert len(blocked) == len(self.complaints) == 3
        self.complaints.clear()

"""The studio's page in a real browser, on a policy of the zoo."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli.main import main
from tests import tiny
from tests.browser import SIZES, Opened, browser

__all__ = ["browser"]
EPISODES = 2
NAME = "zoo:pendulum"


class Served:
    """A studio in a process of its own, in an empty folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        words = [sys.executable, "-m", "moie", "studio", NAME, "--no-browser"]
        self.process = subprocess.Popen(
            [*words, "--episodes", str(EPISODES)],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env=tiny.environment(),
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.address = found[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    one = Served(tmp_path_factory.mktemp("studio"))
    yield one
    one.process.terminate()
    assert one.process.wait(timeout=20) == 0
    assert one.process.stdout is not None
    one.process.stdout.close()


class Page(Opened):
    """A page of the studio that has shown something."""

    def __init__(self, browser: Any, served: Served, width: int = 1440, scheme: str = "light"):
        super().__init__(browser, width, scheme)
        self.served = served
        self.page.goto(served.address)
        self.until("window.studio && window.studio.frame && window.studio.frame.step > 2")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def until(self, condition: str) -> None:
        """Wait for a condition. Playwright's own way evaluates texts inside the page, which the
        page's Content-Security-Policy forbids."""
        deadline = time.monotonic() + 30.0
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(20)

    def frame(self) -> dict[str, Any]:
        return self.page.evaluate("window.studio.frame")

    def pause(self) -> dict[str, Any]:
        """Pause; the frame that stays."""
        self.page.click("#play")
        self.until("document.body.dataset.playing === 'false'")
        self.page.wait_for_timeout(400)
        return self.frame()

    def newer(self, version: int) -> dict[str, Any]:
        """The first frame of a later version of the policy."""
        self.until(f"window.studio.frame.version > {version}")
        return self.frame()

    def values(self, attribute: str) -> dict[str, float]:
        """What bars show, in full precision."""
        script = """(all, name) => Object.fromEntries(
            all.map((one) => [one.getAttribute(name), Number(one.dataset.value)]))"""
        return self.page.eval_on_selector_all(f"#live [{attribute}]", script, attribute)

    def slide(self, expert: int, index: int, value: float) -> None:
        """Move a slider of an expert's action, and release it."""
        self.page.eval_on_selector(
            f'[data-expert="{expert}"] [data-part="action"][data-index="{index}"]',
            """(slider, value) => {
                slider.value = value;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
                slider.dispatchEvent(new Event("change", { bubbles: true }));
            }""",
            value,
        )

    def check(self) -> None:
        """Nothing was complained of, nothing was asked of anybody else."""
        assert self.complaints == []
        own = self.served.address
        others = ("blob:", "data:", own, own.replace("http", "ws", 1))
        assert [url for url in self.requests if not url.startswith(others)] == []


def policy() -> moie.MixturePolicy:
    found = moie.load(NAME)
    assert isinstance(found, moie.MixturePolicy)
    return found


def check_explained(page: Page, acting: moie.MixturePolicy) -> None:
    """The bars are what the policy says of the state that is shown."""
    frame = page.frame()
    why = acting.explain(np.array(frame["state"]))
    shown, joints = page.values("data-member"), page.values("data-joint")
    assert shown.pop("default") == pytest.approx(why.default_share, abs=1e-6)
    said = {str(k): m for k, m in zip(why.experts, why.memberships, strict=True)}
    assert shown == pytest.approx(said, abs=1e-6)
    assert list(joints.values()) == pytest.approx(why.action.tolist(), abs=1e-6)


def test_the_page_plays_and_says_who_acts(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        first = page.frame()
        page.until(f"window.studio.frame.step > {first['step'] + 20}")
        page.pause()
        check_explained(page, policy())
        before = page.frame()["step"]
        page.page.click("#step")
        page.until(f"window.studio.frame.step === {before + 1}")
        check_explained(page, policy())
        page.until("document.querySelectorAll('.portrait img:not([hidden])').length === 10")
        painted = """document.getElementById("screen").getContext("2d")
            .getImageData(0, 0, 100, 100).data.some((value) => value > 0)"""
        assert page.page.evaluate(painted)
        page.check()


def test_a_slider_changes_the_next_action(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        before = page.pause()
        leader = int(max(before["memberships"], key=lambda k: before["memberships"][k]))
        page.slide(leader, 0, 1.25)
        changed = page.newer(before["version"])
        actions = policy().actions.copy()
        actions[leader, 0] = 1.25
        acting = replace(policy(), actions=actions)
        assert changed["state"] == before["state"]
        check_explained(page, acting)
        page.page.click("#step")
        page.until(f"window.studio.frame.step === {before['step'] + 1}")
        expected, _ = acting.predict(np.array(before["state"]), deterministic=True)
        assert page.frame()["taken"] == pytest.approx(expected.tolist(), abs=1e-6)
        page.check()


def test_mute_delete_and_undo(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        start = page.pause()
        page.page.click('[data-expert="3"] .mute')
        version = page.newer(start["version"])["version"]
        weights = policy().weights.copy()
        weights[3] = 0.0
        check_explained(page, replace(policy(), weights=weights))
        page.page.click('[data-expert="3"] .mute')
        version = page.newer(version)["version"]
        page.page.click('[data-expert="5"] .delete')
        version = page.newer(version)["version"]
        assert page.page.query_selector('[data-expert="5"]') is None
        assert "5" not in page.frame()["memberships"]
        weights = policy().weights.copy()
        weights[5] = 0.0
        why = replace(policy(), weights=weights).explain(np.array(start["state"]))
        assert page.values("data-joint")["0"] == pytest.approx(float(why.action[0]), abs=1e-6)
        page.page.click("#undo")
        page.newer(version)
        check_explained(page, policy())
        assert page.page.query_selector('[data-expert="5"]') is not None
        page.check()


def test_try_shows_what_evaluate_does(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        start = page.pause()
        page.slide(0, 0, -2.0)
        page.newer(start["version"])
        page.page.click("#try")
        page.page.wait_for_selector("#try-result table, #try-result [data-kind]", timeout=60_000)
        text = page.page.inner_text("#try-result").replace("\N{MINUS SIGN}", "-").replace(",", "")
        actions = policy().actions.copy()
        actions[0, 0] = -2.0
        for one in (policy(), replace(policy(), actions=actions)):
            measured = moie.evaluate(one, episodes=EPISODES, workers=1)
            for evaluation in (measured.sampled, measured.mean):
                assert f"{evaluation.mean:.1f}" in text
        page.check()


def test_save_then_show(browser: Any, served: Served, capsys: pytest.CaptureFixture) -> None:
    with Page(browser, served) as page:
        start = page.pause()
        page.slide(2, 0, 0.75)
        page.newer(start["version"])
        label = '[data-expert="2"] input[data-part="label"]'
        page.page.fill(label, "swing up")
        page.page.press(label, "Enter")
        page.until("document.getElementById('save-name').value !== ''")
        page.page.wait_for_timeout(300)
        assert list(served.folder.iterdir()) == []
        page.page.fill("#save-name", "mine")
        page.page.click("#save")
        page.until("document.getElementById('saved').textContent.includes('mine')")
        page.check()
    files = sorted(file.name for file in served.folder.iterdir())
    assert files == ["mine.safetensors", "mine.toml"]
    assert main(["show", str(served.folder / "mine.safetensors")]) == 0
    said = capsys.readouterr().out
    assert 'expert 2 "swing up"' in said
    assert "action set by hand" in said
    saved = moie.load(served.folder / "mine.safetensors")
    assert isinstance(saved, moie.MixturePolicy)
    assert saved.actions[2, 0] == 0.75
    assert [one["part"] for one in saved.edits] == ["label", "action"]
    assert saved.origins[3] is not None


def test_two_pages_do_not_disturb_each_other(browser: Any, served: Served) -> None:
    with Page(browser, served) as one, Page(browser, served) as other:
        start = one.pause()
        one.slide(1, 0, 2.0)
        one.newer(start["version"])
        other.pause()
        assert other.frame()["version"] == 1
        check_explained(other, policy())
        one.check()
        other.check()


def test_what_if_and_the_map(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        page.page.evaluate("document.getElementById('what-if').open = true")
        page.until("document.body.dataset.playing === 'false'")
        slider = '#what-if input[type="range"]'
        page.page.wait_for_selector(slider)
        page.until("document.querySelectorAll('#what-if canvas').length > 0")
        page.page.wait_for_timeout(500)
        assert len(page.page.query_selector_all(slider)) >= 3
        assert "takes over" in page.page.inner_text("#what-if")
        page.check()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_it_fits(browser: Any, served: Served, width: int, scheme: str) -> None:
    with Page(browser, served, width, scheme) as page:
        page.check_width()
        page.check_colours()
        unnamed = """[...document.querySelectorAll("input, select, button")].filter((one) =>
            !one.closest("[hidden]") && !(one.getAttribute("aria-label") || one.textContent.trim()
            || one.labels?.length || one.title)).map((one) => one.outerHTML)"""
        assert page.page.evaluate(unnamed) == []
        page.check()


def test_keys(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        page.page.keyboard.press("Space")
        page.until("document.body.dataset.playing === 'false'")
        page.page.wait_for_timeout(300)
        before = page.frame()
        page.page.keyboard.press(".")
        page.until(f"window.studio.frame.step === {before['step'] + 1}")
        page.page.keyboard.press("r")
        page.until(f"window.studio.frame.episode === {before['episode'] + 1}")
        assert page.frame()["step"] == 0
        page.check()

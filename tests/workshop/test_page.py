"""The studio's page in a real browser, on a policy of the zoo."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli.main import main
from tests.browser import SIZES, Opened, browser
from tests.workshop.serving import Served

__all__ = ["browser"]
EPISODES = 2
NAME = "zoo:pendulum"
WALKER = "zoo:halfcheetah-v5"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("studio")
    with Served(folder, NAME, "--episodes", str(EPISODES)) as one:
        yield one


@pytest.fixture
def walker(tmp_path: Path) -> Iterator[Served]:
    """A robot that can be pushed. One trial of it takes longer than the test that stops it."""
    with Served(tmp_path, WALKER, "--episodes", "500") as one:
        yield one


class Page(Opened):
    """A page of the studio that has shown something."""

    def __init__(
        self,
        browser: Any,
        served: Served,
        width: int = 1440,
        scheme: str = "light",
        started: str = "window.studio.frame.step > 2",
        **options: Any,
    ):
        super().__init__(browser, width, scheme, **options)
        self.served = served
        self.page.goto(served.address)
        self.until(f"window.studio && window.studio.frame && {started}")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def until(self, condition: str) -> None:
        """Wait for a condition. Playwright's own way evaluates texts inside the page, which the
        page's Content-Security-Policy forbids."""
        deadline = time.monotonic() + 60.0
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(20)

    def frame(self) -> dict[str, Any]:
        return self.page.evaluate("window.studio.frame")

    def pause(self) -> dict[str, Any]:
        """Pause; the frame that stays."""
        self.page.click("#play")
        return self.stay()

    def stay(self) -> dict[str, Any]:
        """The frame that stays, once the simulator itself has paused."""
        self.until("document.body.dataset.playing === 'false' && !window.studio.frame.playing")
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
        page.until("document.getElementById('changes-count').textContent.startsWith('2 changes')")
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


def test_solo_redo_and_back(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        version = page.pause()["version"]
        page.page.click('[data-expert="4"] .solo')
        version = page.newer(version)["version"]
        weights = np.where(np.arange(policy().n_experts) == 4, policy().weights, 0.0)
        check_explained(page, replace(policy(), weights=weights))
        assert "9 experts silent" in page.page.inner_text("#changes-count")
        assert "9 experts are silent" in page.page.inner_text("#save-silent")
        page.page.click('[data-expert="4"] .solo')
        version = page.newer(version)["version"]
        page.slide(4, 0, 1.0)
        version = page.newer(version)["version"]
        page.page.keyboard.press("z")
        version = page.newer(version)["version"]
        check_explained(page, policy())
        page.page.keyboard.press("Z")
        version = page.newer(version)["version"]
        actions = policy().actions.copy()
        actions[4, 0] = 1.0
        check_explained(page, replace(policy(), actions=actions))
        assert re.search(r"from -?\d\.\d{1,4} to 1", page.page.text_content("#change-list"))
        page.page.click("#original")
        page.newer(version)
        check_explained(page, policy())
        page.check()


def test_closeness(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        version = page.pause()["version"]
        page.page.click("#closeness summary")
        page.page.fill('[data-exact="temperature"]', "0.5")
        page.page.press('[data-exact="temperature"]', "Enter")
        version = page.newer(version)["version"]
        check_explained(page, replace(policy(), temperature=0.5))
        page.page.fill('[data-exact="metric"][data-index="2"]', "0.25")
        page.page.press('[data-exact="metric"][data-index="2"]', "Enter")
        page.newer(version)
        assert "2 changes by hand" in page.page.inner_text("#changes-count")
        page.check()


def test_an_expert_is_added_where_it_is_and_moved(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        start = page.pause()
        page.page.click("#add")
        version = page.newer(start["version"])["version"]
        card = '[data-expert="10"]'
        page.until(f"document.querySelector('{card} .portrait img:not([hidden])') !== null")
        assert page.frame()["distances"]["10"] == pytest.approx(0.0, abs=1e-9)
        page.page.click(f"{card} .prototype summary")
        field = f'{card} [data-part="prototype"][data-index="0"]'
        shown = float(page.page.input_value(field))
        assert shown == pytest.approx(start["state"][0], abs=1e-4)
        page.page.fill(field, "0.5")
        page.page.press(field, "Enter")
        page.newer(version)
        page.until(f"document.querySelector('{card} .portrait img').hidden")
        assert "never visited" in page.page.inner_text(f"{card} .portrait")
        page.page.click("#undo")
        page.until(f"!document.querySelector('{card} .portrait img').hidden")
        page.check()


def test_restart_and_speed(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        page.page.select_option("#speed", "4")
        page.page.fill("#seed", "7")
        page.page.click("#restart")
        page.until("window.studio.frame.seed === 7 && window.studio.frame.step > 20")
        assert page.page.inner_text("#at-seed") == "7"
        page.page.select_option("#actions", "sampled")
        page.until("document.querySelector('#joints .taken:not([hidden])') !== null")
        said = page.pause()
        assert page.page.inner_text("#return") == f"{said['return']:.1f}"
        first = max(said["memberships"], key=lambda k: said["memberships"][k])
        away = page.page.inner_text(f'#members [data-member="{first}"]').split()[-1]
        assert float(away) == pytest.approx(said["distances"][first], abs=0.05)
        page.check()


def test_it_starts_paused_for_who_wants_little_motion(browser: Any, served: Served) -> None:
    with Page(browser, served, started="!studio.frame.playing", reduced_motion="reduce") as page:
        assert page.page.inner_text("#play") == "Play"
        page.page.click("#play")
        page.until("window.studio.frame.playing && window.studio.frame.step > 2")
        page.check()


def test_push_and_a_trial_that_is_stopped(browser: Any, walker: Served) -> None:
    """The robot stays in the picture however far it goes, too."""
    with Page(browser, walker) as page:
        page.page.select_option("#push-direction", "backward")
        page.page.click("#push")
        page.until("!document.getElementById('hit').hidden")
        page.until("document.getElementById('hit').hidden")
        page.page.click("#try")
        page.until("document.getElementById('try-done').textContent.includes(' of 1000 episodes')")
        page.page.click("#stop-try")
        page.until("document.getElementById('try-done').textContent === 'Stopped.'")
        assert page.page.is_enabled("#try")
        page.until("window.studio.frame.position > 15")
        page.pause()
        robot = """(() => {
            const { width, height } = document.getElementById("screen");
            const { data } = document.getElementById("screen").getContext("2d")
                .getImageData(0, 0, width, height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) count += data[i] > data[i + 2] + 40;
            return count / (width * height);
        })()"""
        assert page.page.evaluate(robot) > 0.005  # it is brown; floor and sky are not
        page.page.click("#push")
        page.until("document.getElementById('hit').textContent.includes('next step')")
        page.check()


def test_what_if_and_the_map(browser: Any, served: Served) -> None:
    with Page(browser, served) as page:
        page.page.click("#what-if > summary")
        at = page.stay()["state"]
        slider = "#what-if [data-feature]"
        page.until("document.getElementById('map').getAttribute('aria-label').includes('leads:')")
        page.until("document.getElementById('what-if').innerText.includes('takes over')")
        assert len(page.page.query_selector_all(slider)) == 3
        page.page.fill('[data-feature-exact="2"]', "5")
        page.page.press('[data-feature-exact="2"]', "Enter")
        page.until("document.getElementById('would-lead').textContent.includes('would')")
        why = policy().explain(np.array([*at[:2], 5.0]))
        member = f'#would-members [data-would-member="{why.experts[0]}"]'
        page.until(
            f"Math.abs(document.querySelector('{member}').dataset.value"
            f" - {why.memberships[0]}) < 1e-6"
        )
        page.page.hover("#map")
        page.until("/ leads with \\d+%$/.test(document.getElementById('map-at').textContent)")
        said = page.page.inner_text("#would-lead")
        box = page.page.locator("#map").bounding_box()
        page.page.mouse.move(box["x"] + 80, box["y"] + 30)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + 90, box["y"] + 40)
        page.page.mouse.up()
        page.until(f"document.getElementById('would-lead').textContent !== {said!r}")
        page.page.click("#present")
        page.until("!document.getElementById('would-lead').textContent.includes('would')")
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
        before = page.stay()
        page.page.keyboard.press(".")
        page.until(f"window.studio.frame.step === {before['step'] + 1}")
        page.page.keyboard.press("r")
        page.until(f"window.studio.frame.episode === {before['episode'] + 1}")
        assert page.frame()["step"] == 0
        page.check()

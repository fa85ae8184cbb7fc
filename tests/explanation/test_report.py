"""Every number of the report is in the facts, and the facts are recomputed from the policy file."""

import json
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import moie
from moie import api
from moie.cli import main
from moie.explanation import figures, images
from moie.explanation.figures import FIGURES
from moie.explanation.pictures import Pictures
from moie.explanation.report import page as page_of
from moie.policy import file as policy_file
from moie.runs.truth import SAID
from moie.surgery.draft import Draft, built
from tests import tiny
from tests.explanation import recompute
from tests.pages import Page, look_up


@pytest.fixture(scope="module")
def page(explanation: Path) -> Page:
    return Page((explanation / "report.html").read_text())


@pytest.fixture(scope="module")
def facts(explanation: Path) -> dict[str, Any]:
    return json.loads((explanation / "facts.json").read_text())


@pytest.fixture(scope="module")
def expected(facts: dict[str, Any], pendulum: Path) -> dict[str, Any]:
    return recompute.facts(pendulum, facts)


def test_every_number_agrees_with_the_policy_file(
    page: Page, facts: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert len(page.numbers) > 100
    for path, form, text in page.numbers:
        value = look_up(facts, path)
        assert text == format(value, form), path
        np.testing.assert_allclose(
            value, look_up(expected, path), rtol=1e-5, atol=1e-6, err_msg=path
        )


def test_what_the_figures_and_the_player_show_agrees_too(
    facts: dict[str, Any], expected: dict[str, Any]
) -> None:
    np.testing.assert_allclose(facts["overlap"], expected["overlap"], atol=1e-9)
    for name in ("memberships", "actions"):
        np.testing.assert_allclose(facts["shown"][name], expected["shown"][name], atol=1e-4)
    np.testing.assert_array_equal(facts["shown"]["leader"], expected["shown"]["leader"])
    assert facts["spacing"] == pytest.approx(expected["spacing"])
    for name in ("curve", "curve_episodes"):
        np.testing.assert_allclose(facts["default"][name], expected["default"][name], atol=1e-9)
    for found, one in zip(facts["features"], expected["features"], strict=True):
        assert {name: found[name] for name in one} == pytest.approx(one)
    assert facts["pruning"]["kept"] == expected["pruning"]["kept"]
    rows = zip(facts["pruning"]["curve"], expected["pruning"]["curve"], strict=True)
    for row, one in rows:
        assert {name: row[name] for name in ("removed", "heir", "answer")} == {
            name: one[name] for name in ("removed", "heir", "answer")
        }


def agrees(text: str, facts: dict[str, Any], expected: dict[str, Any], part: str) -> set[str]:
    """Whether the page's numbers of one part of the facts are right; where they are."""
    found = set()
    for path, form, said in Page(text).numbers:
        if path.startswith(f"{part}."):
            assert said == format(look_up(facts, path), form), path
            wanted = look_up(expected, path)
            np.testing.assert_allclose(look_up(facts, path), wanted, rtol=1e-6, err_msg=path)
            found.add(path)
    return found


@pytest.fixture
def sided() -> dict[str, Any]:
    """A policy for `Known` that says what is best on either side of zero, and knows that only the
    first feature counts."""
    return {
        "experts": 2,
        "prototypes": np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]),
        "actions": np.array([[-0.4], [0.4]]),
        "weights": np.array([900.0, 900.0]),
        "temperature": 8.0,
        "metric": np.array([2.0, 0.1, 0.01]),
        "feature_names": ("place", "height", "depth"),
        "action_names": ("push",),
    }


def test_how_literally_a_policy_with_a_metric_may_be_taken(
    sided: dict[str, Any], tmp_path: Path, without_figures: None
) -> None:
    text, facts = explained("tests.probes:Known-v0", tmp_path, episodes=10, **sided)
    expected = recompute.facts(tmp_path / "policy.safetensors", facts)
    paths = agrees(text, facts, expected, "truth")
    shares = {f"truth.{name}.kept" for name in ("whole", "alone", "pair", "default")}
    assert paths >= shares | {"truth.attention", "truth.coverage", "truth.alone.return"}
    assert facts["truth"]["reading"] == "literal"
    assert facts["truth"]["alone"]["kept"] > 0.9
    assert facts["truth"]["alone"]["ratio"] is None  # returns are negative
    assert "This program may be taken literally." in text
    assert "Every expert's action lies within the action space." in text
    # What counts as close, the first feature before the others.
    assert len(agrees(text, facts, expected, "closeness")) == 6
    assert [row["feature"] for row in facts["closeness"]] == [0, 1, 2]
    assert facts["closeness"][0]["radius"] == pytest.approx(1 / 2 / np.sqrt(8))
    assert facts["policy"]["metric"] == [2.0, 0.1, 0.01]
    assert facts["policy"]["radii"] == [row["radius"] for row in facts["closeness"]]
    assert "What counts as close" in text
    assert [said for said in Page(text).other if "Known-v0" not in said] == []
    # Distances are those of the policy.
    agrees(text, facts, expected, "experts")
    agrees(text, facts, expected, "default")
    assert facts["spacing"] == pytest.approx(expected["spacing"])


def test_a_policy_without_a_metric_has_no_table_of_what_counts_as_close(
    explanation: Path, facts: dict[str, Any]
) -> None:
    assert facts["closeness"] is None
    assert facts["policy"]["metric"] is None
    assert "What counts as close" not in (explanation / "report.html").read_text()


@pytest.mark.parametrize("reading", list(SAID))
def test_each_reading_has_words_of_its_own(
    reading: str, explanation: Path, facts: dict[str, Any]
) -> None:
    changed = json.loads(json.dumps(facts))
    kept = {"literal": (0.95, 1.2), "pairs": (0.4, 0.93), "guide": (0.4, 0.6), "blend": (-0.1, 0.2)}
    alone, pair = kept.get(reading, (None, None))
    changed["truth"]["reading"] = reading
    changed["truth"]["alone"]["kept"], changed["truth"]["pair"]["kept"] = alone, pair
    changed["truth"]["in_range"] = 0.5
    text = page_of(changed, {}, Pictures(), ("", None)).decode()
    others = [words for name, words in SAID.items() if name != reading]
    assert f"<b>This program {SAID[reading]}.</b>" in text
    assert not any(f"This program {words}." in text for words in others)
    assert "cannot be carried out as written" in text
    numbers = {path: said for path, _, said in Page(text).numbers}
    if alone is not None:
        assert numbers["truth.alone.kept"] == f"{alone:.0%}"
        assert numbers["truth.pair.kept"] == f"{pair:.0%}"


def test_no_number_of_the_page_lacks_its_fact(page: Page, pendulum: Path) -> None:
    names = {moie.load(pendulum).task, f"{moie.load(pendulum).task}: the policy explained"}
    assert {text for text in page.other if text.strip() not in names} == set()


def test_the_page_needs_nothing_else(page: Page, explanation: Path) -> None:
    assert all(address.startswith(("data:image/webp;base64,", "#")) for address in page.addresses)
    assert (explanation / "report.html").stat().st_size < 25e6


def test_figures_and_scenes_are_files_too(explanation: Path, facts: dict[str, Any]) -> None:
    drawn = {path.stem for path in (explanation / "figures").iterdir()}
    assert drawn | {"cycle"} == {*FIGURES, "rollout"}
    for name in drawn:
        assert (explanation / "figures" / f"{name}.svg").read_text().count("<svg") == 1
        assert (explanation / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        with Image.open(explanation / "figures" / f"{name}.png") as picture:
            picture.verify()
    for expert in range(3):
        with Image.open(explanation / "scenes" / f"expert-{expert}.webp") as moving:
            assert moving.n_frames == 6
    with Image.open(explanation / "scenes" / "episode.webp") as video:
        # Equal pictures one after the other are one that is shown longer.
        assert 100 < video.n_frames <= facts["scenes"]["n_frames"] == 200


def test_a_rollout_is_drawn_below_pictures_of_those_who_lead(
    explanation: Path, facts: dict[str, Any]
) -> None:
    stills = {k: (explanation / "scenes" / f"expert-{k}.png").read_bytes() for k in range(3)}
    figure = figures.rollout(facts, stills)  # type: ignore[arg-type]  facts as they are on disk
    assert figure is not None
    *pictures, axis = figure.axes
    everyone = {f"expert {e['expert']}" for e in facts["experts"]}
    leads = {f"expert {e['expert']}" for e in facts["experts"] if e["lead"] > 0} or everyone
    assert {one.get_title() for one in pictures} <= leads
    assert len(axis.lines) == len(pictures) >= 1
    memberships = np.asarray(facts["shown"]["memberships"])
    for line, picture in zip(axis.lines, pictures, strict=True):
        at, shares = (np.asarray(values) for values in line.get_data())
        k = int(picture.get_title().split()[1])
        np.testing.assert_array_equal(shares, memberships[at.astype(int), k])
    assert figures.rollout(facts, {}) is None  # type: ignore[arg-type]


def test_the_same_again_is_the_same(explanation: Path, pendulum: Path, tmp_path: Path) -> None:
    api.explain(
        pendulum, out=tmp_path / "again", episodes=3, most_episodes=40, workers=2, quiet=True
    )
    first, again = tiny.contents(explanation), tiny.contents(tmp_path / "again")
    assert first.keys() == again.keys()
    assert [name for name in first if first[name] != again[name]] == []


def test_an_environment_without_pictures_still_has_a_report(
    tmp_path: Path, without_figures: None
) -> None:
    run = tiny.train("tests.probes:Walk-v0", tmp_path / "run", iterations=1, workers=1).path
    report = api.explain(run, episodes=2, most_episodes=6, workers=1, quiet=True)
    assert report == run / "explanation" / "report.html"
    text = report.read_text()
    assert "No pictures: " in text
    assert 'id="screen"' not in text
    facts = json.loads((report.parent / "facts.json").read_text())
    assert facts["scenes"]["n_matching"] == facts["scenes"]["n_replayed"] == 3


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the most time, and are the same everywhere."""
    monkeypatch.setattr(figures, "FIGURES", {})
    monkeypatch.setattr(figures, "rollout", lambda *_: None)


def explained(
    task: str, tmp_path: Path, quiet: bool = True, episodes: int = 2, **changes: Any
) -> tuple[str, dict[str, Any]]:
    """Text and facts of the explanation of an untrained policy."""
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(tiny.policy(task, **changes)))
    report = api.explain(file, episodes=episodes, workers=1, quiet=quiet, pruning=False)
    return report.read_text(), json.loads((report.parent / "facts.json").read_text())


def test_an_environment_that_does_not_repeat_is_named(
    tmp_path: Path, without_figures: None
) -> None:
    run = tiny.train("tests.probes:Moody-v0", tmp_path / "run", iterations=1, workers=1).path
    report = api.explain(run, episodes=2, workers=1, quiet=True, pruning=False)
    text = report.read_text()
    assert "The replay does not lead to the stored state: it differs by" in text
    assert "The environment does not repeat: the video was made" in text


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("Late", "it cannot be drawn here: the window is gone"),
        ("Blind", "it cannot be drawn here: render() returns no picture"),
        ("Fragile", "the environment fails: RuntimeError: it broke (probes.py, line "),
    ],
)
def test_what_fails_while_pictures_are_made_is_said(
    task: str, problem: str, tmp_path: Path, without_figures: None, capfd: pytest.CaptureFixture
) -> None:
    text, facts = explained(f"tests.probes:{task}-v0", tmp_path, quiet=False)
    assert f"no pictures: {problem}" in capfd.readouterr().err
    assert problem in facts["scenes"]["problem"]
    assert f"No pictures: {problem}" in text
    assert facts["scenes"]["n_frames"] == 0


@pytest.mark.parametrize("task", ["Grey", "Growing"])
def test_odd_pictures_are_shown(task: str, tmp_path: Path, without_figures: None) -> None:
    _, facts = explained(f"tests.probes:{task}-v0", tmp_path)
    assert facts["scenes"]["problem"] is None
    assert facts["scenes"]["n_frames"] == facts["shown"]["length"]


def test_odd_names_and_a_single_expert_are_explained(tmp_path: Path) -> None:
    names = ("<b>bold</b>", "cost $\\frac{$", "a & b")
    text, _ = explained("tests.probes:Walk-v0", tmp_path, feature_names=names)
    assert "<b>bold</b>" not in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    one = tiny.policy("tests.probes:Walk-v0", experts=1)
    file = tmp_path / "one.safetensors"
    file.write_bytes(policy_file.to_bytes(one))
    api.explain(file, episodes=2, most_episodes=6, workers=1, quiet=True)


@pytest.mark.parametrize("task", ["Grid", "Wide", "Asymmetric", "Scales"])
def test_odd_spaces_are_explained(task: str, tmp_path: Path) -> None:
    text, facts = explained(f"tests.probes:{task}-v0", tmp_path)
    assert facts["policy"]["n_features"] == len(facts["features"])
    assert task in text


def test_facts_are_json_that_a_browser_reads(explanation: Path) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads((explanation / "facts.json").read_text(), parse_constant=refuse)


def test_pictures_keep_to_their_budget() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (40, 120, 160, 3), dtype=np.uint8)
    frames = list(noise)
    film = images.video(frames, 1, 200_000)
    assert sum(map(len, film.sheets)) < 1.4 * 200_000
    assert film.n * film.every == 40
    assert film.every > 1
    row = images.strip(frames[:6], 20_000)
    assert len(row.sheets[0]) < 1.4 * 20_000
    assert (row.n, row.width < 160) == (6, True)


def test_gradient_prototypes_say_how_far_they_are(tmp_path: Path, without_figures: None) -> None:
    options = {"algorithm": "ppo-diffproto", "ppo_epochs": 2, "iterations": 1, "workers": 1}
    run = tiny.train("pendulum", tmp_path / "run", **options).path
    report = api.explain(run, episodes=2, workers=1, quiet=True, pruning=False)
    text = report.read_text()
    assert text.count("Never visited.") == 3
    assert text.count("The picture shows the nearest visited state") == 3
    page = Page(text)
    facts = json.loads((report.parent / "facts.json").read_text())
    for i in range(3):
        assert facts["experts"][i]["distance"] > 0
        assert f"experts.{i}.distance" in {path for path, _, _ in page.numbers}


def test_prototypes_of_a_gradient_are_not_called_visited_because_a_person_set_a_weight(
    tmp_path: Path, without_figures: None
) -> None:
    policy = tiny.policy("pendulum")
    draft = replace(Draft.of(policy), weights=policy.weights * 2)
    file = built(draft, policy).save(tmp_path / "edited.safetensors")
    report = api.explain(file, episodes=2, workers=1, quiet=True, pruning=False, pictures=False)
    text = report.read_text()
    assert "really visited" not in text
    assert text.count("found by gradient") == 2
    assert text.count("(but for those that a person has changed since)") == 1


def test_a_pruned_policy_can_be_explained(
    explanation: Path, tmp_path: Path, without_figures: None
) -> None:
    file = tmp_path / "small.safetensors"
    file.write_bytes((explanation / "pruned.safetensors").read_bytes())
    report = api.explain(file, episodes=2, most_episodes=6, workers=1, quiet=True, pictures=False)
    assert report == tmp_path / "small-explanation" / "report.html"
    assert "none were asked for" in report.read_text()


def test_what_a_person_named_and_changed_is_shown(
    pendulum: Path, tmp_path: Path, without_figures: None
) -> None:
    policy = moie.load(pendulum)
    draft = Draft.of(policy)
    prototypes, actions = policy.prototypes.copy(), policy.actions.copy()
    prototypes[0] += 0.1
    actions[1] /= 2
    labels = ("<b>push</b> & $go", "", "a very long label of an expert")
    draft = replace(draft, labels=labels, prototypes=prototypes, actions=actions)
    file = built(draft, policy).save(tmp_path / "edited.safetensors")
    report = api.explain(file, episodes=2, workers=1, quiet=True, pruning=False)
    text, facts = report.read_text(), json.loads((report.parent / "facts.json").read_text())
    assert {e["expert"]: e["by_hand"] for e in facts["experts"]} == {
        0: ["prototype"],
        1: ["action"],
        2: [],
    }
    assert '"&lt;b&gt;push&lt;/b&gt; &amp; $go" <small>' in text
    assert "<b>push" not in text
    assert text.count("Made by hand, not visited. The picture shows the nearest") == 1
    assert text.count("a person&#39;s hand") + text.count("a person's hand") == 1
    assert text.count("<dt>set by hand</dt>") == 2
    assert "gradient" not in text
    assert facts["scenes"]["n_matching"] == facts["scenes"]["n_replayed"] == 2
    (player,) = re.findall(r'<script id="facts"[^>]*>(.*?)</script>', text)
    assert json.loads(player)["experts"] == [moie.load(file).label(k) for k in range(3)]
    (axis,) = figures.membership(facts).axes
    said = [text.get_text() for text in axis.get_legend().get_texts()]
    assert {'expert 0 "<b>push</b> & $go"', "expert 1", 'expert 2 "a very long label o…"'} < set(
        said
    )


def test_only_an_explanation_is_replaced(pendulum: Path, tmp_path: Path, capfd) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("do not touch")
    words = ["explain", str(pendulum), "--out", str(tmp_path / "thesis")]
    assert main.main(words) == 2
    assert "exists and is not an explanation; choose another --out" in capfd.readouterr().err
    assert tiny.contents(tmp_path) == {"thesis/chapter.tex": b"do not touch"}


def test_ctrl_c_leaves_everything_as_it_was(pendulum: Path, tmp_path: Path) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    before = tiny.contents(run)
    words = ("explain", str(run), "--workers", "1", "--episodes", "20")
    options: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "env": tiny.environment()}
    with subprocess.Popen(tiny.command(*words), **options) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("pruning"):
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.endswith("moie: stopped\n")
    assert tiny.contents(run) == before
    assert tiny.leftovers(run) == []

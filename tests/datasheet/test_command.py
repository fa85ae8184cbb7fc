"""`moie datasheet`, its page, the unfolded program, and policies that are unlike the zoo's."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli import main
from moie.sheet import branching
from moie.sheet.returns import measured, threshold
from moie.sheet.sheet import Datasheet
from moie.sheet.unfolded import compiled, unfolded
from tests import tiny
from tests.datasheet.conftest import ZOO, parts_of


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branching, "WORK", 1e6)


def small(**changes: Any) -> moie.MixturePolicy:
    """A policy with states that it is said to have visited."""
    policy = tiny.policy(**changes)
    return replace(policy, visited=tiny.visited(policy.prototypes[[0, 1, 2, 1]] * 0.7))


# --- the unfolded program ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ZOO)
def test_the_unfolded_program_is_the_policy(name: str) -> None:
    parts = parts_of(name)
    policy, source = parts.policy, unfolded(parts.policy)
    assert not re.search(r"\b(for|while|numpy|np|sum|import math)\b|\[", source)
    act = compiled(source)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=parts.states.shape) * policy.radii
    states = np.concatenate([parts.states[:100], parts.states + noise, policy.prototypes])
    found = np.asarray([act(*state) for state in states.tolist()])
    wanted = np.clip(policy.means(states), policy.action_low, policy.action_high)
    np.testing.assert_allclose(found, wanted, atol=1e-9, rtol=0)


def test_an_unfolded_program_knows_unbounded_commands() -> None:
    low = np.full(2, -np.inf) if len(small().action_low) == 2 else np.asarray([-np.inf])
    policy = replace(small(), action_low=low, action_high=-low)
    act = compiled(unfolded(policy))
    state = policy.prototypes[0]
    np.testing.assert_allclose(act(*state.tolist()), policy.means(state[None])[0], atol=1e-9)


# --- the returns ---------------------------------------------------------------------------------


def test_thresholds_are_of_mujoco_in_two_versions() -> None:
    assert [threshold(f"Hopper-v{v}") for v in (3, 4, 5)] == [None, 2000, 2000]
    assert threshold("HalfCheetah-v4") == 3000
    assert threshold("Walker2d-v5") == 2000
    assert threshold("HopperBulletEnv-v0") is None


def test_the_return_is_that_of_the_episodes() -> None:
    from moie.runs.evaluation import Evaluator, summary

    policy = tiny.policy("Pendulum-v1")
    found = measured(policy, 4, 7, 1)
    with Evaluator(policy.task, 7, 1) as evaluator:
        returns = summary("mean", evaluator.episodes(policy, 4, kinds=("mean",))["mean"]).returns
    assert found["mean"] == pytest.approx(np.mean(returns))
    assert min(returns) <= found["low"] < found["mean"] < found["high"] <= max(returns)
    assert found["is_met"] is None


# --- policies unlike the zoo's -------------------------------------------------------------------


def test_a_policy_without_weights_is_its_default() -> None:
    policy = replace(small(), weights=np.zeros(3))
    found = moie.datasheet(policy).facts
    for one, default in zip(found["commands"], policy.default_action, strict=True):
        assert one["low"] == one["high"] == pytest.approx(default)
    assert found["leading"]["experts"] == []
    assert {one["bound"] for one in found["slope"]["joints"]} == {0.0}
    assert found["tolerance"]["smallest"] is None
    assert "only one part can lead" in str(Datasheet(found))


def test_a_single_expert() -> None:
    policy = tiny.policy(experts=1)
    sheet = moie.datasheet(
        replace(
            policy, visited=tiny.visited(np.stack([policy.prototypes[0], 0 * policy.prototypes[0]]))
        )
    )
    assert len(sheet.facts["deletion"]) == 1
    assert str(sheet)
    assert sheet.html()


def test_experts_at_one_place() -> None:
    policy = small()
    places = policy.prototypes.copy()
    places[1] = places[0]
    found = moie.datasheet(replace(policy, prototypes=places)).facts
    weakest = int(np.argmin(policy.weights[:2]))
    assert policy.label(weakest) in found["leading"]["never"]


def test_without_visited_states_it_simulates(tmp_path: Path) -> None:
    policy = tiny.policy("Pendulum-v1")
    assert policy.visited is None
    found = moie.datasheet(policy, workers=1).facts
    assert found["states"] == {"n": 500, "episodes": 5}
    with pytest.raises(moie.InputError, match="no_such"):
        moie.datasheet(replace(policy, task="no_such-v0"), workers=1)


def test_a_policy_without_experts_is_refused() -> None:
    policy = moie.load(tiny.ROOT / "tests/data/linear-v1.safetensors")
    with pytest.raises(moie.InputError, match="no experts: a data sheet is about experts"):
        moie.datasheet(policy)


# --- the command line ----------------------------------------------------------------------------


def test_the_text_fits_a_terminal(capfd: pytest.CaptureFixture) -> None:
    assert main.main(["datasheet", "zoo:hopper"]) == 0
    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        *("COMMANDS", "hip    stays within  -0.02  to  0.75", "WHO CAN LEAD", "SIZE"),
        *("5 of 10 experts can lead", "SENSOR TOLERANCE", "500 visited states", "SLOPE"),
        *("Proved for the visited box", "208 parameters", "per rad"),
    ):
        assert part in text
    assert "Return" not in text


def test_json_has_all_figures(capfd: pytest.CaptureFixture) -> None:
    outputs = []
    for words in (["--json"], ["--format", "json"]):
        assert main.main(["datasheet", "zoo:inverted-pendulum", *words]) == 0
        outputs.append(json.loads(capfd.readouterr().out))
    for found in outputs:
        assert found["size"].pop("microseconds") > 0
    assert outputs[0] == outputs[1]
    found = outputs[0]
    assert [len(one["features"]) for one in found["slope"]["joints"]] == [5]
    assert [len(one["ranges"]) for one in found["leading"]["experts"] if not one["nowhere"]]
    assert {*found} == {
        *("policy", "states", "features", "commands", "leading"),
        *("tolerance", "slope", "deletion", "size"),
    }


def test_numbers_of_the_page_are_the_facts(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    file = tmp_path / "new" / "sheet.html"
    assert main.main(["datasheet", "zoo:hopper", "--out", str(file)]) == 0
    assert capfd.readouterr().out == f"page: {file}\n"
    page, facts = file.read_text(), moie.datasheet("zoo:hopper").facts
    numbers = re.findall(r'<span data-fact="([^"]*)" data-format="([^"]*)">([^<]*)</span>', page)
    assert len(numbers) > 60
    for path, form, shown in numbers:
        value: Any = facts
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        if path != "size.microseconds":
            assert html.unescape(shown) == format(value, form), path
    assert "size: A4" in page
    assert "script" not in page.replace("script-src", "")


def test_returns_are_on_the_sheet() -> None:
    sheet = moie.datasheet(tiny.policy("Pendulum-v1"), episodes=3, workers=1)
    assert sheet.facts["size"]["returns"]["episodes"] == 3
    assert "over 3 fresh episodes with mean" in " ".join(str(sheet).split())
    assert 'data-fact="size.returns.low"' in sheet.html().decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no run or policy file at nowhere"),
        (["zoo:hopper", "--episodes", "-1"], "episodes is -1, expected zero or more"),
        (["zoo:hopper", "--format", "xml"], "format"),
    ],
)
def test_mistakes_are_named(words: list[str], said: str, capfd: pytest.CaptureFixture) -> None:
    assert main.main(["datasheet", *words]) == 2
    assert said in capfd.readouterr().err


def test_help(capfd: pytest.CaptureFixture) -> None:
    assert main.main(["datasheet", "--help"]) == 0
    text = capfd.readouterr().out
    for word in ("usage: moie datasheet RUN [options]", "--json", "--out FILE.html", "--episodes"):
        assert word in text


def test_a_policy_with_too_many_features_is_refused_in_one_line() -> None:
    n = 301
    wide = tiny.policy(
        "Pendulum-v1",
        prototypes=np.zeros((3, n)),
        feature_mean=np.zeros(n),
        feature_scale=np.ones(n),
        feature_names=tuple(f"x{i}" for i in range(n)),
        observation_shape=(n,),
    )
    with pytest.raises(moie.InputError, match="301 features: a data sheet is made of at most 300"):
        moie.datasheet(wide)

"""Wherever a policy is read, experts come in the same order and are said to be used as much."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.exports.notes import notes_of
from moie.policy.mixture import Mixture
from moie.policy.reading import Reading, percent
from moie.workshop.workbench import Workbench

NAMES = [entry.name for entry in moie.zoo.entries()]


def mixture(path: Any) -> Mixture:
    policy = moie.load(path)
    assert isinstance(policy, Mixture)
    return policy


def said(reading: Reading, k: int) -> str:
    assert reading.leads is not None
    led = float(reading.leads[k])
    return f"leads {percent(led)}" if led else "did not lead there"


@pytest.fixture(scope="module")
def facts(explanation: Path) -> dict[str, Any]:
    return json.loads((explanation / "facts.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_show_studio_toml_and_exports_agree(name: str) -> None:
    policy = mixture(f"zoo:{name}")
    reading = Reading(policy)
    use = {k: f"{said(reading, k)}, membership {reading.share[k]:.1%}" for k in reading.order}

    toml = moie.show(policy, format="toml")
    blocks = re.findall(r"^\[\[expert\]\]  # (.*?), from .*\nid = (\d+)$", toml, re.MULTILINE)
    assert [(int(k), text) for text, k in blocks] == list(use.items())

    told = Workbench(policy).told()["experts"]
    assert [(one["id"], one["use"]) for one in told] == list(use.items())

    exported = notes_of(policy, "").experts
    for k, text in use.items():
        assert f"{policy.label(k)}: {text}, " in exported[k]

    shown = moie.show(policy)
    leading = [int(k) for k in re.findall(r"^IF .*# expert (\d+)", shown, re.MULTILINE)]
    others = [int(k) for k in re.findall(r"^ALSO .*# expert (\d+)", shown, re.MULTILINE)]
    assert leading == [k for k in reading.order if k in leading]
    assert others == [k for k in reading.order if k in others]
    for k in leading:
        assert re.search(rf"# expert {k}: {re.escape(said(reading, k))}", shown)


def test_the_report_agrees(pendulum: Path, facts: dict[str, Any]) -> None:
    reading = Reading(mixture(pendulum))
    assert reading.leads is not None
    assert [one["expert"] for one in facts["experts"]] == reading.order
    np.testing.assert_allclose(
        [one["lead"] for one in facts["experts"]], reading.leads[reading.order]
    )
    np.testing.assert_allclose(
        [one["share"] for one in facts["experts"]], reading.share[reading.order]
    )
    assert facts["default"]["lead"] == pytest.approx(reading.leads[-1])

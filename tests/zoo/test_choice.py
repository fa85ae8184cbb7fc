"""How the policies of the zoo were chosen: the rule, and the published table of candidates."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.files import parse_json
from moie.policy import file as policy_file
from moie.policy.mixture import Mixture
from tests import tiny

_spec = importlib.util.spec_from_file_location("zoo_benchmark", tiny.ROOT / "benchmarks" / "zoo.py")
assert _spec is not None
assert _spec.loader is not None
zoo = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(zoo)


def candidate(
    earned: float, alone: float | None = None, reading: str = "guide", attention: float = 2.0
) -> dict[str, Any]:
    judged = {} if alone is None else {"alone": alone, "reading": reading}
    return {"return": earned, "attention": attention, **judged}


def test_finalists_have_nine_tenths_of_the_best_gain() -> None:
    """From the default action's return, which may be negative."""
    records = [candidate(earned) for earned in (-200.0, -279.9, -280.1, -1000.0)]
    assert zoo.finalists(records, default=-1000.0) == records[:2]


def test_of_the_finalists_the_most_literal_is_chosen() -> None:
    best, literal = candidate(1000.0, 400.0), candidate(950.0, 900.0, "literal")
    pairs, other = candidate(960.0, 500.0, "pairs"), candidate(800.0)
    assert zoo.chosen([best, pairs, literal, other]) is literal
    assert zoo.chosen([best, pairs, other]) is pairs
    more = candidate(910.0, 401.0)
    assert zoo.chosen([best, more, other]) is more
    easier = candidate(905.0, 401.0, attention=1.5)
    assert zoo.chosen([more, easier]) is easier


def test_candidates_are_all_mixtures_that_are_short_and_can_be_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whichever learner: one whose actions are clipped does not do what its program says."""
    monkeypatch.setattr(zoo, "RESULTS", tmp_path)
    far = np.array([[0.0], [2.5], [0.0]])
    for name, policy in {
        "crisp-policies/good": tiny.policy("Pendulum-v1"),
        "policies/also": tiny.policy("Pendulum-v1"),
        "policies/far": tiny.policy("Pendulum-v1", actions=far),
        "policies/long": tiny.policy("Pendulum-v1", experts=11),
        "policies/linear": moie.load(tiny.ROOT / "tests" / "data" / "linear-v1.safetensors"),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        policy.save(tmp_path / f"{name}.safetensors")
    found = [str(file.relative_to(tmp_path)) for file in zoo.candidates()["Pendulum-v1"]]
    assert found == ["crisp-policies/good.safetensors", "policies/also.safetensors"]


def test_the_published_table_is_that_of_the_measured_candidates() -> None:
    records = parse_json(zoo.RECORDS.read_bytes())
    assert (
        zoo.table({task: records[task] for task in zoo.LISTED})
        in (tiny.ROOT / "docs" / "zoo.md").read_text()
    )


def test_every_published_policy_was_a_candidate() -> None:
    records = parse_json(zoo.RECORDS.read_bytes())
    for task, files in zoo.candidates().items():
        digests = [zoo.sha256(file.read_bytes()) for file in files]
        assert [one["sha256"] for one in records[task]] == digests


def test_the_chosen_ones_are_those_of_the_package() -> None:
    records = parse_json(zoo.RECORDS.read_bytes())
    for entry in moie.zoo.entries():
        one = zoo.chosen(records[entry.task])
        policy = moie.load(entry.file)
        assert isinstance(policy, Mixture)
        assert policy.visited is not None
        learned = policy_file.to_bytes(replace(policy, visited=None))
        assert policy_file.to_bytes(zoo.published(one)) == learned
        assert one["return"] == entry.return_mean
        assert (zoo.command(one), zoo.remark(one)) == (entry.command, entry.remark)

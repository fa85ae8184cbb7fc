"""One record per algorithm: what the records promise, and an algorithm that a user adds."""

import copy
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import moie
from moie.comparison import collect
from moie.comparison.facts.assembly import make_facts
from moie.comparison.learners import Declared, Grouping
from moie.errors import InputError
from moie.learn import registry
from moie.learn.algorithm import Method
from moie.learn.config import LearnerConfig
from moie.runs.config import RunConfig, flat, from_json, settings_of, to_json, unused_settings
from tests import own_algorithm, tiny

WALK = "tests.probes:Walk-v0"
OLD = json.loads((tiny.ROOT / "tests" / "data" / "algorithms-0.1.0.json").read_text())


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> registry.Algorithm:
    """An algorithm that only the test knows."""
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    registry.register(own_algorithm.RECORD)
    return own_algorithm.RECORD


def test_an_algorithm_of_ones_own_trains_resumes_and_is_compared(
    own: registry.Algorithm, tmp_path: Path
) -> None:
    assert registry.names()[-1] == own.name
    run = tiny.train(WALK, tmp_path / "a", algorithm=own.name, iterations=2)
    policy = moie.load(run.path)
    assert (policy.trained["algorithm"], policy.trained["iterations"]) == (own.name, 2)
    assert abs(policy.means([[1.0, 1.0, 1.0]])).max() > 0.0, "it has learned something"
    other = tiny.train(WALK, tmp_path / "b", algorithm=own.name, iterations=1)
    tiny.resume(other.path, iterations=2)
    assert tiny.policy_bytes(other.path) == tiny.policy_bytes(run.path)
    found = make_facts(collect.read_runs(run.path.parent), "folder")
    assert [one["learner"] for one in found["learners"]] == ["REINFORCE"]


def test_where_it_is_not_known_its_policy_is_still_read(
    own: registry.Algorithm, tmp_path: Path
) -> None:
    run = tiny.train(WALK, tmp_path / "run", algorithm=own.name, iterations=1).path
    assert "parameters" in tiny.moie_process("show", str(run)).stdout
    words = ("evaluate", str(run), "--episodes", "1", "--workers", "1", "--trust-task")
    assert "sampled actions: return" in tiny.moie_process(*words).stdout
    refused = tiny.moie_process("resume", str(run), "--iterations", "2", "--trust-task")
    assert refused.returncode != 0
    assert "algorithm is 'reinforce', expected one of moie" in refused.stderr


def test_the_docs_show_the_algorithm_that_is_tested() -> None:
    _, code = (tiny.ROOT / "tests" / "own_algorithm.py").read_text().split('"""\n\n', 1)
    assert f"```python\n{code}```" in (tiny.ROOT / "docs" / "adding_an_algorithm.md").read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "My own"}, "algorithm is 'My own', expected words like 'my-own'"),
        ({"name": "ppo"}, "algorithm ppo: there is another one of that name"),
        ({"uses": frozenset({"ppo", "rate"})}, "uses is rate, expected some of bound, crisp"),
        ({"method": "tests.own_algorithm"}, "method is 'tests.own_algorithm', expected MODULE"),
    ],
)
def test_a_record_that_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    before = registry.names()
    with pytest.raises(InputError, match=said):
        registry.register(replace(own_algorithm.RECORD, **changes))
    assert registry.names() == before


def test_the_same_record_twice_is_one(own: registry.Algorithm) -> None:
    registry.register(own)
    assert registry.names().count(own.name) == 1


def test_an_unknown_name_is_refused_whatever_it_is() -> None:
    for name in ("reinforce", None, ["ppo"]):
        with pytest.raises(InputError, match=r"expected one of moie, crisp, ppo"):
            registry.algorithm(name)


def test_records_speak_of_settings_that_exist_and_of_nothing_twice() -> None:
    paths = settings_of(RunConfig).values()
    assert {part for path in paths for part in path} >= registry.OPTIONAL
    known = [registry.algorithm(name) for name in registry.names()]
    for names in ("name", "method", "colour", "marker"):
        assert len({getattr(one, names) for one in known}) == len(known)
    for one in known:
        assert isinstance(one.load(), Method)
        from_json({"task": "Pendulum-v1", "algorithm": one.name, **dict(one.preset)})


def test_the_help_names_every_algorithm() -> None:
    shown = tiny.moie_process("train", "pendulum", "--help").stdout
    words = {word.strip(",;:.()│") for word in shown.split()}
    assert words >= set(registry.names())


def test_records_and_settings_need_no_jax() -> None:
    code = """
import sys
from moie.learn import registry
from moie.runs.config import unused_settings
for name in registry.names():
    assert registry.algorithm(name).title and unused_settings(name)
assert not {"jax", "equinox", "matplotlib"} & set(sys.modules)
"""
    subprocess.run(tiny.command(code=code), env=tiny.environment(), check=True, timeout=60)


@pytest.mark.parametrize("old", OLD, ids=lambda old: old["config"]["learner"]["algorithm"])
def test_runs_of_the_first_version_are_the_same_learners(old: dict[str, Any]) -> None:
    config = from_json(old["config"])
    # What the first version did before there was a choice.
    added = {"environments": 0, "actions": "clipped"}
    expected = copy.deepcopy(old["config"]) | added
    expected["learner"]["selection"]["compress"] = True
    assert json.loads(json.dumps(to_json(config))) == expected
    declared = Declared("run", flat(old["config"]))
    assert Grouping([declared]).learner(declared).name == old["learner"]
    assert sorted(declared.choices) == old["choices"]


def test_every_algorithm_of_the_first_version_is_known() -> None:
    known = [old["config"]["learner"]["algorithm"] for old in OLD]
    assert known == list(registry.names())[: len(known)]
    assert LearnerConfig().algorithm == registry.DEFAULT == "moie"
    assert {"schedule"} <= unused_settings("moie") - unused_settings("crisp")

"""Published runs, made again: the same numbers, or what differs."""

import importlib.util
from dataclasses import replace
from pathlib import Path

from moie.comparison import collect
from tests import tiny

_spec = importlib.util.spec_from_file_location("again", tiny.ROOT / "benchmarks" / "again.py")
assert _spec is not None
assert _spec.loader is not None
again = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(again)


def test_a_run_is_made_again_bit_for_bit(pendulum: Path) -> None:
    published = collect.read_runs(pendulum)
    (name,) = published.runs
    is_same, said = again.again(published, name, 2)
    assert is_same
    assert said == "2 evaluations, the same bit for bit"
    changed = published.rows.assign(return_sampled=published.rows["return_sampled"] + 1e-9)
    elsewhere = published.runs[name] | {"host": {}}
    published = replace(published, rows=changed, runs={name: elsewhere})
    is_same, said = again.again(published, name, 2)
    assert not is_same
    assert said.startswith("2 numbers differ: return_sampled at 0 steps is -")
    assert "system not recorded (here" in said


def test_what_was_not_recorded_yet_does_not_count(pendulum: Path) -> None:
    published = collect.read_runs(pendulum)
    (name,) = published.runs
    old = again.first_points(published, name, 10**9)
    assert len(old) > 1
    assert again.differences(old.drop(columns="kl"), old) == []
    assert again.differences(old.assign(kl=None), old) == []
    assert len(again.differences(old, old.assign(return_mean=None))) == len(old)
    assert again.differences(old, old.iloc[1:])[0].startswith("evaluated at ")

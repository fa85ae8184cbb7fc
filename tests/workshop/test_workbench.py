"""The policy on the workbench: whatever a person does to it, it can be undone and is what acts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moie
from moie.errors import InputError
from moie.policy.file import to_bytes
from moie.policy.mixture import Mixture
from moie.workshop.workbench import Workbench

FEATURES, JOINTS, EXPERTS = 3, 1, 10
expert = st.integers(0, EXPERTS + 2)
value = st.floats(-3.0, 3.0)
final = st.booleans()
change = st.one_of(
    st.tuples(st.just("action"), value, expert, st.integers(0, JOINTS), final),
    st.tuples(st.just("prototype"), value, expert, st.integers(0, FEATURES), final),
    st.tuples(st.just("weight"), value, expert, st.none(), final),
    st.tuples(st.just("label"), st.sampled_from(["", "swing", " up ", "a\nb"]), expert).map(
        lambda one: (*one, None, True)
    ),
    st.tuples(st.just("temperature"), value, st.none(), st.none(), final),
    st.tuples(st.just("metric"), value, st.none(), st.integers(0, FEATURES), final),
)
deed = st.one_of(
    change.map(lambda one: ("set", *one)),
    st.tuples(st.sampled_from(["mute", "set_solo"]), expert, st.booleans()),
    st.tuples(st.just("delete"), expert),
    st.tuples(st.just("add"), st.lists(value, min_size=FEATURES, max_size=FEATURES).map(np.array)),
    st.tuples(st.sampled_from(["undo", "redo", "back_to_original"])),
)
STATES = np.random.default_rng(0).normal(size=(20, FEATURES))


def pendulum() -> Mixture:
    found = moie.load("zoo:pendulum")
    assert isinstance(found, Mixture)
    return found


ORIGINAL = pendulum()


def done(bench: Workbench, deed: tuple[Any, ...]) -> bool:
    """Whether it was accepted."""
    try:
        getattr(bench, deed[0])(*deed[1:])
    except InputError:
        return False
    return True


def shown(bench: Workbench) -> dict[str, Any]:
    """What a person sees, but for the number of the version."""
    return {name: part for name, part in bench.told().items() if name != "version"}


@settings(max_examples=200, deadline=None)
@given(st.lists(deed, max_size=12))
def test_whatever_is_done_acts_and_can_be_undone(deeds: list[tuple[Any, ...]]) -> None:
    bench = Workbench(ORIGINAL)
    for one in deeds:
        before, version = shown(bench), bench.version
        if not done(bench, one):
            assert shown(bench) == before
            assert bench.version == version
    weights = dict(zip(bench.now.ids, bench.policy.weights, strict=True))
    assert all(weights[k] == 0.0 for k in bench.silent)
    told = bench.told()
    assert bench.acting.version == told["version"]
    assert bench.acting.policy.means(STATES) == pytest.approx(bench.policy.means(STATES))
    assert len({one["id"] for one in told["experts"]}) == len(told["experts"])
    for one in told["experts"]:
        assert set(one["changed"]) <= {"label", "prototype", "action", "weight", "added"}
    check_undone(bench)


def check_undone(bench: Workbench) -> None:
    """Undone to the beginning, it is the policy that was opened; done again, what it was."""
    for k in list(bench.muted):
        bench.muted.discard(k)
    bench.solo = None
    bench._build()
    last = bench.policy.means(STATES)
    count = 0
    while done(bench, ("undo",)):
        count += 1
    assert bench.told()["changes"] == []
    assert bench.policy.means(STATES) == pytest.approx(ORIGINAL.means(STATES), abs=0.0)
    assert to_bytes(bench.policy) == to_bytes(ORIGINAL)
    for _ in range(count):
        bench.redo()
    assert bench.policy.means(STATES) == pytest.approx(last, abs=0.0)


def test_a_slider_that_is_held_is_one_change() -> None:
    bench = Workbench(ORIGINAL)
    for position in (0.1, 0.2, 0.3):
        bench.set("action", position, 4, 0, False)
    bench.set("action", 0.4, 4, 0, True)
    assert bench.policy.actions[4, 0] == 0.4
    bench.undo()
    assert bench.policy.actions[4, 0] == ORIGINAL.actions[4, 0]
    with pytest.raises(InputError, match="nothing to undo"):
        bench.undo()


def test_a_slider_that_comes_back_has_changed_nothing() -> None:
    bench = Workbench(ORIGINAL)
    bench.set("action", 0.1, 4, 0, False)
    bench.set("action", float(ORIGINAL.actions[4, 0]), 4, 0, True)
    told = bench.told()
    assert (told["undo"], told["unsaved"], told["changes"]) == (None, False, [])


def test_solo_and_mute() -> None:
    bench = Workbench(ORIGINAL)
    bench.set_solo(2, True)
    assert np.flatnonzero(bench.policy.weights).tolist() == [2]
    bench.set_solo(3, True)
    assert np.flatnonzero(bench.policy.weights).tolist() == [3]
    bench.mute(3, True)
    assert not bench.policy.weights.any()
    bench.set_solo(3, False)
    assert np.flatnonzero(bench.policy.weights == 0.0).tolist() == [3]
    assert bench.told()["unsaved"]
    bench.mute(3, False)
    assert not bench.told()["unsaved"]


def test_an_expert_that_is_added_does_what_is_done_there() -> None:
    bench, state = Workbench(ORIGINAL), np.array([1.0, 0.0, 0.5])
    before = np.clip(ORIGINAL.means(state[None, :])[0], *ORIGINAL.bounds)
    k = bench.add(state)
    assert k == EXPERTS
    assert bench.policy.actions[-1] == pytest.approx(before)
    assert bench.policy.prototypes[-1] == pytest.approx(state)
    assert bench.told()["experts"][-1]["origin"] == "made by hand"
    bench.delete(0)
    assert bench.add(state) == EXPERTS + 1  # ids are never used twice

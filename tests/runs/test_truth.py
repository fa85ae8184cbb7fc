"""What leading parts earn beside the whole policy, and what that lets one say of the program."""

from typing import Any

import numpy as np
import pytest

from moie.policy.truth import default_only, led
from moie.runs.evaluation import Evaluation, Evaluator, Interval, summary
from moie.runs.truth import SAID, Truth, evaluate
from tests import tiny

WALK = "tests.probes:Walk-v0"


def returns(*values: float) -> Evaluation:
    return Evaluation("mean", values, (1,) * len(values), None, tuple(range(len(values))))


NUMBERS = {"in_range": 1.0, "coverage": 1.0, "attention": 1.0, "largest_action": 1.0}
SURE = Interval(1.0, 1.0, 1.0)
FIDELITY = {"near_alone": SURE, "near_pair": SURE, "wrong_side": Interval(0.0, 0.0, 0.0)}


def truth(whole: float, alone: float, pair: float, default: float, **others: Any) -> Truth:
    earned = {"whole": whole, "alone": alone, "pair": pair, "default": default}
    evaluations = {name: returns(value - 1, value + 1) for name, value in earned.items()}
    return Truth(**NUMBERS, **(FIDELITY | others), **evaluations)


@pytest.mark.parametrize(
    ("earned", "ratio", "kept", "reading"),
    [
        ((1000, 981, 990, 0), 0.981, 0.981, "literal"),
        ((1000, 900, 990, 0), 0.9, 0.9, "literal"),
        ((-200, -280, -200, -1200), None, 0.92, "literal"),
        ((1000, 500, 950, 0), 0.5, 0.5, "pairs"),
        ((-200, -900, -300, -1200), None, 0.3, "pairs"),
        # Most of the return comes without any expert: only the gain tells.
        ((1000, 950, 960, 900), 0.95, 0.5, "guide"),
        ((1000, 400, 550, 0), 0.4, 0.4, "guide"),
        ((1000, 300, 400, 0), 0.3, 0.3, "blend"),
        ((1000, -50, -20, 0), None, -0.05, "blend"),
        ((100, 100, 100, 100), 1.0, None, "unknown"),
        ((90, 100, 100, 100), 10 / 9, None, "unknown"),
    ],
)
def test_what_is_kept_and_what_may_be_said(
    earned: tuple, ratio: float | None, kept: float | None, reading: str
) -> None:
    found = truth(*earned)
    assert found.ratio(found.alone) == pytest.approx(ratio)
    assert found.kept(found.alone) == pytest.approx(kept)
    assert found.reading == reading
    assert len({*SAID.values()}) == len(SAID) == 6


def test_a_gain_within_its_error_is_none() -> None:
    # Gains of 0 and 4: two on average, with an error of two.
    found = truth(100, 100, 100, 98)
    noisy = Truth(**(vars(found) | {"whole": returns(98, 104), "default": returns(98, 100)}))
    assert noisy.kept(noisy.alone) is None
    assert noisy.reading == "undecided"


def test_one_episode_gives_no_reading() -> None:
    names = ("whole", "alone", "pair", "default")
    single = {name: returns(value) for name, value in zip(names, (10, 9.5, 10, 0), strict=True)}
    found = Truth(**NUMBERS, **FIDELITY, **single)
    assert found.kept(found.alone) is None
    assert found.reading == "undecided"


@pytest.mark.parametrize(
    ("near_alone", "near_pair", "reading"),
    [
        ((0.80, 0.9), (1.0, 1.0), "literal"),
        # The return says literal, the actions do not.
        ((0.03, 0.05), (0.85, 0.9), "pairs"),
        ((0.03, 0.05), (0.55, 0.6), "guide"),
        ((0.03, 0.05), (0.1, 0.2), "blend"),
        # An interval on both sides of the line leaves it open.
        ((0.75, 0.85), (1.0, 1.0), "undecided"),
        ((0.03, 0.05), (0.75, 0.85), "undecided"),
    ],
)
def test_what_is_said_must_be_what_is_done(
    near_alone: tuple[float, float], near_pair: tuple[float, float], reading: str
) -> None:
    def between(ends: tuple[float, float]) -> Interval:
        return Interval(sum(ends) / 2, *ends)

    near = {"near_alone": between(near_alone), "near_pair": between(near_pair)}
    assert truth(1000, 990, 995, 0, **near).reading == reading


def test_a_return_on_the_line_gives_no_reading() -> None:
    found = truth(1000, 900, 990, 0)
    # Alone keeps 0.7 and 1.2 of the gain: 0.95 on average.
    unsure = Truth(**(vars(found) | {"alone": returns(700, 1200)}))
    assert unsure.keeps(unsure.alone, 0.9) is None
    assert unsure.reading == "undecided"


def test_intervals_are_students() -> None:
    found = Interval.of([1.0, 2.0, 3.0])  # mean 2, standard error 0.577, t = 4.303
    assert (found.low, found.high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert np.isnan(Interval.of([1.0]).low)
    assert [Interval(0.5, 0.4, 0.6).is_least(x) for x in (0.4, 0.5, 0.61)] == [True, None, False]


def test_all_readings_are_measured_on_the_same_seeds() -> None:
    policy = tiny.policy(WALK)
    measured = evaluate(policy, 3, 7, workers=1)
    sampled, mean, found = measured.sampled, measured.mean, measured.truth
    assert found is not None
    assert found.whole == mean
    assert {found.whole.seeds, found.alone.seeds, found.pair.seeds, found.default.seeds} == {
        mean.seeds
    }
    assert sampled.seeds != mean.seeds
    with Evaluator(WALK, 7, 1) as evaluator:
        others = {"alone": led(policy, 1), "pair": led(policy, 2), "default": default_only(policy)}
        for name, other in others.items():
            again = summary("mean", evaluator.episodes(other, 3)["mean"])
            assert getattr(found, name) == again
    assert evaluate(policy, 3, 7, workers=2) == measured


def test_one_expert_and_the_default_are_a_pair() -> None:
    policy = tiny.policy(WALK, experts=1)
    found = evaluate(policy, 2, 7, workers=1).truth
    assert found is not None
    assert found.pair.returns == pytest.approx(found.whole.returns)


def test_a_policy_without_experts_has_no_truth(tmp_path) -> None:
    options = {"algorithm": "ppo", "policy_hidden": (8,), "iterations": 1, "workers": 1}
    run = tiny.train(WALK, tmp_path / "run", **options)
    measured = evaluate(run.policy, 2, 7, workers=1)
    assert (measured.sampled.kind, measured.mean.kind) == ("sampled", "mean")
    assert measured.truth is None

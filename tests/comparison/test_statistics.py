"""Intervals and aggregates against independent computations, and coverage on simulated data."""

import numpy as np
import pytest
from scipy import stats

from moie.comparison.statistics import (
    Interval,
    Scores,
    Statistic,
    alike,
    bootstrap_interval,
    difference_interval,
    interquartile_mean,
    mean_interval,
    mean_score,
    performance_profile,
    probability_of_improvement,
    resampled,
    share_interval,
    simulated_coverage,
)


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    """Of 4 runs 1, z = 1.96: the middle is (0.25 + 0.48) / 1.96 = 0.372, half the width 0.327."""
    share = share_interval(1, 4)
    assert share.value == 0.25
    np.testing.assert_allclose([share.low, share.high], [0.0456, 0.6994], atol=1e-4)
    assert share_interval(0, 5).low == 0.0
    assert share_interval(5, 5).high == 1.0
    assert share_interval(0, 5).high == pytest.approx(0.4345, abs=1e-4)
    assert np.isnan(share_interval(0, 0).low)


def evenly(statistic: Statistic, scores: Scores) -> float:
    """Of the runs as they are."""
    return float(statistic(scores, alike(scores)))


def stratified_bootstrap(
    statistic: Statistic, scores: Scores, rng: np.random.Generator, samples: int = 2000
) -> Interval:
    return bootstrap_interval(statistic, scores, resampled(scores, rng, samples))


def test_the_interval_of_a_mean_is_students() -> None:
    runs = np.random.default_rng(0).normal(size=(7, 3))
    mean, low, high = mean_interval(runs)
    for i in range(3):
        expected = stats.ttest_1samp(runs[:, i], 0.0).confidence_interval(0.95)
        assert (low[i], high[i]) == pytest.approx((expected.low, expected.high))
        assert mean[i] == pytest.approx(runs[:, i].mean())


def test_the_interval_of_a_difference_is_welchs() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(3.0, 1.0, 4), rng.normal(1.0, 5.0, 9)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    value, low, high = difference_interval(ours, theirs)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert value == pytest.approx(ours.mean() - theirs.mean())
    assert difference_interval([1.0, 1.0], [3.0, 3.0]) == (-2.0, -2.0, -2.0)
    value, low, high = difference_interval([1.0], theirs)
    assert value == pytest.approx(1.0 - theirs.mean())
    assert np.isnan([low, high]).all()


def test_one_run_has_no_interval() -> None:
    mean, low, high = mean_interval(np.array([[3.0, 4.0]]))
    np.testing.assert_array_equal(mean, [3.0, 4.0])
    assert np.isnan([*low, *high]).all()


@pytest.mark.parametrize("n", [4, 8, 20])
def test_the_interquartile_mean_is_scipys_where_every_task_has_as_many_runs(n: int) -> None:
    rng = np.random.default_rng(n)
    scores = [rng.normal(i, 1 + i, n) for i in range(3)]
    expected = stats.trim_mean(np.concatenate(scores), 0.25)
    assert evenly(interquartile_mean, scores) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_runs_at_the_quartiles_count_as_much_as_lies_inside(n: int) -> None:
    rng = np.random.default_rng(n)
    scores = [rng.normal(i, 1 + i, n) for i in range(3)]
    expected = stats.trim_mean(np.repeat(np.concatenate(scores), 4), 0.25)  # parts that do divide
    assert evenly(interquartile_mean, scores) == pytest.approx(expected)


def test_a_task_with_twice_the_runs_does_not_count_twice() -> None:
    few, many = np.array([0.0, 1.0, 2.0, 3.0]), np.array([10.0, 11.0, 12.0, 13.0])
    assert evenly(interquartile_mean, [few, many]) == evenly(
        interquartile_mean, [few, np.repeat(many, 2)]
    )
    assert evenly(mean_score, [few, many]) == evenly(mean_score, [few, np.repeat(many, 2)]) == 6.5


def test_a_profile_is_the_share_above() -> None:
    scores = [np.array([0.0, 1.0]), np.array([1.0, 1.0, 3.0, 3.0])]
    np.testing.assert_allclose(
        performance_profile(scores, [-1, 0, 1, 2], alike(scores)), [1, 0.75, 0.25, 0.25]
    )


def test_the_probability_of_improvement_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(0)
    ours = [rng.integers(0, 6, 9).astype(float) for _ in range(3)]
    theirs = [rng.integers(1, 7, 5).astype(float) for _ in range(3)]
    us = [stats.mannwhitneyu(a, b).statistic / 45 for a, b in zip(ours, theirs, strict=True)]
    found = probability_of_improvement(ours, theirs, alike(ours), alike(theirs))
    assert found == pytest.approx(np.mean(us))
    assert probability_of_improvement(theirs, ours, alike(theirs), alike(ours)) == pytest.approx(
        1 - found
    )


def test_the_bootstrap_is_scipys() -> None:
    rng = np.random.default_rng(2)
    scores = [rng.normal(mean, 1.0, 8) for mean in (0.0, 1.0, 1.5)]
    options = {"method": "percentile", "n_resamples": 20_000, "rng": np.random.default_rng(3)}

    def trimmed(*tasks: np.ndarray, axis: int) -> np.ndarray:
        return stats.trim_mean(np.concatenate(tasks, axis=axis), 0.25, axis=axis)

    expected = stats.bootstrap(scores, trimmed, **options).confidence_interval
    found = stratified_bootstrap(interquartile_mean, scores, rng, samples=20_000)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.015)


@pytest.mark.parametrize(
    ("statistic", "runs", "least", "most"),
    [
        (interquartile_mean, 10, 0.90, 0.98),
        (mean_score, 10, 0.88, 0.98),
        # What the page warns of: three runs a task promise too much.
        (interquartile_mean, 3, 0.75, 0.90),
        (mean_score, 3, 0.72, 0.88),
    ],
)
def test_the_bootstrap_covers_what_it_should(
    statistic: Statistic, runs: int, least: float, most: float
) -> None:
    """Of 95% intervals for runs on three tasks with different means; a percentile bootstrap is
    known to be too short for few runs."""
    rng = np.random.default_rng(1)
    means = (0.0, 0.4, 1.0)
    many = [rng.normal(mean, 1.0, 200_000) for mean in means]
    truth = statistic(many, alike(many))
    covered = 0
    for _ in range(600):
        scores = [rng.normal(mean, 1.0, runs) for mean in means]
        found = stratified_bootstrap(statistic, scores, rng, samples=400)
        covered += bool(found.low <= truth <= found.high)
    assert least <= covered / 600 <= most


def test_the_simulated_coverage_says_the_same() -> None:
    rng = np.random.default_rng(0)
    assert 0.72 <= simulated_coverage([3, 3], rng) <= 0.90
    assert 0.90 <= simulated_coverage([20, 20, 20], rng) <= 0.985


def test_a_task_with_one_run_leaves_the_interval_unknown() -> None:
    scores = [np.array([1.0, 2.0, 3.0]), np.array([2.0])]
    found = stratified_bootstrap(mean_score, scores, np.random.default_rng(0))
    assert found.value == 2.0
    assert np.isnan([found.low, found.high]).all()


def test_resampled_runs_are_whole_numbers_of_runs() -> None:
    scores = [np.arange(4.0), np.arange(7.0)]
    for runs, shares in zip(scores, resampled(scores, np.random.default_rng(0), 50), strict=True):
        assert shares.shape == (50, len(runs))
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_allclose(shares * len(runs), np.round(shares * len(runs)), atol=1e-9)


def test_a_sample_is_the_statistic_of_the_drawn_runs() -> None:
    """Shares mean the same as runs that are there several times."""
    rng = np.random.default_rng(4)
    ours, theirs = ([rng.normal(size=6) for _ in range(2)] for _ in range(2))
    drawn = [rng.integers(0, 6, 6) for _ in range(2)]
    shares = [np.bincount(index, minlength=6) / 6 for index in drawn]
    again = [runs[index] for runs, index in zip(ours, drawn, strict=True)]
    tau = np.linspace(-1, 1, 7)
    assert interquartile_mean(ours, shares) == pytest.approx(evenly(interquartile_mean, again))
    assert mean_score(ours, shares) == pytest.approx(evenly(mean_score, again))
    np.testing.assert_allclose(
        performance_profile(ours, tau, shares), performance_profile(again, tau, alike(again))
    )
    expected = probability_of_improvement(again, theirs, alike(again), alike(theirs))
    assert probability_of_improvement(ours, theirs, shares, alike(theirs)) == pytest.approx(
        expected
    )


def test_the_bootstrap_never_mixes_tasks() -> None:
    scores = [np.full(5, 1.0), np.full(5, 100.0)]
    found = stratified_bootstrap(mean_score, scores, np.random.default_rng(0), samples=50)
    assert (found.value, found.low, found.high) == (50.5, 50.5, 50.5)

"""The rule that turns published runs into verdicts on the paper's claims."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.claims import evidence, pages, policies, sentences, statements, table
from benchmarks.claims.evidence import Study
from benchmarks.claims.statements import compared, farther, sized, walking
from benchmarks.claims.verdicts import Part, Verdict, all_of, any_of, counted, judged, reasons, seen

from moie.comparison.statistics import Interval
from tests.comparison import synthetic
from tests.comparison.synthetic import WALKER, config, run

MOIE, PPO, TRPO = ("moie", 10), ("ppo", 0), ("trpo", 0)


def published(*runs: synthetic.Run, iterations: int = 20) -> evidence.Evidence:
    """A study of these runs, whose plan has so many iterations."""
    plan = [config("Walk-v0", "moie", 0, iterations=iterations)]
    plan += [config(WALKER, "moie", 0, iterations=iterations)]
    return {"study": Study(synthetic.curves(list(runs), plan))}


def seeds(n: int, *algorithms: str, task: str = "Walk-v0", **settings: Any) -> list[synthetic.Run]:
    return [run(task, a, s, **settings) for a in algorithms for s in range(n)]


def walked(metres: float, seed: int) -> synthetic.Run:
    name, known, rows = run(WALKER, "moie", seed)
    return name, known, rows.assign(distance_sampled=rows["return_sampled"] * 0.0 + metres)


def part(verdict: Verdict) -> Part:
    return Part("", verdict, "not run" if verdict == "undecided" else "")


def interval(low: float, high: float) -> Interval:
    return Interval(*map(np.asarray, ((low + high) / 2, low, high)))


@pytest.mark.parametrize(
    ("low", "high", "threshold", "expected"),
    [
        (0.1, 1.0, 0.0, "confirmed"),
        (-1.0, -0.1, 0.0, "contradicted"),
        (0.0, 0.0, 0.0, "contradicted"),  # not above, for sure
        (-0.1, 1.0, 0.0, "undecided"),
        (-0.1, 1.0, -0.2, "confirmed"),
        (0.1, 1.0, 0.2, "undecided"),
        (np.nan, np.nan, 0.0, "undecided"),
    ],
)
def test_an_interval_decides_on_one_side_of_the_threshold(
    low: float, high: float, threshold: float, expected: str
) -> None:
    assert judged(interval(low, high), threshold)[0] == expected


@pytest.mark.parametrize(
    ("n_true", "n_false", "quantifier", "expected"),
    [
        (1, 9, "some", "confirmed"),
        (0, 5, "some", "contradicted"),
        (0, 4, "some", "undecided"),
        (1, 9, "none", "contradicted"),
        (0, 5, "none", "confirmed"),
        (0, 4, "none", "undecided"),
        (9, 1, "every", "contradicted"),
        (5, 0, "every", "confirmed"),
        (4, 0, "every", "undecided"),
    ],
)
def test_one_run_decides_where_it_can(
    n_true: int, n_false: int, quantifier: Any, expected: str
) -> None:
    assert seen(n_true, n_false, quantifier)[0] == expected


def test_what_is_undecided_is_never_guessed() -> None:
    yes, no, open_ = part("confirmed"), part("contradicted"), part("undecided")
    assert all_of([yes, yes]) == "confirmed"
    assert all_of([yes, open_]) == "undecided"
    assert all_of([no, open_]) == "contradicted"
    assert any_of([yes, open_]) == "confirmed"
    assert any_of([no, open_]) == "undecided"
    assert any_of([no, no]) == "contradicted"
    assert counted([yes, yes, no], 2, 2) == "confirmed"
    assert counted([yes, yes, open_], 2, 2) == "undecided"
    assert counted([yes, yes, yes, open_], 2, 2) == "contradicted"
    assert counted([yes, no, no, open_], 3, 3) == "contradicted"
    assert reasons([open_, yes, Part("", "undecided", parts=(open_, open_))]) == {"not run": 2}


def test_learners_are_compared_by_the_interval_of_the_difference() -> None:
    found = published(*seeds(4, "moie", "ppo", "trpo"))

    def verdict(a: Any, kind: Any, b: Any) -> str:
        return compared(found, "study", "Walk-v0", a, kind, b).verdict

    assert verdict(PPO, "above", MOIE) == "confirmed"
    assert verdict(PPO, "far above", MOIE) == "confirmed"
    assert verdict(MOIE, "above", PPO) == "contradicted"
    assert verdict(MOIE, "close to or above", PPO) == "contradicted"
    assert verdict(PPO, "close to or above", MOIE) == "confirmed"
    text = compared(found, "study", "Walk-v0", PPO, "above", MOIE).text
    assert "95% interval" in text
    assert "PPO above moie K=10?" in text


@pytest.mark.parametrize(
    ("runs", "iterations", "why"),
    [
        (seeds(4, "ppo"), 20, "not run"),
        ([*seeds(4, "ppo"), run()], 20, "one seed"),
        (seeds(4, "ppo", "moie"), 41, "too few steps"),
    ],
)
def test_why_a_comparison_is_undecided(runs: Any, iterations: int, why: str) -> None:
    found = published(*runs, iterations=iterations)
    one = compared(found, "study", "Walk-v0", PPO, "above", MOIE)
    assert (one.verdict, one.why) == ("undecided", why)


def test_a_study_without_a_file_has_no_runs() -> None:
    one = compared({}, "study", "Walk-v0", PPO, "above", MOIE)
    assert (one.verdict, one.why) == ("undecided", "not run")
    assert one.text == "Walk-v0: PPO above moie K=10? There is no run of PPO and of moie K=10"


def test_a_run_that_walks_counts_whatever_its_steps() -> None:
    for iterations, expected in ((20, "contradicted"), (41, "undecided")):
        found = published(*(walked(2.0, seed) for seed in range(5)), iterations=iterations)
        assert walking(found, "study", WALKER, MOIE, "some").verdict == expected
        found = published(walked(2.0, 0), walked(12.0, 1), iterations=iterations)
        assert walking(found, "study", WALKER, MOIE, "some").verdict == "confirmed"
        assert walking(found, "study", WALKER, MOIE, "none").verdict == "contradicted"
    assert "2.0, 12.0 m" in walking(found, "study", WALKER, MOIE, "every").text


def test_clipped_actions_decide_nothing_where_the_simulator_charges() -> None:
    def learned(task: str) -> evidence.Evidence:
        pairs = [(who, seed) for who in ("moie", "ppo") for seed in range(5)]
        runs = [run(task, who, seed, actions="clipped") for who, seed in pairs]
        return {"study": Study(synthetic.curves(runs))}

    found = learned(WALKER)
    for part in (
        compared(found, "study", WALKER, PPO, "above", MOIE),
        walking(found, "study", WALKER, MOIE, "some"),
        walking(found, "study", WALKER, MOIE, "none"),
    ):
        assert (part.verdict, part.why) == ("undecided", "clipped actions")
    assert sized(found, "study", WALKER, MOIE, 71).verdict == "confirmed"
    found = learned("Walk-v0")  # a task that does not charge
    assert compared(found, "study", "Walk-v0", PPO, "above", MOIE).verdict == "confirmed"


def test_the_share_of_runs_that_walk_has_wilsons_interval() -> None:
    found = published(*(walked(metres, seed) for seed, metres in enumerate((2.0, 12.0, 3.0, 1.0))))
    text = walking(found, "study", WALKER, MOIE, "some").text
    assert "walks? 1 of 4 (95% interval 5% to 70%): 2.0, 12.0, 3.0, 1.0 m" in text


def test_parameters_are_those_of_the_paper_or_not() -> None:
    found = published(run())
    assert sized(found, "study", "Walk-v0", MOIE, 71).verdict == "confirmed"
    assert sized(found, "study", "Walk-v0", MOIE, 72).verdict == "contradicted"
    assert sized(found, "study", "Walk-v0", PPO, 72).why == "not run"


def test_prototypes_that_leave_the_visited_states() -> None:
    def at(distance: float, algorithm: str, seed: int) -> synthetic.Run:
        name, known, rows = run("Walk-v0", algorithm, seed)
        return name, known, rows.assign(prototype_distance=distance + seed)

    gradient = "ppo-diffproto"
    runs = [at(*one, seed) for seed in range(3) for one in ((0.5, "moie"), (50.0, gradient))]
    one = farther(published(*runs), "study", "Walk-v0", (gradient, 10), MOIE)
    assert one.verdict == "confirmed"
    assert "50.00, 51.00, 52.00 against 0.50, 1.50, 2.50" in one.text


def test_experts_that_lead_and_experts_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def record(distance: float, n_experts: int) -> dict[str, Any]:
        about = {"task": WALKER, "distance": distance, "period": 20.0, "regularity": 0.9}
        about |= {"actions": "raw"}
        return about | {"pruning": {"n_experts": n_experts}}

    known = {"stands": record(2.0, 2), "walks": record(12.0, 4)}
    monkeypatch.setattr(policies.measure, "records", lambda: known)
    assert policies.needs(WALKER, 4).verdict == "confirmed"
    assert policies.needs(WALKER, 3).why == "too few runs"
    assert policies.needs("HalfCheetahBulletEnv-v0", 3).why == "no policy walks"
    assert policies.cyclic(WALKER).verdict == "confirmed"
    many = {f"walks {i}": record(12.0, 4) for i in range(5)}
    monkeypatch.setattr(policies.measure, "records", lambda: many)
    assert policies.needs(WALKER, 3).verdict == "contradicted"
    for one in many.values():
        one["actions"] = "clipped"  # another task than the paper's
    assert policies.needs(WALKER, 3).why == "no policy walks"


def test_runs_that_are_published_later_decide_a_claim() -> None:
    """The claim that five experts beat a linear policy on the small tasks."""
    (claim,) = [one for one in sentences.PERFORMANCE if "5 clusters" in one.quote]
    assert table.outcome(claim, claim.parts({})) == "undecided: not run (3)"
    runs = [
        run(task, algorithm, seed, experts=5)
        for task in sentences.SMALL
        for algorithm in ("moie", "trpo-linear")  # whose returns end at 60 and 40
        for seed in range(8)
    ]
    found = {"paper-small": Study(synthetic.curves(runs))}
    assert table.outcome(claim, claim.parts(found)) == "**confirmed**"
    assert statements.each(pd.Series([-0.2, 1234.4])) == "0, 1,234"


def test_rows_of_a_page_are_replaced_and_nothing_else() -> None:
    page = "a\n\n| x | y |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nb\n"
    made = pages.with_rows(page, ("x", "y"), [["5", "6"]])
    assert made == "a\n\n| x | y |\n|---|---|\n| 5 | 6 |\n\nb\n"
    with pytest.raises(ValueError, match="is not in list"):
        pages.with_rows(page, ("x", "z"), [])

"""Facts of a comparison recomputed with plain loops and SciPy, and each remark on what it needs."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from moie.comparison.curves import Curves
from moie.comparison.facts.assembly import make_facts
from moie.comparison.figures.appearance import looks
from moie.errors import InputError
from moie.learn import registry
from tests.comparison import synthetic
from tests.comparison.synthetic import BATCH, WALKER, config, curves, grid, run

BUDGET = 20 * BATCH


def facts_of(found: Curves, **options: Any) -> dict[str, Any]:
    return make_facts(found, "folder", **options)


def remarks(found: Curves, **options: Any) -> tuple[list[str], list[str]]:
    facts = facts_of(found, **options)
    return facts["problems"], facts["notices"]


def result(facts: dict[str, Any], task: str, learner: str) -> dict[str, Any]:
    (one,) = [r for r in facts["results"] if (r["task"], r["learner"]) == (task, learner)]
    return one


@pytest.fixture(scope="module")
def whole() -> Curves:
    return curves([*grid(), *grid(tasks=(WALKER,))])


@pytest.fixture(scope="module")
def facts(whole: Curves) -> dict[str, Any]:
    return facts_of(whole)


def rows_of(found: Curves, task: str, algorithm: str, seed: int) -> list[dict[str, Any]]:
    """Its evaluations, one by one."""
    some = found.rows[(found.rows["task"] == task) & (found.rows["seed"] == seed)]
    rows = some[some["algorithm"] == algorithm].to_dict("records")
    return [row for row in rows if row["return_sampled"] is not None]


def finals(found: Curves, task: str, algorithm: str, measure: str) -> list[float]:
    """Of each seed, by hand."""
    values = []
    for seed in range(4):
        rows = rows_of(found, task, algorithm, seed)
        late = [r[measure] for r in rows if r["learned_steps"] > 0.9 * BUDGET]
        assert len(late) == 1  # 18 of 20 iterations is not in the last tenth
        values.append(sum(late) / len(late))
    return values


NAMES = {"moie": "moie K=10", "ppo": "PPO", "trpo": "TRPO"}


@pytest.mark.parametrize("measure", ["return_sampled", "return_mean", "distance_mean"])
def test_final_returns_are_those_of_a_plain_loop(
    whole: Curves, facts: dict[str, Any], measure: str
) -> None:
    for algorithm, name in NAMES.items():
        found = result(facts, WALKER, name)["final"][measure]
        expected = finals(whole, WALKER, algorithm, measure)
        np.testing.assert_allclose(found["runs"], expected)
        assert found["mean"] == pytest.approx(np.mean(expected))
        if np.ptp(expected):
            interval = stats.ttest_1samp(expected, 0.0).confidence_interval(0.95)
            assert (found["low"], found["high"]) == pytest.approx((interval.low, interval.high))
        assert found["half"] == pytest.approx(found["high"] - found["mean"])


def test_several_evaluations_in_the_last_tenth_are_averaged() -> None:
    found = curves([run(evaluation_every=1, iterations=40)])
    one = facts_of(found)["results"][0]["final"]["return_sampled"]
    rows = rows_of(found, "Walk-v0", "moie", 0)
    late = [r["return_sampled"] for r in rows if r["learned_steps"] > 36 * BATCH]
    assert len(late) == 4
    assert one["mean"] == pytest.approx(sum(late) / 4)


def test_curves_are_means_over_seeds_with_students_bands(
    whole: Curves, facts: dict[str, Any]
) -> None:
    found = result(facts, "Walk-v0", "PPO")["curve"]
    assert found["steps"] == [i * BATCH for i in range(0, 21, 2)]
    for i in range(11):
        values = [rows_of(whole, "Walk-v0", "ppo", s)[i]["return_sampled"] for s in range(4)]
        interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        at = [found[name][i] for name in ("mean", "low", "high")]
        assert at == pytest.approx([np.mean(values), interval.low, interval.high])


def scores(found: Curves, algorithm: str) -> dict[str, list[float]]:
    """Normalised, by hand."""
    values = {}
    for task in (WALKER, "Swing-v0", "Walk-v0"):
        first = [rows_of(found, task, a, s)[0] for a in NAMES for s in range(4)]
        low = np.mean([r["return_sampled"] for r in first])
        high = max(np.mean(finals(found, task, a, "return_sampled")) for a in NAMES)
        ours = finals(found, task, algorithm, "return_sampled")
        values[task] = [(value - low) / (high - low) for value in ours]
    return values


def test_aggregates_are_scipys(whole: Curves, facts: dict[str, Any]) -> None:
    found = facts["aggregate"]
    assert found["learners"] == ["moie K=10", "PPO", "TRPO"]
    for i, algorithm in enumerate(NAMES):
        values = list(scores(whole, algorithm).values())
        together = np.concatenate(values)
        assert found["iqm"][i]["value"] == pytest.approx(stats.trim_mean(together, 0.25))
        assert found["mean"][i]["value"] == pytest.approx(together.mean())
        above = [np.mean(together > tau) for tau in found["thresholds"]]
        np.testing.assert_allclose(found["profiles"][i]["value"], above)
        options = {"method": "percentile", "n_resamples": 4000, "rng": np.random.default_rng(1)}
        mean = stats.bootstrap(
            values, lambda *tasks, axis: np.concatenate(tasks, axis).mean(axis), **options
        ).confidence_interval
        at = found["mean"][i]["low"], found["mean"][i]["high"]
        assert at == pytest.approx((mean.low, mean.high), abs=0.02)


def test_the_probability_of_improvement_is_mann_and_whitneys(
    whole: Curves, facts: dict[str, Any]
) -> None:
    matrix = facts["aggregate"]["improvement"]
    for (i, ours), (j, theirs) in itertools.permutations(enumerate(NAMES), 2):
        wins = []
        for task in (WALKER, "Swing-v0", "Walk-v0"):
            a, b = (finals(whole, task, who, "return_sampled") for who in (ours, theirs))
            wins.append(stats.mannwhitneyu(a, b).statistic / 16)
        assert matrix[i][j]["value"] == pytest.approx(np.mean(wins))
        assert matrix[i][j]["low"] <= matrix[i][j]["value"] <= matrix[i][j]["high"]
    assert matrix[0][0] is None


def test_who_shares_the_best_return_is_named_with_it() -> None:
    runs = [run(algorithm=a, seed=s) for a in ("moie", "ppo", "trpo") for s in range(2)]
    runs = [(n, k, t.assign(return_sampled=t["learned_steps"] / BUDGET)) for n, k, t in runs[:4]]
    found = facts_of(curves(runs))["tasks"][0]["scale"]
    assert found["best_learners"] == ["moie K=10", "PPO"]


def test_profiles_jump_at_the_scores(facts: dict[str, Any]) -> None:
    found = facts["aggregate"]
    assert len(found["thresholds"]) == 1 + 36
    for one in found["profiles"]:
        assert (one["value"][0], one["value"][-1]) == (1.0, 0.0)


def test_settings_are_those_that_the_learner_uses_with_all_values() -> None:
    runs = [*grid(("Walk-v0",), ("ppo",)), run(algorithm="ppo", seed=4, evaluation_every=5)]
    found = facts_of(curves(runs))["results"][0]["settings"]
    assert found["evaluation_every"] == [2, 5]
    assert found["discount"] == [0.99]
    assert not {"temperature", "experts", "seed", "task"} & set(found)


def test_the_front_is_of_those_that_nobody_beats(facts: dict[str, Any]) -> None:
    for task in ("Swing-v0", "Walk-v0", WALKER):
        of_task = [one for one in facts["results"] if one["task"] == task]
        best = max(of_task, key=lambda one: one["final"]["return_sampled"]["mean"])
        # moie is the smallest, the two others are equally large.
        assert {o["learner"] for o in of_task if o["is_front"]} == {"moie K=10", best["learner"]}


def test_a_whole_comparison_has_no_problems(facts: dict[str, Any]) -> None:
    assert (facts["problems"], facts["notices"]) == ([], [])
    assert facts["n_runs"] == facts["n_found"] == 36
    assert [task["budget"] for task in facts["tasks"]] == [BUDGET] * 3
    assert [task["has_distance"] for task in facts["tasks"]] == [True, False, False]


def test_runs_that_are_behind_are_left_out_and_named() -> None:
    behind = [run(seed=3, done=11), run(algorithm="ppo", seed=3, done=7), run(seed=4, done=0)]
    found = facts_of(curves([*grid(tasks=("Walk-v0",), seeds=range(3)), *behind]))
    assert found["problems"][:2] == [
        "Walk-v0: left out, because not evaluated at 100,000 steps yet: moie K=10 seed 3 (50,000) "
        "and PPO seed 3 (30,000); resume them, or compare at fewer steps: --steps 30000.",
        "Left out, because not evaluated yet: Walk-v0/moie-k10/s4.",
    ]
    assert result(found, "Walk-v0", "moie K=10")["seeds"] == [0, 1, 2]


def test_steps_cut_the_runs() -> None:
    runs = [*grid(tasks=("Walk-v0",)), run(seed=4, done=11)]
    found = facts_of(curves(runs), steps=55_000)
    assert found["tasks"][0]["budget"] == 50_000
    assert result(found, "Walk-v0", "moie K=10")["seeds"] == [0, 1, 2, 3, 4]
    assert result(found, "Walk-v0", "PPO")["curve"]["steps"][-1] == 50_000
    assert found["problems"] == ["Walk-v0: seed 4 of PPO and TRPO is missing."]


def test_more_steps_than_there_are_is_said() -> None:
    problems, _ = remarks(curves(grid(tasks=("Walk-v0",))), steps=10**6)
    assert problems == [
        "Walk-v0 is compared at 100,000 steps: no run was evaluated at 1,000,000 or later."
    ]
    with pytest.raises(InputError, match="no run was evaluated at -1 steps or before"):
        facts_of(curves(grid(tasks=("Walk-v0",))), steps=-1)


def test_runs_that_end_before_the_asked_steps_are_not_told_to_go_on() -> None:
    runs = [*grid(("Walk-v0",), ("moie",), iterations=40), *grid(("Walk-v0",), ("ppo",))]
    problems, _ = remarks(curves(runs), steps=200_000)
    assert problems == [
        "Walk-v0: left out, because they end before 200,000 steps: PPO seeds 0-3 (100,000); resume "
        "with --iterations, or compare at fewer steps: --steps 100000."
    ]


def test_untrained_policies_can_be_compared() -> None:
    found = facts_of(curves(grid(("Walk-v0",))), steps=1)
    assert found["tasks"][0]["budget"] == 0
    assert found["notices"] == []
    assert found["aggregate"] is None


def test_a_study_that_asks_for_more_is_named() -> None:
    plan = [config("Walk-v0", "moie", s, iterations=60) for s in range(4)]
    problems, notices = remarks(curves(grid(("Walk-v0",), ("moie",)), plan))
    assert problems == [
        "Walk-v0 is compared at 100,000 steps, the study asks for 300,000; the study small, "
        "started again, goes on."
    ]
    assert notices == []


def test_missing_seeds_and_learners_are_named_together() -> None:
    tasks = ("Swing-v0", "Walk-v0")
    plan = [
        config(task, algorithm, seed)
        for task in tasks
        for algorithm in ("moie", "ppo", "trpo")
        for seed in range(25)
    ]
    problems, notices = remarks(curves(grid(tasks, ("moie", "ppo"), range(3)), plan))
    way_on = "; the study small, started again, goes on."
    assert problems == [
        "Swing-v0 and Walk-v0: TRPO is planned but has no run to compare" + way_on,
        "Swing-v0 and Walk-v0: seeds 3-24 of every learner are missing" + way_on,
    ]
    assert notices == []


def test_without_a_study_the_other_learners_say_which_seeds_are_expected() -> None:
    runs = [*grid(("Walk-v0",), ("moie",), range(6)), *grid(("Walk-v0",), ("ppo",), range(2))]
    problems, _ = remarks(curves([*runs, run(algorithm="ppo", seed=4)]))
    assert problems == ["Walk-v0: seeds 2-3, 5 of PPO are missing."]


def test_without_a_study_every_task_is_expected_to_have_the_same_seeds() -> None:
    runs = [*grid(("Walk-v0",), seeds=range(5)), *grid(("Swing-v0",), seeds=range(2))]
    problems, _ = remarks(curves(runs))
    assert problems == ["Swing-v0: seeds 2-4 of every learner are missing."]


def test_what_was_not_planned_is_named() -> None:
    plan = [config("Walk-v0", "moie", seed) for seed in range(3)]
    runs = [*grid(("Walk-v0",), ("moie",)), *grid(("Walk-v0",), ("ppo",))]
    problems, notices = remarks(curves(runs, plan))
    assert problems == []
    assert notices == [
        "Walk-v0: seed 3 of moie K=10 is not planned, but counted.",
        "PPO on Walk-v0 is not part of the study.",
    ]


def test_a_study_does_not_go_on_with_what_it_does_not_contain() -> None:
    plan = [config("Walk-v0", "moie", seed) for seed in range(25)]
    runs = [*grid(("Walk-v0",), ("moie",), range(3)), *grid(("Walk-v0",), ("ppo",), range(2))]
    problems, _ = remarks(curves(runs, plan))
    assert problems == [
        "Walk-v0: seeds 3-24 of moie K=10 are missing; the study small, started again, goes on.",
        "Walk-v0: seed 2 of PPO is missing.",
    ]


def test_the_same_seed_twice_counts_once() -> None:
    runs = [*grid(("Walk-v0",)), run(seed=2, name="again"), run(seed=1, done=9, name="begun")]
    found = facts_of(curves(runs))
    assert result(found, "Walk-v0", "moie K=10")["seeds"] == [0, 1, 2, 3]
    assert "again" not in result(found, "Walk-v0", "moie K=10")["runs"][:2]
    said = [text for text in found["problems"] if "more than once" in text]
    assert said == [
        "Walk-v0: moie K=10 has seed 1 more than once; Walk-v0/moie-k10/s1 is counted, begun not.",
        "Walk-v0: moie K=10 has seed 2 more than once; Walk-v0/moie-k10/s2 is counted, again not.",
    ]


def test_different_settings_never_meet_in_one_mean() -> None:
    warm = [run(seed=s, temperature=0.5, name=f"warm{s}") for s in range(4)]
    found = facts_of(curves([*grid(("Walk-v0",)), *warm]))
    names = [one["learner"] for one in found["learners"]]
    assert names == ["moie K=10, temperature 0.5", "moie K=10, temperature 1.0", "PPO", "TRPO"]
    assert result(found, "Walk-v0", names[0])["runs"] == [f"warm{s}" for s in range(4)]
    assert found["problems"] == [
        "Mixed settings: moie K=10 has runs with different temperature on Walk-v0; they are "
        "compared as moie K=10, temperature 0.5; and moie K=10, temperature 1.0."
    ]


def test_planned_settings_are_a_notice() -> None:
    plan = [config("Walk-v0", "moie", s, temperature=t) for s in range(2) for t in (0.5, 1.0)]
    runs = [run(seed=s, temperature=t, name=f"{s}-{t}") for s in range(2) for t in (0.5, 1.0)]
    runs += grid(("Walk-v0",), ("ppo",), range(2))  # which is not planned, and another matter
    problems, notices = remarks(curves(runs, plan))
    assert problems == []
    assert notices == [
        "Mixed settings: moie K=10 has runs with different temperature on Walk-v0; they are "
        "compared as moie K=10, temperature 0.5; and moie K=10, temperature 1.0.",
        "PPO on Walk-v0 is not part of the study.",
    ]


def test_complete_runs_that_are_nearly_as_long_are_compared_at_their_ends() -> None:
    long = {"iterations": 202, "evaluation_every": 10, "name": "longer"}
    short = {"iterations": 200, "evaluation_every": 10}
    longer, shorter = run("Walk-v0", "ppo", **long), run("Walk-v0", "moie", **short)
    found = facts_of(curves([longer, shorter]))
    assert found["problems"] == []
    assert found["notices"][0] == (
        f"Walk-v0 is compared at nearly the same steps: {200 * BATCH:,} (moie K=10) and "
        f"{202 * BATCH:,} (PPO)."
    )
    (task,) = found["tasks"]
    assert task["budget"] == 202 * BATCH
    for learner, (_, _, table), end in (("PPO", longer, 202), ("moie K=10", shorter, 200)):
        known = table[table["return_sampled"].notna()]
        late = known[known["iteration"] > 0.9 * end]["return_sampled"]
        assert len(late) == (2 if end == 200 else 3)
        assert known["iteration"].iloc[-1] == end
        final = result(found, "Walk-v0", learner)["final"]["return_sampled"]
        assert final["mean"] == pytest.approx(late.mean())

    # One that still learns is not there yet, and one that is longer by more is cut.
    unfinished = run("Walk-v0", "trpo", **long | {"name": "unfinished"}, done=201)
    problems, notices = remarks(curves([longer, shorter, unfinished]))
    assert any("not evaluated at 1,010,000 steps yet: TRPO seed 0" in one for one in problems)
    much = run("Walk-v0", "trpo", iterations=203, evaluation_every=10, name="much longer")
    problems, notices = remarks(curves([longer, shorter, much]))
    assert any("more steps than that have TRPO (1,015,000)" in one for one in notices)


def test_what_swarms_earned_in_both_simulators_is_a_notice() -> None:
    swarm = run("Hopper-v5", environments=50)
    rows = swarm[2]
    assert rows["learned_steps"].iloc[-1] == BUDGET
    rows.loc[rows["iteration"].isin([4, 14, 16]), "return_batch"] = [-9.0, 30.0, 40.0]
    rows.loc[rows["iteration"].isin([14, 16]), "return_sampled"] = [35.0, 43.0]
    _, notices = remarks(curves([swarm]))
    training = (
        "Training episodes there and evaluations of the same policies in Gymnasium earned, in "
        "the second half: moie K=10 35 and 39."
    )
    assert f"Hopper-v5 was learned in MJX. {training}" in notices

    final = {"return_sampled_mjx": 51.0, "return_sampled": 52.0}
    final |= {"return_mean_mjx": 61.0, "return_mean": 62.0}
    for name, value in final.items():
        rows.loc[rows["iteration"] == 20, name] = value
    _, notices = remarks(curves([swarm, run("Hopper-v5", "ppo")]))  # PPO with `moie train`
    assert (
        f"Hopper-v5 was learned in MJX. {training} Final policies earned there and in Gymnasium, "
        "with sampled actions: moie K=10 51 and 52. With mean actions: moie K=10 61 and 62."
    ) in notices
    _, notices = remarks(curves([run("Hopper-v5", "ppo")]))
    assert not any("MJX" in one for one in notices)


def test_what_a_learner_does_not_use_does_not_make_another_one() -> None:
    other = run(algorithm="ppo", seed=4, temperature=0.5, experts=20, name="other")
    found = facts_of(curves([*grid(("Walk-v0",), ("ppo",)), other]))
    assert [one["learner"] for one in found["learners"]] == ["PPO"]
    assert result(found, "Walk-v0", "PPO")["seeds"] == [0, 1, 2, 3, 4]


def test_experts_make_another_learner_in_order() -> None:
    many = grid(("Walk-v0",), ("moie", "trpo-diffproto-entropy"), range(2), experts=20)
    few = grid(("Walk-v0",), ("moie", "ppo-diffproto"), range(2), experts=5)
    found = facts_of(curves([*many, *few]))
    assert [one["learner"] for one in found["learners"]] == [
        "moie K=5",
        "moie K=20",
        "PPO diffproto K=5",
        "TRPO diffproto K=20 + entropy",
    ]
    assert (found["problems"], found["notices"]) == ([], [])


def test_who_lacks_a_task_is_not_in_the_aggregates() -> None:
    runs = [*grid(("Swing-v0", "Walk-v0"), ("moie", "ppo")), *grid(("Walk-v0",), ("trpo",))]
    found = facts_of(curves(runs))
    assert found["aggregate"]["learners"] == ["moie K=10", "PPO"]
    assert found["problems"] == [
        "Left out of the aggregates over all tasks, without a run to compare on Swing-v0: TRPO."
    ]


def test_a_task_without_untrained_evaluations_is_not_normalised() -> None:
    silent = grid(("Walk-v0",), ("moie", "ppo"), evaluation_every=0)
    found = facts_of(curves([*grid(("Swing-v0",), ("moie", "ppo")), *silent]))
    assert found["aggregate"]["tasks"] == ["Swing-v0"]
    assert found["problems"] == [
        "Walk-v0 is left out of the aggregates: there is no evaluation of untrained policies, or "
        "no learner became clearly better than them."
    ]


def test_evaluations_that_are_not_alike_are_named() -> None:
    rare = run(seed=4, evaluation_every=5, evaluation_episodes=9)
    found = facts_of(curves([*grid(("Walk-v0",), ("moie",)), rare]))
    assert found["results"][0]["curve"]["steps"] == [0, 50_000, 100_000]
    assert found["notices"] == [
        "Walk-v0: runs of moie K=10 were evaluated every 2 and 5 iterations; its curve has the 3 "
        "steps that all have.",
        "Walk-v0: evaluations have 5 episodes (moie K=10) and 9 episodes (moie K=10).",
    ]


def test_an_early_last_evaluation_is_named() -> None:
    runs = [*grid(("Walk-v0",), ("moie",)), *grid(("Walk-v0",), ("ppo",), evaluation_every=10)]
    _, notices = remarks(curves(runs), steps=80_000)
    assert notices[0] == (
        "Walk-v0: PPO seeds 0-3 were last evaluated at 50,000 of 80,000 steps; this counts as the "
        "final return."
    )


def test_settings_that_differ_between_tasks_are_named() -> None:
    runs = [*grid(("Walk-v0",)), *grid(("Swing-v0",), temperature=0.33)]
    problems, notices = remarks(curves(runs))
    assert problems == []
    assert notices == [
        "Settings differ between tasks: moie K=10: temperature 0.33 on Swing-v0; temperature 1.0 "
        "on Walk-v0."
    ]


def test_settings_that_differ_between_learners_are_named() -> None:
    few = grid(("Walk-v0",), ("moie",), experts=5, temperature=0.33)
    runs = [*grid(("Walk-v0",), ("moie",)), *few, *grid(("Walk-v0",), ("ppo",), discount=0.9)]
    problems, notices = remarks(curves(runs))
    assert problems == []
    assert notices == [
        "Walk-v0: learners differ in discount, too: discount 0.99 (moie K=5 and moie K=10); "
        "discount 0.9 (PPO).",
        "Walk-v0: learners differ in temperature, too: temperature 0.33 (moie K=5); temperature "
        "1.0 (moie K=10).",
    ]


def test_learners_that_were_evaluated_more_often_are_named() -> None:
    often = grid(("Walk-v0",), ("moie",), evaluation_every=1, iterations=40, batch_steps=2500)
    rare = grid(("Walk-v0",), ("ppo",), evaluation_every=20, iterations=40, batch_steps=2500)
    problems, notices = remarks(curves([*often, *rare]))
    assert problems == []
    assert notices == [
        "Walk-v0: final returns are means of different numbers of evaluations: 1 (PPO) and 4 "
        "(moie K=10); those of fewer vary more."
    ]


# --- attention -----------------------------------------------------------------------------------


def test_attention_is_of_the_policies_that_final_returns_are_of() -> None:
    found = curves(grid(("Walk-v0",), ("moie", "ppo"), evaluation_every=1, iterations=40))
    one = result(facts_of(found), "Walk-v0", "moie K=10")["final"]["attention"]
    for seed in range(4):
        rows = rows_of(found, "Walk-v0", "moie", seed)
        late = [r["evaluated_attention"] for r in rows if r["learned_steps"] > 36 * BATCH]
        assert one["runs"][seed] == pytest.approx(sum(late) / 4)
    interval = stats.ttest_1samp(one["runs"], 0.0).confidence_interval(0.95)
    assert (one["low"], one["high"]) == pytest.approx((interval.low, interval.high))
    assert one["seeds"] == [0, 1, 2, 3]
    assert result(facts_of(found), "Walk-v0", "PPO")["final"]["attention"] is None


def test_seeds_that_did_not_record_attention_are_named() -> None:
    old = [run(seed=s, records_attention=False) for s in range(2)]
    found = facts_of(curves([*old, *(run(seed=s) for s in (2, 3))]))
    one = result(found, "Walk-v0", "moie K=10")["final"]["attention"]
    assert one["runs"][:2] == [None, None]
    assert one["mean"] == pytest.approx(np.mean(one["runs"][2:]))
    assert one["seeds"] == [2, 3]
    assert found["notices"] == [
        "Walk-v0: the attention of moie K=10 is that of seeds 2-3; seeds 0-1 did not record it."
    ]


def test_learners_that_did_not_record_attention_are_named() -> None:
    old = grid(("Swing-v0", "Walk-v0"), ("moie",), records_attention=False, experts=5)
    new = grid(("Swing-v0", "Walk-v0"), ("moie", "ppo"))
    found = facts_of(curves([*old, *new]))
    assert result(found, "Walk-v0", "moie K=5")["final"]["attention"] is None
    assert found["notices"] == ["Attention was not recorded for moie K=5 on Swing-v0 and Walk-v0."]
    assert [task["has_attention"] for task in found["tasks"]] == [True, True]
    silent = facts_of(curves([*old, *grid(("Swing-v0", "Walk-v0"), ("ppo",))]))
    assert silent["notices"] == []
    assert [task["has_attention"] for task in silent["tasks"]] == [False, False]


def test_the_front_of_attention_is_of_those_that_nobody_beats() -> None:
    names = {5: (2.0, 10.0), 10: (3.0, 9.0), 20: (4.0, 30.0), 40: (4.0, 20.0)}
    runs = []
    for experts, (lines, value) in names.items():
        for seed in range(2):
            name, known, table = run(seed=seed, experts=experts)
            values = {"evaluated_attention": lines, "return_sampled": value}
            runs.append((name, known, table.assign(**values)))
    found = facts_of(curves([*runs, run(algorithm="ppo"), run(algorithm="ppo", seed=1)]))
    front = [one["learner"] for one in found["results"] if one["is_attention_front"]]
    assert front == ["moie K=5", "moie K=20"]


# --- numbers that are none -----------------------------------------------------------------------


def without(some: synthetic.Run, measure: str, *iterations: int) -> synthetic.Run:
    """The same run, but what was measured in these iterations is not finite."""
    name, known, table = some
    table = table.assign(
        length_sampled=table["return_sampled"].notna().map({True: 9.0, False: None})
    )
    table.loc[table["iteration"].isin(iterations), measure] = None
    return name, known, table


def test_a_run_that_does_not_end_with_a_finite_return_is_left_out_and_named() -> None:
    runs = [*grid(("Walk-v0",), seeds=range(3)), without(run(seed=3), "return_sampled", 20)]
    found = facts_of(curves([*runs, run(algorithm="ppo", seed=3), run(algorithm="trpo", seed=3)]))
    assert result(found, "Walk-v0", "moie K=10")["seeds"] == [0, 1, 2]
    assert found["problems"] == [
        "Walk-v0: moie K=10 seed 3 is left out, because it does not end with a finite return; "
        "without such runs a learner looks better than it is."
    ]
    with pytest.raises(InputError, match="nothing to compare: no run ends with a finite return"):
        facts_of(curves([without(run(), "return_sampled", 20)]))


def test_an_evaluation_without_a_finite_return_is_a_gap_and_named() -> None:
    broken = without(run(seed=3), "return_sampled", 0, 8, 10)
    found = facts_of(curves([*grid(("Walk-v0",), ("moie",), range(3)), broken]))
    one = result(found, "Walk-v0", "moie K=10")
    assert one["seeds"] == [0, 1, 2, 3]
    assert one["curve"]["steps"] == [i * BATCH for i in range(0, 21, 2)]
    assert [i for i, mean in enumerate(one["curve"]["mean"]) if mean is None] == [0, 4, 5]
    assert found["problems"] == [
        "Walk-v0: moie K=10 seed 3 has 3 evaluations without a finite return; the learner's curve "
        "has gaps there."
    ]
    assert found["tasks"][0]["scale"]["untrained"] is not None


def test_raw_and_clipped_runs_never_meet_in_one_mean_and_clipped_ones_are_named() -> None:
    kinds = [
        run(WALKER, "moie", seed, actions=kind, name=f"{WALKER}/{kind}/s{seed}")
        for kind in ("raw", "clipped")
        for seed in (0, 1)
    ]
    found = facts_of(curves([*kinds, *grid((WALKER,), ("ppo",), range(2))]))
    names = {one["learner"]: one["seeds"] for one in found["results"]}
    assert names == {
        "moie K=10, actions clipped": [0, 1],
        "moie K=10, actions raw": [0, 1],
        "PPO": [0, 1],
    }
    said = "moie K=10, actions clipped were clipped to their range. The paper's agents are charged"
    assert any(f"{WALKER}: actions of {said}" in notice for notice in found["notices"])
    everyone = [run(WALKER, "moie", seed, actions="clipped") for seed in (0, 1)]
    (notice,) = facts_of(curves(everyone))["notices"]
    assert notice.startswith(f"{WALKER}: actions were clipped to their range. The paper's agents")
    elsewhere = [run("Walk-v0", "moie", seed, actions="clipped") for seed in (0, 1)]
    assert facts_of(curves(elsewhere))["notices"] == []


def test_a_distance_that_is_not_known_is_named() -> None:
    runs = [*grid((WALKER,), ("moie", "ppo"), range(2))]
    found = facts_of(curves([*runs[:-1], without(runs[-1], "distance_sampled", 20)]))
    assert result(found, WALKER, "PPO")["final"]["distance_sampled"] is None
    assert found["notices"] == [
        f"{WALKER}: the distance of PPO is left out, because it is not known of seed 1."
    ]


def test_policies_of_different_sizes_are_named() -> None:
    name, known, table = run(seed=4)
    found = facts_of(
        curves([*grid(("Walk-v0",), ("moie",)), (name, known, table.assign(parameters=74))])
    )
    assert found["results"][0]["parameters"] == 74
    assert found["notices"] == [
        "Walk-v0: policies of moie K=10 have 71 and 74 parameters; the largest counts."
    ]


def test_versions_and_machines_are_named() -> None:
    large = {"system": "Linux", "machine": "x86_64", "processor": "A CPU", "cores": 64}
    later = run(seed=4, versions={"moie": "0.2.0", "jax": "0.9"}, host=large)
    _, notices = remarks(curves([*grid(("Walk-v0",), ("moie",)), later]))
    assert notices == [
        "Versions of jax differ: 0.9 in 1 run and none in 4 runs.",
        "Versions of moie differ: 0.1.0 in 4 runs and 0.2.0 in 1 run.",
        "Machines differ, or are not recorded: A CPU, x86_64, Linux, 64 cores: 1 run; not "
        "recorded: 4 runs.",
    ]


def test_one_seed_has_no_interval_and_that_is_said() -> None:
    found = facts_of(curves(grid(("Walk-v0", "Swing-v0"), seeds=range(1))))
    assert found["notices"] == ["Every learner has one seed a task: there are no intervals."]
    assert {one["final"]["return_sampled"]["half"] for one in found["results"]} == {None}
    assert {one["low"] for one in found["aggregate"]["iqm"]} == {None}
    assert found["aggregate"]["coverage"] is None
    mixed = [*grid(("Walk-v0",), ("moie",)), run(algorithm="ppo")]
    _, notices = remarks(curves(mixed))
    assert notices == ["No interval, because there is one seed: PPO on Walk-v0."]


def test_nothing_evaluated_is_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="nothing to compare: no run was evaluated"):
        facts_of(curves([run(evaluation_every=0, done=5)]))


def test_few_runs_come_with_a_warning(facts: dict[str, Any]) -> None:
    coverage = facts["aggregate"]["coverage"]
    assert (coverage["fewest"], coverage["tasks"]) == (4, 3)
    assert 0.6 < coverage["held"] < 0.95


def test_a_learner_looks_the_same_whoever_else_is_there() -> None:
    every = [
        {"learner": f"{algorithm} {k}", "algorithm": algorithm, "experts": k, "differing": {}}
        for algorithm in registry.names()
        for k in (5, 10, 20)
    ]
    together = looks(every)
    assert len({look.colour for look in together.values()}) == len(every)
    for one in every:
        assert looks([one])[one["learner"]] == together[one["learner"]]


def test_synthetic_runs_end_as_real_ones_do() -> None:
    """The last row measures the final policy and learns nothing."""
    _, _, table = synthetic.run()
    assert list(table["learned_steps"]) == [*range(0, BUDGET, BATCH), BUDGET]
    assert table["steps"].iloc[-1] == table["steps"].iloc[-2] == BUDGET


def test_learners_with_fewer_steps_are_compared_where_they_end() -> None:
    runs = [*grid(("Walk-v0",), ("moie",)), *grid(("Walk-v0",), ("ppo",), batch_steps=2500)]
    found = facts_of(curves(runs))
    assert found["tasks"][0]["budget"] == 50_000
    assert {one["learner"] for one in found["results"]} == {"moie K=10", "PPO"}
    assert found["problems"] == []
    assert found["notices"] == [
        "Walk-v0 is compared at 50,000 steps, where the shortest complete runs end; more steps "
        "than that have moie K=10 (100,000): --steps compares later.",
        "Walk-v0: learners differ in batch steps, too: batch steps 5000 (moie K=10); batch steps "
        "2500 (PPO).",
    ]


def test_the_scale_of_features_costs_steps_that_are_planned() -> None:
    one = run(standardise=True, scaling_batches=3)
    plan = [config("Walk-v0", "moie", 0, standardise=True, scaling_batches=3)]
    problems, _ = remarks(curves([one], plan))
    assert "the study asks for 110,000" in problems[0]


def test_a_run_that_could_not_be_read_is_named() -> None:
    found = replace(curves(grid(("Walk-v0",))), unreadable=("b/run.json cannot be read",))
    assert facts_of(found)["problems"] == ["A run is left out: b/run.json cannot be read."]
    found = replace(found, unreadable=(), damaged=("b/metrics.jsonl, line 2 cannot be read",))
    problem = "Rows are left out: b/metrics.jsonl, line 2 cannot be read."
    assert facts_of(found)["problems"] == [problem]
    lost = [f"s{seed}/metrics.jsonl, iteration 3 is missing" for seed in range(9)]
    problem = "Rows are left out of 9 files, s0/metrics.jsonl among them: iteration 3 is missing."
    assert facts_of(replace(found, damaged=tuple(lost)))["problems"] == [problem]


def test_the_warning_about_few_runs_is_of_the_worst_interval() -> None:
    few = [*grid(("Walk-v0",), ("moie", "ppo"), range(3)), run(algorithm="trpo", seed=0)]
    coverage = facts_of(curves(few))["aggregate"]["coverage"]
    assert coverage["fewest"] == 3
    assert coverage["held"] < 0.9
    many = curves(grid(("Walk-v0", "Swing-v0"), ("moie", "ppo"), range(25)))
    assert facts_of(many)["aggregate"]["coverage"] is None

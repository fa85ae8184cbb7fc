"""Several folders and files as one: nothing counts twice, and what disagrees is named."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import moie
from moie.cli import main
from moie.comparison import collect, curves, learners, merging
from moie.comparison.checking import check_study
from moie.comparison.curves import Curves, Overlap
from moie.comparison.facts.assembly import make_facts
from moie.comparison.figures import charts
from moie.errors import InputError
from tests import tiny
from tests.comparison import synthetic
from tests.comparison.synthetic import BATCH, config, grid, run

OLD, NEW = Path("old.parquet"), Path("runs/more")
PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "smoke" / "evaluations.parquet"


def merged(*sources: list[synthetic.Run] | Curves) -> Curves:
    found = [one if isinstance(one, Curves) else synthetic.curves(one) for one in sources]
    return merging.merged([OLD, NEW, Path("third")][: len(found)], found)


def facts_of(found: Curves) -> dict[str, Any]:
    return make_facts(found, "folder")


def changed(some: synthetic.Run, **columns: Any) -> synthetic.Run:
    name, known, table = some
    return name, known, table.assign(**columns)


def test_several_sources_are_one_folder() -> None:
    runs = grid()
    assert facts_of(merged(runs[::2], runs[1::2])) == facts_of(synthetic.curves(runs))


def test_the_run_that_went_further_counts_and_that_is_said() -> None:
    runs = [run(seed=s) for s in range(4)]
    begun = [run(seed=s, done=11, name=f"begun{s}") for s in range(3)]
    whole = facts_of(synthetic.curves(runs))
    for sources, counts in (((begun, runs), NEW), ((runs, begun), OLD)):
        found = facts_of(merged(*sources))
        other = OLD if counts == NEW else NEW
        assert found.pop("notices") == [
            f"Walk-v0: moie K=10 seeds 0-2 are both in {other} (50,000 steps) and in {counts} "
            "(100,000 steps); the longer one counts."
        ]
        assert found == {name: value for name, value in whole.items() if name != "notices"}


def test_a_run_that_was_not_evaluated_yet_gives_way() -> None:
    found = facts_of(merged([run(done=0), run(seed=1)], [run()]))
    assert found["problems"] == []
    assert found["notices"] == [
        f"Walk-v0: moie K=10 seed 0 is both in {OLD} (no evaluation yet) and in {NEW} (100,000 "
        "steps); the longer one counts."
    ]


def test_a_run_that_was_resumed_with_more_iterations_is_the_same_run() -> None:
    found = merged([run(seed=s) for s in range(2)], [run(iterations=40, name="on")])
    assert {name: one["config"]["iterations"] for name, one in found.runs.items()} == {
        "Walk-v0/moie-k10/s1": 20,
        "on": 40,
    }


def test_the_same_rows_are_silently_one_whatever_the_clock_said() -> None:
    runs = [run(seed=s) for s in range(3)]
    again = [changed(one, seconds_total=1.0) for one in runs]
    found = merged(runs, again, synthetic.curves(runs[:1]))
    assert (found.overlaps, len(found.runs)) == ((), 3)
    assert facts_of(found) == facts_of(synthetic.curves(runs))


def test_of_the_same_rows_those_that_say_more_count() -> None:
    old = [run(seed=s, records_attention=False) for s in range(2)]
    found = facts_of(merged(old, [run(seed=s) for s in range(2)]))
    assert (found["problems"], found["notices"]) == ([], [])
    assert found["results"][0]["final"]["attention"]["seeds"] == [0, 1]


def test_rows_that_differ_are_a_problem() -> None:
    runs = [run(seed=s) for s in range(3)]
    other = changed(runs[1], return_sampled=runs[1][2]["return_sampled"] + 1e-9)
    found = facts_of(merged(runs, [other, runs[2]]))
    assert found["problems"] == [
        f"Walk-v0: moie K=10 seed 1 is both in {OLD} and in {NEW}, with the same settings and "
        f"100,000 steps, but their numbers differ; those of {OLD} count."
    ]
    assert found["notices"] == []
    assert found["results"] == facts_of(synthetic.curves(runs))["results"]


def test_doubles_within_a_source_are_named_as_before() -> None:
    twice = [run(), run(name="again"), run(seed=1)]
    (problem,) = facts_of(merged(twice, [run()]))["problems"]
    assert "has seed 0 more than once; Walk-v0/moie-k10/s0 is counted, again not" in problem


def test_different_runs_of_one_name_keep_both() -> None:
    found = merged([run(name="s0")], [run(seed=1, name="s0")], [run(seed=2, name="more/s0")])
    assert {name: one["config"]["seed"] for name, one in found.runs.items()} == {
        "s0": 0,
        "more/s0": 1,
        "third/more/s0": 2,
    }
    assert facts_of(found)["results"][0]["seeds"] == [0, 1, 2]


def test_settings_that_differ_between_sources_are_named() -> None:
    warm = [run(seed=s, temperature=0.5) for s in range(4)]
    found = facts_of(merged([run(seed=s) for s in range(4)], warm))
    assert found["problems"] == [
        "Mixed settings: moie K=10 has runs with different temperature on Walk-v0; they are "
        "compared as moie K=10, temperature 0.5; and moie K=10, temperature 1.0."
    ]
    rare = [run(seed=4, evaluation_every=5, versions={"moie": "0.2.0"})]
    notices = facts_of(merged([run(seed=s) for s in range(4)], rare))["notices"]
    assert "were evaluated every 2 and 5 iterations" in notices[0]
    assert notices[1] == "Versions of moie differ: 0.1.0 in 4 runs and 0.2.0 in 1 run."


def test_a_setting_that_is_newer_than_a_run_has_its_default(tmp_path: Path) -> None:
    plan = [config("Walk-v0", "moie", seed) for seed in range(2)]
    found = synthetic.curves([run(seed=s) for s in range(2)], plan)
    for facts in found.runs.values():
        del facts["config"]["learner"]["policy"]["temperature"]
    assert found.study is not None
    del found.study["settings"]["temperature"]
    curves.write(found, tmp_path / "old.parquet")
    facts = facts_of(merged(curves.read(tmp_path / "old.parquet"), [run(seed=2)]))
    assert [one["learner"] for one in facts["learners"]] == ["moie K=10"]
    assert facts["notices"] == ["Walk-v0: seed 2 of moie K=10 is not planned, but counted."]


def test_studies_are_put_together() -> None:
    small = [config("Walk-v0", "moie", seed) for seed in range(2)]
    large = [config("Walk-v0", "moie", seed, iterations=40) for seed in range(1, 4)]
    first = synthetic.curves([run(seed=s) for s in range(2)], small)
    other = synthetic.curves([run(seed=s, iterations=40) for s in (2, 3)], large)
    assert other.study is not None
    found = merged(first, replace(other, study=other.study | {"name": "large"}))
    assert found.study is not None
    assert (found.study["name"], found.study["description"]) == ("small and large", "A test.")
    plan = sorted((one.seed, one.steps // BATCH) for one in learners.plan_of(found.study))
    assert plan == [(0, 20), (1, 40), (2, 40), (3, 40)]
    assert check_study(found.study) == found.study
    assert merged(found, first).study == found.study
    assert merged(first, [run(seed=2)]).study == first.study


def test_what_could_not_be_read_is_still_named() -> None:
    one = replace(synthetic.curves([run()]), unreadable=("b/run.json cannot be read",))
    assert merged(one, one, [run(seed=1)]).unreadable == ("b/run.json cannot be read",)


def test_a_merged_file_says_the_same_again_and_can_be_merged_again(tmp_path: Path) -> None:
    old = [run(seed=s, done=11) for s in range(2)]
    found = merged([*old, run(seed=2)], [changed(run(seed=2), return_mean=0.0), run(seed=0)])
    file = tmp_path / "evaluations.parquet"
    curves.write(found, file)
    again = curves.read(file)
    pd.testing.assert_frame_equal(again.rows, found.rows)
    assert replace(again, rows=found.rows) == found
    assert facts_of(again) == facts_of(found)
    names = {one.run: one.other for one in again.overlaps}
    assert names == {"Walk-v0/moie-k10/s0": str(OLD), "Walk-v0/moie-k10/s2": str(NEW)}
    # What was said of a run is said as long as it counts.
    later = merged(again, [run(seed=0, iterations=40), run(seed=1)])
    assert [(one.run[-2:], one.reached) for one in later.overlaps] == [
        ("s2", 20 * BATCH),
        ("s0", 40 * BATCH),
        ("s1", 20 * BATCH),
    ]


def test_an_overlap_of_a_damaged_run_is_forgotten(tmp_path: Path) -> None:
    found = synthetic.curves([run(), run(seed=1)])
    gone = replace(found, overlaps=(Overlap("nobody", "a", "b", 2, 1),))
    curves.write(gone, tmp_path / "a.parquet")
    assert curves.read(tmp_path / "a.parquet").overlaps == ()


# --- learners with experts -----------------------------------------------------------------------


def test_crisp_is_compared_beside_moie() -> None:
    runs = grid(("Walk-v0",), ("moie", "crisp", "ppo"), range(2), experts=5)
    found = facts_of(synthetic.curves(runs))
    assert {one["learner"] for one in found["learners"]} == {"moie K=5", "crisp K=5", "PPO"}
    assert found["problems"] == []


# --- files and folders ---------------------------------------------------------------------------


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take the most time."""
    monkeypatch.setattr(charts, "FIGURES", {})


@pytest.fixture
def more(pendulum: Path, tmp_path: Path) -> Path:
    """A folder with one run."""
    tiny.copy(pendulum, tmp_path / "more" / "s0")
    return tmp_path / "more"


def test_a_run_joins_published_evaluations(
    more: Path, tmp_path: Path, without_figures: None
) -> None:
    """Which are old, and replaced as a whole."""
    out = tmp_path / "x"
    shutil.copytree(PUBLISHED.parent, out)
    (out / "figures" / "stale.svg").write_text("")
    assert "attention" not in curves.read(out / "evaluations.parquet").rows
    words = ["compare", str(out / "evaluations.parquet"), str(more), "--out", str(out)]
    assert main.main(words) == 0
    first = tiny.contents(out)
    assert "figures/stale.svg" not in first
    facts = json.loads(first["facts.json"])
    assert facts["name"] == "smoke"
    assert facts["n_found"] == 1 + len(curves.read(PUBLISHED).runs)
    (joined,) = [one for one in facts["results"] if one["learner"] == "moie K=3"]
    assert joined["final"]["attention"]["mean"] >= 1
    assert facts["hosts"]
    assert main.main(words) == 0  # the same command once more changes nothing
    assert tiny.contents(out) == first
    found = curves.read(out / "evaluations.parquet")
    assert set(found.runs["s0"]) == {"config", "versions", "host"}
    assert tiny.leftovers(tmp_path) == []


def test_the_python_interface_takes_several(
    more: Path, tmp_path: Path, without_figures: None
) -> None:
    page = moie.compare(str(PUBLISHED), more, out=tmp_path / "out", quiet=True)
    assert page == tmp_path / "out" / "comparison.html"
    with pytest.raises(InputError, match="--out is missing: a comparison of 2 folders or files"):
        moie.compare(str(PUBLISHED), more, quiet=True)


def test_the_command_line_says_what_is_missing(
    more: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        ([str(PUBLISHED), str(more)], "--out is missing"),
        ([], "a folder of runs or a file of curves is missing"),
        ([str(more), str(more / "nothing"), "--out", "x"], "there is no folder of runs or file"),
    ):
        assert main.main(["compare", *words]) == 2
        assert said in capsys.readouterr().err


def test_what_is_read_is_never_what_is_lost(more: Path, without_figures: None) -> None:
    page = moie.compare(more, quiet=True)
    (page.parent / "runs").mkdir()
    tiny.copy(more / "s0", page.parent / "runs" / "s0")
    before = tiny.contents(more)
    with pytest.raises(InputError, match=r"comparison/runs is in .*, which would be replaced"):
        moie.compare(more / "s0", page.parent / "runs", out=page.parent, quiet=True)
    assert tiny.contents(more) == before


def test_evaluations_with_runs_that_can_not_be_read_are_not_replaced(
    tmp_path: Path, without_figures: None
) -> None:
    found, file = synthetic.curves([run(), run(seed=1, name="b")]), tmp_path / "a.parquet"
    curves.write(found, file)
    page = moie.compare(file, out=tmp_path / "out", quiet=True)
    evaluations = page.parent / "evaluations.parquet"
    found.runs["b"]["config"]["learner"]["algorithm"] = "of a later version"
    curves.write(found, evaluations)
    before = tiny.contents(page.parent)
    with pytest.raises(InputError, match="has runs that cannot be read: b; choose another --out"):
        moie.compare(evaluations, file, out=page.parent, quiet=True)
    assert tiny.contents(page.parent) == before


def test_runs_of_some_algorithms_alone(tmp_path: Path, without_figures: None) -> None:
    file, out = tmp_path / "a.parquet", tmp_path / "out"
    curves.write(
        synthetic.curves([run(), run(seed=1), run(algorithm="ppo"), run(algorithm="crisp")]), file
    )
    assert main.main(["compare", str(file), "--out", str(out), "--algorithms", "moie", "ppo"]) == 0
    found = curves.read(out / "evaluations.parquet")
    assert {facts["config"]["learner"]["algorithm"] for facts in found.runs.values()} == {
        "moie",
        "ppo",
    }
    assert len(found.runs) == 3
    assert set(found.rows["run"]) == set(found.runs)
    before = tiny.contents(out)
    with pytest.raises(InputError, match=r"has runs of other algorithms: .*ppo.*choose another"):
        moie.compare(out / "evaluations.parquet", out=out, algorithms="moie", quiet=True)
    for names, said in (
        (["trpo"], "there are no runs of trpo"),
        (["sarsa"], "algorithm is 'sarsa', expected one of moie"),
        ([], r"algorithms is \[\], expected some of moie"),
    ):
        with pytest.raises(InputError, match=said):
            moie.compare(file, out=out, algorithms=names, quiet=True)
    assert tiny.contents(out) == before


def test_of_a_study_what_is_planned_of_some_algorithms(tmp_path: Path) -> None:
    found = curves.read(PUBLISHED)
    part = merging.of_algorithms(found, ["ppo"])
    assert found.study is not None
    assert part.study is not None
    assert {one.settings["algorithm"] for one in learners.plan_of(part.study)} == {"ppo"}
    assert 0 < len(part.study["runs"]) < len(found.study["runs"])
    assert "moie" not in "".join(make_facts(part, "folder")["problems"])


def test_a_folder_that_is_a_run_gives_the_run_its_name(
    pendulum: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_figures: None
) -> None:
    for number, name in enumerate(("first/s0", "second/s0", "third/s2")):
        copy = tiny.copy(pendulum, tmp_path / name)
        content = json.loads((copy / "run.json").read_text())
        content["config"]["seed"] = number
        (copy / "run.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path / "first" / "s0")
    folders = ["../../third/s2", ".", "../../second/s0"]
    assert main.main(["compare", *folders, "--out", str(tmp_path / "out")]) == 0
    facts = json.loads((tmp_path / "out" / "facts.json").read_text())
    assert [one["runs"] for one in facts["results"]] == [["s0", "second/s0", "s2"]]
    assert list(collect.read(tmp_path / "third" / "s2").runs) == ["s2"]


def test_a_folder_and_its_own_evaluations_are_one(more: Path, without_figures: None) -> None:
    page = moie.compare(more, quiet=True)
    found = merging.read([page.parent / "evaluations.parquet", more])
    assert (list(found.runs), found.overlaps) == (["s0"], ())
    rows = collect.read(more).rows
    expected = rows[curves.is_evaluation(rows)].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.rows[list(expected)], expected)

"""Grids become runs; every mistake of a declaration is found, and all of them at once."""

import json
from pathlib import Path

import pytest

from moie.comparison.learners import plan_of
from moie.errors import InputError
from moie.runs.config import from_json
from moie.studies.conduct import declaration
from moie.studies.declaration import Grid, Study, plan
from moie.studies.toml_file import from_toml, load, shipped
from tests.simulators import needs


def names(text: str) -> list[str]:
    return [one.name for one in from_toml(text, "mine", "mine.toml")[1]]


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        from_toml(text, "mine", "mine.toml")
    first, *found = str(caught.value).split("\n  ")
    assert first.startswith("mine.toml has ")
    assert first.endswith("nothing was started")
    return found


# --- from grids to runs --------------------------------------------------------------------------


@needs("bullet")
def test_a_grid_is_all_combinations_and_first_seeds_come_first() -> None:
    grid = Grid(("pendulum", "hopper"), ("moie", "ppo"), experts=(5, 20), seeds=2)
    found = [one.name for one in plan(Study("mine", (grid,)))]
    learners = ("moie-k5", "moie-k20", "ppo")
    tasks = ("Pendulum-v1", "HopperBulletEnv-v0")
    assert found == [f"{t}/{who}/s{s}" for s in (0, 1) for t in tasks for who in learners]


@needs("bullet")
def test_a_run_has_its_tasks_preset_and_the_studys_settings() -> None:
    study = Study("mine", (Grid("ant", experts=7, seeds=[4], settings={"bound": 0.02}),))
    (one,) = plan(study)
    learner = one.config.learner
    assert (one.config.task, one.config.seed, one.config.iterations) == ("AntBulletEnv-v0", 4, 1000)
    assert learner.policy.experts == 7
    assert learner.policy.temperature == 0.33
    assert learner.trust_region.bound == 0.02


def test_a_list_of_values_is_a_dimension_with_a_name_of_its_own() -> None:
    text = """
    tasks = "pendulum"
    [settings]
    temperature = [0.5, 1]
    hidden = [[32], [64, 64]]
    """
    found = names(text)
    assert len(found) == 4
    assert found[0] == "Pendulum-v1/moie-k10-temperature=0.5-hidden=_32_/s0"
    runs = from_toml(text, "mine", "mine.toml")[1]
    assert {one.config.learner.critic.hidden for one in runs} == {(32,), (64, 64)}
    text = "tasks = 'pendulum'\nalgorithms = 'ppo'\n[settings]\npolicy_hidden = [16, 16]"
    (one,) = from_toml(text, "mine", "mine.toml")[1]
    assert one.config.learner.network.policy_hidden == (16, 16)


def test_grids_add_up_and_inherit() -> None:
    text = """
    tasks = ["pendulum"]
    seeds = 2
    [settings]
    iterations = 7
    [[grid]]
    experts = [5]
    settings = {bound = 0.02}
    [[grid]]
    algorithms = "trpo"
    seeds = 1
    """
    runs = from_toml(text, "mine", "mine.toml")[1]
    assert [one.name.split("/", 1)[1] for one in runs] == ["moie-k5/s0", "trpo/s0", "moie-k5/s1"]
    assert {one.config.iterations for one in runs} == {7}
    assert [one.config.learner.trust_region.bound for one in runs] == [0.02, 0.015, 0.02]


def test_settings_that_an_algorithm_does_not_look_at_give_it_no_more_runs() -> None:
    found = names("""
    tasks = "pendulum"
    algorithms = ["moie", "ppo", "trpo-diffproto-entropy"]
    [settings]
    temperature = [0.5, 1, 1.0]
    clip = [0.1, 0.2]
    entropy_fall = [0.005, 0.01]
    """)
    learners = [name.split("/")[1] for name in found]
    assert len(learners) == 4 + 2 + 4
    assert learners[0] == "moie-k10-temperature=0.5-entropy_fall=0.005"
    assert [name for name in learners if name.startswith("ppo")] == ["ppo-clip=0.1", "ppo-clip=0.2"]


def test_settings_that_an_algorithm_does_not_look_at_make_its_runs_no_other_ones() -> None:
    text = "tasks = 'pendulum'\nalgorithms = ['moie', 'ppo']\n[settings]\ntemperature = "
    _, before = from_toml(text + "[0.5, 1.0]", "mine", "mine.toml")
    _, after = from_toml(text + "[0.25, 0.5, 1.0]", "mine", "mine.toml")
    assert before[-1] == after[-1]
    grid = "[[grid]]\nexperts = {}\nsettings = {{temperature = {}}}\n"
    text = "tasks = 'pendulum'\nalgorithms = ['moie', 'ppo']\n"
    found = names(text + grid.format(5, 0.5) + grid.format(10, 1.0))
    assert [name.split("/")[1] for name in found] == ["moie-k5", "ppo", "moie-k10"]


def test_every_mistake_is_found_whatever_else_is_wrong() -> None:
    assert len(mistakes("tasks = 'nope'\nalgorithms = 'nopp'\nexperts = [0, -1]")) == 4
    assert len(mistakes("seeds = 'two'")) == 2
    (found,) = mistakes("tasks = 'pendulum'\nexperts = 30\n[settings]\nbatch_steps = 20")
    assert found.startswith("settings: experts is 30, expected no more than batch_steps (20)")
    (found,) = mistakes("tasks = 'pendulum'\nseeds = 1_000_000_000")
    assert found == "seeds: 1000000000, expected at most 10000"
    (found,) = mistakes("tasks = 'pendulum'\nname = '..'")
    assert found.startswith("name: '..', expected letters")


@needs("bullet")
def test_the_study_of_crisp_gives_each_task_its_budget() -> None:
    _, planned = load("crisp")
    assert len(planned) == 5 * 3 * 3 + 5 * 3
    budgets = {one.config.task: one.config.iterations for one in planned}
    assert budgets["HopperBulletEnv-v0"] == 1000
    assert budgets["AntBulletEnv-v0"] == 340
    crisp = [one.config for one in planned if one.config.learner.algorithm == "crisp"]
    assert all(config.standardise for config in crisp)
    paper = [one.config for one in planned if one.config.learner.algorithm == "moie"]
    assert not any(config.standardise for config in paper)


@needs("bullet")
@pytest.mark.parametrize(
    ("name", "runs", "iterations"),
    [
        ("paper-locomotion", 4 * 6 * 25, 1000),
        ("paper-small", 3 * 6 * 25, 500),
        ("paper-diffproto", 4 * 6 * 24, 1000),
        ("smoke", 3 * 6 * 2, 10),
    ],
)
def test_what_comes_with_the_package(name: str, runs: int, iterations: int) -> None:
    study, planned = load(name)
    assert study.name == name
    assert study.description
    assert len(planned) == runs
    assert {one.config.iterations for one in planned} == {iterations}
    assert name in shipped()


# --- mistakes ------------------------------------------------------------------------------------


def test_all_mistakes_come_at_once() -> None:
    found = mistakes("""
    tasks = ["hoper", "pendulum"]
    algorithms = ["ppoo", "moie"]
    experts = [10, 0]
    seeds = [0, 0]
    sedes = 3
    [settings]
    temprature = 1
    temperature = [0.5, "warm"]
    seed = 3
    bound = -1
    """)
    expected = (
        "sedes: unknown; did you mean seeds?",
        "tasks: unknown environment 'hoper'; nearest: hopper",
        "algorithms: algorithm is 'ppoo', expected one of moie, crisp",
        "settings: unknown setting 'temprature'; did you mean temperature",
        "settings: temperature is 'warm', expected a value of type float",
        "settings: seed is a dimension of its own: write seeds = ...",
        "settings: bound is -1.0, expected a positive number",
        "seeds: [0, 0], the same seed twice",
        "settings: experts is 0, expected at least 1",
    )
    assert len(found) == len(expected)
    for words in expected:
        assert any(line.startswith(words) for line in found), words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "tasks: there are none"),
        ("tasks = 3", "tasks: 3, expected a name or a list of names"),
        ("tasks = 'pendulum'\nseeds = 0", "seeds: 0, expected how many (3) or which"),
        ("tasks = 'pendulum'\nseeds = [-1]", "seeds: [-1], expected how many"),
        ("tasks = 'pendulum'\nseeds = 'two'", "seeds: 'two', expected a whole number"),
        ("tasks = 'pendulum'\nexperts = []", "experts: there are none"),
        ("tasks = 'pendulum'\nalgorithms = []", "algorithms: there are none"),
        ("tasks = 'pendulum'\nname = 'a/b'", "name: 'a/b', expected letters"),
        ("tasks = 'pendulum'\ndescription = 3", "description: 3, expected a text"),
        (
            f"tasks = 'pendulum'\ndescription = 0x{5000 * 'f'}",
            "description: a very large int, expected a text",
        ),
        (
            f"tasks = 'pendulum'\nseeds = 0x{5000 * 'f'}",
            "seeds: a very large int, expected at most",
        ),
        ("tasks = 'pendulum'\nsettings = 3", "settings: 3, expected a table"),
        ("tasks = 'pendulum'\ngrid = 3", "grid: 3, expected tables"),
        (
            "tasks = 'pendulum'\nsettings = 3\n[[grid]]\nsettings = {bound = 0.02}",
            "settings: 3, expected a table",
        ),
        ("tasks = 'pendulum'\nexperts = 10.5", "experts: 10.5, expected a whole number"),
        ("tasks = 'pendulum'\nseeds = 3.0", "seeds: 3.0, expected a whole number"),
        (
            "tasks = 'pendulum'\n[settings]\nentropy_fraction = nan",
            "settings: entropy_fraction is nan, expected a finite number",
        ),
        (
            "tasks = 'pendulum'\n[settings]\ntemperature = inf",
            "settings: temperature is inf, expected a finite number",
        ),
        (
            f"tasks = 'pendulum'\n[settings]\ntemperature = 1{400 * '0'}",
            "settings: temperature is 1000",
        ),
        (
            f"tasks = 'pendulum'\n[settings]\nhidden = [[8], [{'8, ' * 93}]]",
            "Pendulum-v1/moie-k10-hidden=_8_8_8_8_8_8_8_8_8_8_8_8_8_8_8_8...: a name of over 200",
        ),
        (
            "tasks = 'pendulum'\nseeds = 300\n[settings]\n"
            + "\n".join(
                f"{name} = [1, 2, 3, 4, 5]" for name in ("epochs", "minibatch", "candidates")
            ),
            "settings: more than 20,000 runs of moie on Pendulum-v1",
        ),
        pytest.param(
            "tasks = ['pendulum', 'hopper', 'ant']\nseeds = 7000",
            "grid: more than 20,000 runs in all",
            marks=needs("bullet"),
        ),
        (
            "tasks = 'pendulum'\n[[grid]]\nsettings = {bound = [0.02, 0.03]}\n[[grid]]\n"
            "settings = {bound = 0.02}",
            "Pendulum-v1/moie-k10/s0: the same run as Pendulum-v1/moie-k10-bound=0.02/s0, of",
        ),
        ("tasks = 'pendulum'\n[[grid]]\nseed = 3", "grid 1: seed: unknown; did you mean seeds?"),
        ("tasks = 'pendulum'\n[settings]\nhidden = 5", "settings: hidden is 5, expected a value"),
        ("tasks = 'pendulum'\n[settings]\nbound = []", "settings: bound is an empty list"),
        (
            "tasks = 'pendulum'\n[[grid]]\n[[grid]]\nsettings = {bound = 0.02}",
            "Pendulum-v1/moie-k10/s0: two grids have this run, with different settings",
        ),
    ],
)
def test_a_mistake_is_named(text: str, words: str) -> None:
    (found,) = mistakes(text)
    assert found.startswith(words)


def test_a_file_that_is_not_there_or_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown study 'smok'; did you mean smoke"):
        load("smok")
    with pytest.raises(InputError, match=r"cannot read .*none.toml: No such file"):
        load(str(tmp_path / "none.toml"))
    for text in ("tasks = [", f"seeds = {5000 * '1'}", f"seeds = {3000 * '['}"):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(InputError, match=r"bad\.toml is not TOML"):
            load(str(tmp_path / "bad.toml"))


@needs("bullet")
def test_what_a_study_leaves_on_disk_has_every_setting_of_every_run() -> None:
    text = "tasks = ['pendulum', 'ant']\nalgorithms = ['moie', 'ppo']\nseeds = 2"
    study, planned = from_toml(text, "mine", "mine.toml")
    content = json.loads(json.dumps(declaration(study, planned)))
    again = plan_of(content)
    assert [one.name for one in again] == [one.name for one in planned]
    for one, run in zip(again, planned, strict=True):
        assert from_json(one.settings) == run.config

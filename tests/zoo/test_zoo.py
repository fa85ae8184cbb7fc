"""The policies that come with the package: what the catalogue says of them is so."""

import hashlib
import math
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli.main import main
from moie.environments.catalogue import TASKS
from moie.explanation import figures
from moie.policy import file as policy_file
from moie.policy.mixture import Mixture
from moie.policy.truth import in_range
from moie.runs.disk.directory import versions
from moie.runs.evaluation import Evaluator, summary
from moie.zoo import catalogue
from tests import tiny
from tests.simulators import needs

MUJOCO = {"hopper-v5": "Hopper-v5", "halfcheetah-v5": "HalfCheetah-v5"}
EXTRAS = {task.short: task.package_extra for task in TASKS} | dict.fromkeys(MUJOCO, "mujoco")
NAMES = list(EXTRAS)
SIMULATION = ("system", "machine", "numpy", "gymnasium", "pybullet", "pybullet-envs-gymnasium")
SIMULATION += ("box2d", "mujoco")
"""What an episode's numbers depend on."""
TOLERANCE = 1e-6
"""Relative, where the simulation is the one that the catalogue was measured with."""
SIGMAS = 4.0
"""Standard errors of the mean of so few episodes, where it is another one: a walker's episode takes
another course when a single bit differs."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mixture(name: str) -> Mixture:
    policy = moie.load(f"zoo:{name}")
    assert isinstance(policy, Mixture)
    return policy


def is_same_simulation() -> bool:
    here = versions() | {"system": platform.system(), "machine": platform.machine()}
    there = catalogue.content()["measured_with"]
    return all(here.get(name) == there.get(name) for name in SIMULATION)


# --- the policies --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs(extra) if extra else ()) for n, extra in EXTRAS.items()]
)
def test_it_earns_what_the_catalogue_says(name: str) -> None:
    entry, measured = catalogue.find(name), catalogue.content()
    with Evaluator(entry.task, measured["episodes_seed"], 1) as evaluator:
        episodes = evaluator.episodes(mixture(name), catalogue.HELD, kinds=["mean"])["mean"]
    returns = summary("mean", episodes).returns
    if is_same_simulation():
        assert returns == pytest.approx(entry.first_returns, rel=TOLERANCE)
    error = entry.standard_error * math.sqrt(measured["episodes"] / catalogue.HELD)
    assert abs(np.mean(returns) - entry.return_mean) <= SIGMAS * error + TOLERANCE


def test_there_is_one_for_each_of_the_papers_tasks_and_two_of_mujocos() -> None:
    expected = {task.short: task.id for task in TASKS} | MUJOCO
    assert {entry.name: entry.task for entry in moie.zoo.entries()} == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_agrees_with_the_file(name: str) -> None:
    entry, policy = catalogue.find(name), mixture(name)
    content = entry.file.read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry.sha256
    assert policy_file.to_bytes(policy) == content
    assert policy.task == entry.task
    assert policy.n_experts == entry.experts <= 10
    trained = ("algorithm", "iterations", "steps", "seed")
    assert [policy.trained[key] for key in trained] == [getattr(entry, key) for key in trained]
    assert in_range(policy) == entry.in_range == 1.0
    assert f"--algorithm {entry.algorithm} --experts {entry.experts}" in entry.command
    assert all(origin is not None for origin in policy.origins)


def test_the_policies_are_small() -> None:
    files = list(catalogue.POLICIES.iterdir())
    assert sorted(files) == sorted(entry.file for entry in moie.zoo.entries())
    assert sum(file.stat().st_size for file in files) <= 1_000_000


# --- their names ---------------------------------------------------------------------------------


def test_a_name_will_do_where_a_file_will(folder: Path, capfd: pytest.CaptureFixture) -> None:
    file = str(catalogue.file_of("pendulum"))
    assert moie.show("zoo:pendulum") == moie.show(Path("zoo:pendulum")) == moie.show(file)
    (folder / "state.json").write_text("[1.0, 0.0, 0.0]")
    for words in (["show"], ["evaluate", "--episodes", "2"], ["explain", "--state", "state.json"]):
        said = []
        for name in ("zoo:pendulum", file):
            assert main([words[0], name, *words[1:]]) == 0
            said.append(capfd.readouterr().out)
        assert said[0] == said[1] != ""


@pytest.mark.parametrize("words", [["show"], ["evaluate"], ["explain"], ["prune"]])
def test_an_unknown_name_is_refused_with_those_that_are_there(
    words: list[str], folder: Path, capfd: pytest.CaptureFixture
) -> None:
    assert main([*words, "zoo:hoper"]) == 2
    out, line = capfd.readouterr()
    assert out == ""
    assert line.startswith("moie: there is no policy 'zoo:hoper'; did you mean zoo:hopper or ")
    assert line.endswith(f"the zoo has {', '.join(NAMES)}\n")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["zoo:", "zoo:xyz", "zoo:../catalogue", "zoo:policies/hopper"])
def test_only_names_of_the_catalogue_are_names(name: str) -> None:
    with pytest.raises(moie.FileError, match=r"there is no policy 'zoo:.*'; the zoo has hopper, "):
        moie.load(name)


@pytest.mark.parametrize("given", ["zoo:pendulum", "./zoo:pendulum"])
def test_a_file_with_such_a_name_is_not_taken_for_the_zoos(
    given: str, folder: Path, capfd: pytest.CaptureFixture
) -> None:
    tiny.policy("pendulum").save(folder / "zoo:pendulum")
    assert main(["show", given]) == 2
    assert "moie: 'zoo:pendulum' is a file in the current folder, and " in capfd.readouterr().err
    assert main(["show", str(folder / "zoo:pendulum")]) == 0


def test_a_policy_of_the_zoo_is_no_run(capfd: pytest.CaptureFixture) -> None:
    assert main(["resume", "zoo:pendulum"]) == 2
    assert "zoo:pendulum is not a run" in capfd.readouterr().err


def test_what_is_about_a_policy_is_written_here_and_never_into_the_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FIGURES", {})  # they take long to draw
    before = tiny.contents(catalogue.FILE.parent)
    quick: dict[str, Any] = {"episodes": 2, "workers": 1, "quiet": True}
    _, pruned = moie.prune("zoo:pendulum", most_episodes=4, **quick)
    report = moie.explain("zoo:pendulum", pruning=False, pictures=False, **quick)
    exported = moie.export("zoo:pendulum", "python")
    toml = Path("pendulum.toml")
    toml.write_text(moie.show("zoo:pendulum", format="toml"))
    edited = moie.edit("zoo:pendulum", toml, episodes=0).path
    assert edited.read_bytes() == catalogue.file_of("pendulum").read_bytes()
    assert "pruned" in moie.load(pruned).trained
    assert {path.resolve().relative_to(folder) for path in (pruned, report, exported, edited)} == {
        Path("pendulum-pruned.safetensors"),
        Path("pendulum-explanation", "report.html"),
        Path("pendulum-export-python"),
        Path("pendulum-edited.safetensors"),
    }
    assert tiny.contents(catalogue.FILE.parent) == before


# --- the listing ---------------------------------------------------------------------------------


def test_the_listing_has_them_all(capfd: pytest.CaptureFixture) -> None:
    assert main(["zoo"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for entry, line in zip(moie.zoo.entries(), lines[1:], strict=False):
        assert line.split()[:3] == [entry.name, entry.task, str(entry.experts)]
        assert line.endswith(entry.reading)
        assert f"{entry.return_mean:.0f} ± {entry.standard_error:.0f}" in line
        remark = f"{entry.name:<18} {entry.remark}"
        assert not entry.remark or remark in lines
    assert max(map(len, lines)) <= 100


def test_a_walker_that_stands_is_called_so() -> None:
    walks = {entry.name: entry.distance for entry in moie.zoo.entries() if entry.distance}
    stands = {name for name, distance in walks.items() if distance < 3}
    remarked = {e.name for e in moie.zoo.entries() if "instead of walking" in e.remark}
    assert remarked == stands


def test_all_that_is_known_of_one(capfd: pytest.CaptureFixture) -> None:
    entry = catalogue.find("hopper")
    assert main(["zoo", "hopper", "zoo:pendulum"]) == 0
    said = capfd.readouterr().out
    for part in (entry.command, f"{entry.steps:,}", f"{entry.alone:.1f}", entry.sha256):
        assert part in said
    assert "\n\nzoo:pendulum\n" in said
    assert main(["zoo", "hoper"]) == 2
    assert "did you mean zoo:hopper" in capfd.readouterr().err

"""What docs/results says of studies is what their evaluations give."""

from pathlib import Path

import pytest
from benchmarks.claims import evidence, measure, pages, table

import moie
from moie.comparison import curves
from moie.comparison.facts.assembly import make_facts
from moie.comparison.tables import markdown
from moie.policy.mixture import Mixture
from moie.policy.truth import in_range, largest_action

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FOLDERS = sorted(RESULTS.glob("*/evaluations.parquet"))
POLICIES = sorted(RESULTS.glob("*-policies/*.safetensors"))


@pytest.mark.parametrize("file", FOLDERS, ids=lambda file: file.parent.name)
def test_published_tables_are_those_of_the_published_evaluations(file: Path) -> None:
    found = curves.read(file)
    assert markdown(make_facts(found, file.parent.name)) == (file.parent / "table.md").read_bytes()
    alone = ("swarm", "hopper-raw", "crisp-raw")  # made by commands, not by a study
    assert found.study is not None or file.parent.name.startswith(alone)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_tables_of_the_pages_are_those_of_the_published_files(page: Path) -> None:
    text = page.read_text()
    assert pages.PAGES[page](text, evidence.read()) == text


def test_there_is_something_published() -> None:
    published = {"smoke", "paper-small", "paper-locomotion", "crisp", "swarm", "hopper-raw"}
    assert {file.parent.name for file in FOLDERS} >= published
    assert len(POLICIES) >= 5


@pytest.mark.parametrize("file", POLICIES, ids=lambda file: file.stem)
def test_published_policies_of_crisp_ask_for_nothing_that_the_robot_cannot_do(file: Path) -> None:
    policy = moie.load(file)
    assert isinstance(policy, Mixture)
    assert policy.trained["algorithm"] == "crisp"
    assert in_range(policy) == 1.0
    assert largest_action(policy) <= 1.0 + 1e-6
    assert all(origin is not None for origin in policy.origins)


def test_the_claims_are_judged_by_what_is_published() -> None:
    assert table.markdown(evidence.read()) == (RESULTS / "claims.md").read_bytes()


def test_the_measured_policies_are_the_published_ones() -> None:
    wanted = {
        file.stem: measure.sha256(file)
        for file, policy in measure.mixtures().items()
        if measure.is_measured(policy)
    }
    assert {name: record["sha256"] for name, record in measure.records().items()} == wanted
    assert wanted

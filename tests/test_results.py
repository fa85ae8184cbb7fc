"""What docs/results says of studies is what their evaluations give."""

from pathlib import Path

import pytest

from moie.studies import curves
from moie.studies.comparison import gather
from moie.studies.tables import markdown

FOLDERS = sorted((Path(__file__).parent.parent / "docs" / "results").glob("*/evaluations.parquet"))


@pytest.mark.parametrize("file", FOLDERS, ids=lambda file: file.parent.name)
def test_published_tables_are_those_of_the_published_evaluations(file: Path) -> None:
    found = curves.read(file)
    assert markdown(gather(found, file.parent.name)) == (file.parent / "table.md").read_bytes()
    assert found.study is not None


def test_there_is_something_published() -> None:
    assert {file.parent.name for file in FOLDERS} >= {"smoke", "paper-small", "paper-locomotion"}

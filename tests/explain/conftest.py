"""One explanation for all tests of this folder."""

from pathlib import Path

import pytest

from moie import api


@pytest.fixture(scope="session")
def explanation(pendulum: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, for reading only."""
    out = tmp_path_factory.mktemp("explained") / "explanation"
    report = api.explain(pendulum, out=out, episodes=3, workers=1, quiet=True)
    assert report == out / "report.html"
    return out

"""One explanation for all tests of this folder."""

from pathlib import Path

import pytest

from moie import api
from tests.sharing import shared


@pytest.fixture(scope="session")
def explanation(pendulum: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, for reading only."""

    def explain(out: Path) -> None:
        report = api.explain(pendulum, out=out, episodes=3, most_episodes=40, workers=1, quiet=True)
        assert report == out / "report.html"

    return shared(tmp_path_factory, "explanation", explain)

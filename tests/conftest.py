"""Shapes in the types are checked: by beartype, wherever a test calls into the pure layers."""

from jaxtyping import install_import_hook

install_import_hook(["moie.core", "moie.learn"], "beartype.beartype")

from moie.learn.runtime import prepare  # noqa: E402  the hook comes before the first import

prepare()

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

from tests.browser import browser  # noqa: E402, F401  a fixture of all folders
from tests.sharing import shared  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Studies wait for Ray most of the time: they come first, beside everything else."""
    items.sort(key=lambda item: item.path.name != "test_study.py")


@pytest.fixture(scope="session")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of 4 iterations, for reading only."""
    from tests import tiny

    return shared(tmp_path_factory, "pendulum", lambda out: tiny.train("pendulum", out))

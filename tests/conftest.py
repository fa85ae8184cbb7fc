"""Shapes in the types are checked: by beartype, wherever a test calls into the pure layers.
Programs are compiled in a hurry: they are small, and compiling is what most tests wait for."""

import os

from jaxtyping import install_import_hook

install_import_hook(["moie.core", "moie.learn"], "beartype.beartype")

from moie.learn.runtime import prepare  # noqa: E402  the hook comes before the first import

HURRY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {HURRY}".strip()
prepare()

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402

from tests.browser import browser  # noqa: E402, F401  a fixture of all folders
from tests.sharing import shared  # noqa: E402

LONGEST = (
    "test_study.py",
    "test_swarm.py",
    "test_swarms.py",
    "test_algorithms.py",
    "test_interruption.py",
    "test_report.py",
    "test_browser.py",
    "test_training.py",
    "test_pool.py",
    "test_cli.py",
)
"""Files that take the most time. They come first: at the end no process waits for one of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(scope="session")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of 4 iterations, for reading only."""
    from tests import tiny

    return shared(tmp_path_factory, "pendulum", lambda out: tiny.train("pendulum", out))

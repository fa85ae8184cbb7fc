"""Tests that need a simulator are skipped, by name, where its extra is not installed."""

import importlib.util
from collections.abc import Iterable
from typing import Any

import pytest

from moie.environments import catalogue

_MODULES = {"bullet": "pybullet", "box2d": "Box2D", "mujoco": "mujoco", "swarm": "mujoco.mjx"}
_EXTRAS = {name: task.package_extra for task in catalogue.TASKS for name in (task.short, task.id)}


def _is_missing(extra: str) -> bool:
    try:
        return importlib.util.find_spec(_MODULES[extra]) is None
    except ModuleNotFoundError:  # of the package that it is part of
        return True


def needs(extra: str) -> pytest.MarkDecorator:
    """Marks a test, or a module with `pytestmark`, that needs an extra of moie."""
    return pytest.mark.skipif(_is_missing(extra), reason=f"moie[{extra}] is not installed")


def with_needs(tasks: Iterable[str], extra: str | None = None) -> list[Any]:
    """Tasks as parameters of a test, each with what it needs: `extra`, or for one of the paper's
    tasks what the catalogue says."""
    wanted = {task: extra or _EXTRAS[task] for task in tasks}
    return [pytest.param(task, marks=needs(e) if e else ()) for task, e in wanted.items()]


def installed(tasks: Iterable[str], extra: str | None = None) -> list[str]:
    """Those of the tasks whose simulator is here."""
    wanted = {task: extra or _EXTRAS[task] for task in tasks}
    return [task for task, e in wanted.items() if e is None or not _is_missing(e)]

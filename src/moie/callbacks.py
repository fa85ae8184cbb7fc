"""Callbacks that send a run's metrics to an experiment tracker.

    with moie.callbacks.wandb("my-project") as tracker:
        moie.train("hopper", callbacks=[tracker])

The tracker's package is imported when one is made, and only then.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from moie.errors import InputError


def wandb(project: str, **options: Any) -> Tracker:
    """Weights & Biases; `options` go to `wandb.init`."""
    return Tracker(_optional("wandb"), project, options)


def trackio(project: str, **options: Any) -> Tracker:
    """Trackio; `options` go to `trackio.init`."""
    return Tracker(_optional("trackio"), project, options)


def _optional(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise InputError(f"{package} is not installed: pip install {package}") from error


class Tracker:
    """Logs every row under its iteration. As a context manager it finishes the tracker's run."""

    def __init__(self, package: ModuleType, project: str, options: Mapping[str, Any]):
        """`package`: one with the interface of Weights & Biases."""
        self._run = package.init(project=project, **options)

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Log a row of the metrics; what was not measured is left out."""
        values = {name: value for name, value in row.items() if value is not None}
        self._run.log(values, step=row["iteration"])

    def finish(self) -> None:
        """End the tracker's run."""
        self._run.finish()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.finish()

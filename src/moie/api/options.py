"""The keyword arguments that methods of `Run` pass on, for type checkers and editors. A test keeps
them the same as those of the functions."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

from moie.runs.machinery import Callback


class EvaluateOptions(TypedDict, total=False):
    """Options of `moie.evaluate`."""

    episodes: int
    seed: int
    task: str | None
    trust_task: bool
    workers: int | None


class PruneOptions(EvaluateOptions, total=False):
    """Options of `moie.prune`."""

    loss: float
    out: str | os.PathLike[str] | None
    quiet: bool


class ExplainOptions(PruneOptions, total=False):
    """Options of `moie.explain`."""

    actions: Literal["mean", "sampled"]
    pruning: bool
    pictures: bool


class ResumeOptions(TypedDict, total=False):
    """Options of `moie.resume`."""

    iterations: int | None
    callbacks: Sequence[Callback]
    task: str | None
    trust_task: bool
    workers: int | None
    worker_timeout: float
    packaged_env: bool
    quiet: bool

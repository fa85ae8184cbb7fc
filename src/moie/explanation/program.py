"""The policy as a program of IF blocks, in order of use (section 1 of the paper)."""

import math
import shutil
from dataclasses import replace
from typing import Any

import numpy as np

from moie.explanation.listing import cells, listing
from moie.policy.base import Policy
from moie.policy.baselines import Linear
from moie.policy.mixture import Mixture
from moie.terminal import printable


def _number(value: float, scale: float) -> str:
    """Signed, with the digits that count for a number of that scale."""
    digits = 2 - math.floor(math.log10(scale))
    if not 0 <= digits <= 5:
        return f"{value:+.1e}"
    return f"{round(value, digits) + 0.0:+.{digits}f}"  # no minus before a zero


def by_metric(policy: Mixture) -> list[int]:
    """Features, those that count the most first; none where no metric was learned."""
    return [] if policy.metric is None else np.argsort(-policy.metric, kind="stable").tolist()


def program(policy: Policy, width: int | None = None, everything: bool = False) -> str:
    """The policy as text: experts in order of use; with `everything`, also what hardly matters. Of
    a linear policy, its matrix; of a network, that there is nothing to read."""
    width = min(max(width or shutil.get_terminal_size((100, 24)).columns, 40), 140)
    policy = _legible(policy)
    if isinstance(policy, Mixture):
        return listing(policy, width, everything)
    if isinstance(policy, Linear):
        return _linear(policy, width)
    return (
        f"# {policy.task}: a network of {_learned(policy)}.\n"
        f"# There is nothing to read: {policy.n_parameters} parameters act together on every state."
    )


def _legible(policy: Policy) -> Policy:
    """The policy with names that are safe to print, each in one line."""
    trained = policy.trained
    if "algorithm" in trained:
        trained = trained | {"algorithm": printable(trained["algorithm"])}
    labels: Any = {}
    if isinstance(policy, Mixture):
        labels = {"labels": tuple(map(printable, policy.labels))}
    return replace(
        policy,
        task=printable(policy.task),
        feature_names=tuple(map(printable, policy.feature_names)),
        action_names=tuple(map(printable, policy.action_names)),
        trained=trained,
        **labels,
    )


def _learned(policy: Policy) -> str:
    steps = policy.trained.get("steps", 0)
    return f"{policy.trained.get('algorithm', 'moie')}, learned from {steps:,} steps"


def _linear(policy: Linear, width: int) -> str:
    lines = [
        f"# {policy.task}: linear policy, {policy.n_parameters} parameters, of {_learned(policy)}"
    ]
    names = tuple(f"{feature} *" for feature in policy.feature_names)
    rows = zip(policy.action_names, policy.matrix, policy.default_action, strict=True)
    for joint, row, offset in rows:
        reach = np.abs(row).max() or 1.0
        lines += ["", f"{joint} = {_number(offset, abs(offset) or 1.0)} + the sum of"]
        numbers = [_number(value, reach) for value in row.tolist()]
        lines += cells(list(zip(names, numbers, strict=True)), width)
    if (policy.feature_scale != 1).any():
        lines += ["", "# of features less their mean, in standard deviations"]
    return "\n".join(lines)

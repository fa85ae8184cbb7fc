"""The policy as a program of IF blocks, in order of use (section 1 of the paper)."""

import math
import shutil
from dataclasses import replace
from typing import Any

import numpy as np

from moie.policy.base import Policy
from moie.policy.baselines import Linear
from moie.policy.mixture import Mixture
from moie.runs.evaluation import KINDS
from moie.terminal import printable

UNUSED = 5e-4  # of the membership: below that an expert shows as 0.0%


def _number(value: float, scale: float) -> str:
    """Signed, with the digits that count for a number of that scale."""
    digits = 2 - math.floor(math.log10(scale))
    if not 0 <= digits <= 5:
        return f"{value:+.1e}"
    return f"{round(value, digits) + 0.0:+.{digits}f}"  # no minus before a zero


def _columns(
    names: tuple[str, ...], values: np.ndarray, scales: np.ndarray, width: int
) -> list[str]:
    """`name value` pairs, aligned in as many columns as fit."""
    given = zip(names, values.tolist(), scales.tolist(), strict=True)
    return _aligned([(name, _number(value, scale)) for name, value, scale in given], width)


def _aligned(cells: list[tuple[str, str]], width: int) -> list[str]:
    indent = " " * 6
    wide = max(len(name) for name, _ in cells)
    long = max(len(number) for _, number in cells)
    n_columns = max(1, (width - len(indent)) // (wide + long + 4))
    rows = []
    for start in range(0, len(cells), n_columns):
        row = "   ".join(f"{n:<{wide}} {v:>{long}}" for n, v in cells[start : start + n_columns])
        rows.append(indent + row.rstrip())
    return rows


def _difference(value: float) -> str:
    """A positive number with two digits: all that a reader needs of what counts as close."""
    return f"{value:#.2g}" if value < 9.95 or value >= 1e5 else f"{value:.0f}"


def by_metric(policy: Mixture) -> list[int]:
    """Features, those that count the most first; nothing where all count the same."""
    if policy.metric is None:
        return []
    return [int(i) for i in np.argsort(-policy.metric, kind="stable")]


def _closeness(policy: Mixture, width: int) -> list[str]:
    """What counts as close, for a policy that has learned it."""
    listed = by_metric(policy)
    if not listed:
        return []
    cells = [(policy.feature_names[i], f"±{_difference(policy.radii[i])}") for i in listed]
    return [
        "CLOSE means  # within about these differences, the feature that counts the most first;",
        "             # any one of them alone brings an expert's activation down to 37%",
        *_aligned(cells, width),
        "",
    ]


def _origin(policy: Mixture, k: int) -> str:
    origin = policy.origins[k]
    if origin is None:
        distance = policy.distances[k]
        return f"{distance:.2g} from the nearest visited state" if distance else "not visited yet"
    return f"from iteration {origin.iteration}, episode {origin.episode}, step {origin.step}"


def _name(policy: Mixture, k: int) -> str:
    """An expert's number, and the one it had before others were removed."""
    pruned = policy.trained.get("pruned")
    return f"expert {k}" + (f" (before pruning {pruned['kept'][k]})" if pruned else "")


def pruning_table(found: dict[str, Any]) -> str:
    """Return against number of experts, and what was chosen."""
    lines = [
        f"experts  removed  {'return, sampled':>18}  {'return, mean action':>20}  change  enough"
    ]
    for row in found["curve"]:
        removed = "-" if row["removed"] is None else str(row["removed"])
        returns = [f"{row[kind]['return']:.1f} ± {row[kind]['error']:.1f}" for kind in KINDS]
        lines.append(
            f"{row['n_experts']:>7}  {removed:>7}  {returns[0]:>18}  {returns[1]:>20}  "
            f"{row['change']:>6.1%}  {'yes' if row['within'] else 'no'}"
        )
    for row in found["confirmation"]:
        losses = [f"{row[kind]['loss']:.1f} ± {row[kind]['loss_error']:.1f}" for kind in KINDS]
        verdict = "enough" if row["within"] else "not enough"
        lines.append(
            f"{row['n_experts']} experts on other seeds: loss {losses[0]} with sampled, "
            f"{losses[1]} with mean actions: {verdict}"
        )
    n = found["n_experts"]
    lines.append(
        f"smallest policy within {found['loss']:.0%} or the error: {n} expert{'s' * (n != 1)}, "
        f"{found['n_parameters']} parameters"
    )
    return "\n".join(lines)


def program(policy: Policy, width: int | None = None) -> str:
    """Experts by the share of time they lead, the default action last; for a linear policy its
    matrix, for a network that there is nothing to read."""
    width = shutil.get_terminal_size((100, 24)).columns if width is None else width
    width = min(max(width, 40), 140)
    policy = _legible(policy)
    if isinstance(policy, Mixture):
        return _mixture(policy, width)
    if isinstance(policy, Linear):
        return _linear(policy, width)
    return (
        f"# {policy.task}: a network of {_learned(policy)}.\n"
        f"# There is nothing to read: {policy.n_parameters} parameters act together on every state."
    )


def _legible(policy: Policy) -> Policy:
    """With names that are safe to print, each in one line."""
    trained = policy.trained
    if "algorithm" in trained:
        trained = trained | {"algorithm": printable(trained["algorithm"])}
    return replace(
        policy,
        task=printable(policy.task),
        feature_names=tuple(map(printable, policy.feature_names)),
        action_names=tuple(map(printable, policy.action_names)),
        trained=trained,
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
        lines += _columns(names, row, np.full(len(names), reach), width)
    if (policy.feature_scale != 1).any():
        lines += ["", "# of features less their mean, in standard deviations"]
    return "\n".join(lines)


def _mixture(policy: Mixture, width: int) -> str:
    default, reach = 1.0 - policy.share.sum(), (policy.action_high - policy.action_low) / 2
    reach = np.where(reach > 0, reach, 1.0)
    lines = [
        f"# {policy.task}: {policy.n_experts} experts, {policy.n_parameters} parameters, "
        f"learned from {policy.trained.get('steps', 0):,} steps",
        "# The action is the average of all DO, weighted by closeness to each prototype;",
        "# leads: share of visited states in which this expert counts the most.",
        "",
        *_closeness(policy, width),
    ]
    order = np.lexsort((-policy.share, -policy.lead))
    used = [int(k) for k in order if policy.share[k] >= UNUSED]
    unused = sorted(int(k) for k in order if policy.share[k] < UNUSED)
    for k in used:
        lines.append(
            f"IF close to  # {_name(policy, k)}: leads {policy.lead[k]:.0%}, membership "
            f"{policy.share[k]:.1%}, {_origin(policy, k)}"
        )
        lines += _columns(policy.feature_names, policy.prototypes[k], policy.feature_scale, width)
        lines += ["   DO", *_columns(policy.action_names, policy.actions[k], reach, width), ""]
    lines.append(f"OTHERWISE  # the default, membership {default:.1%}")
    lines += ["   DO", *_columns(policy.action_names, policy.default_action, reach, width)]
    if unused:
        lines += ["", f"# unused (membership below 0.1%): experts {', '.join(map(str, unused))}"]
    spread = ", ".join(f"{np.exp(s):.2g}" for s in policy.log_std)
    lines += ["", f"# sampled actions add noise of standard deviation {spread}"]
    return "\n".join(lines)

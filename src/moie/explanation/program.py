"""The policy as a program of IF blocks, in order of use (section 1 of the paper)."""

import math
import shutil
from dataclasses import replace
from typing import Any

import numpy as np

from moie.environments.catalogue import clipping_matters
from moie.policy.base import Policy
from moie.policy.baselines import Linear
from moie.policy.handwork import listed
from moie.policy.mixture import Mixture
from moie.terminal import printable

UNUSED = 5e-4  # membership below which an expert shows as 0.0%


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
    numbers = map(_number, values.tolist(), scales.tolist())
    return _aligned(list(zip(names, numbers, strict=True)), width)


def _aligned(cells: list[tuple[str, str]], width: int) -> list[str]:
    wide = max(len(name) for name, _ in cells)
    long = max(len(number) for _, number in cells)
    padded = [f"{name:<{wide}} {number:>{long}}" for name, number in cells]
    n_columns = max(1, (width - 6) // (wide + long + 4))
    rows = [padded[i : i + n_columns] for i in range(0, len(padded), n_columns)]
    return [" " * 6 + "   ".join(row).rstrip() for row in rows]


def _difference(value: float) -> str:
    """A positive number with two digits: enough to say what counts as close."""
    return f"{value:#.2g}" if value < 9.95 or value >= 1e5 else f"{value:.0f}"


def by_metric(policy: Mixture) -> list[int]:
    """Features, those that count the most first; none where no metric was learned."""
    return [] if policy.metric is None else np.argsort(-policy.metric, kind="stable").tolist()


def _closeness(policy: Mixture, width: int) -> list[str]:
    """The lines that say what counts as close; none if the policy has not learned it."""
    cells = [
        (policy.feature_names[i], f"±{_difference(policy.radii[i])}") for i in by_metric(policy)
    ]
    if not cells:
        return []
    return [
        "CLOSE means  # within about these differences, the feature that counts the most first;",
        "             # any one of them alone brings an expert's activation down to 37%",
        *_aligned(cells, width),
        "",
    ]


def origin_said(policy: Mixture, k: int) -> str:
    """Where an expert is from: a visit, or a person's hand."""
    parts = policy.by_hand(k)
    if "added" in parts:
        return "made by hand"
    if not parts:
        return _visit(policy, k)
    where = "" if "prototype" in parts else f"{_visit(policy, k)}, "
    return f"{where}{' and '.join(parts)} set by hand"


def _visit(policy: Mixture, k: int) -> str:
    origin = policy.origins[k]
    if origin is None:
        distance = policy.distances[k]
        return f"{distance:.2g} from the nearest visited state" if distance else "not visited yet"
    where = "episode" if origin.qpos is None else "environment"
    return f"from iteration {origin.iteration}, {where} {origin.episode}, step {origin.step}"


def _name(policy: Mixture, k: int) -> str:
    """An expert's number and label, and the number it had before others were removed."""
    pruned = policy.trained.get("pruned")
    before = pruned["kept"][k] if pruned else None
    return policy.label(k) + (f" (before pruning {before})" if before is not None else "")


def about_expert(policy: Mixture, k: int) -> str:
    """An expert's name, its use over the last batch of its training, and its origin."""
    use = f"leads {policy.lead[k]:.0%}, membership {policy.share[k]:.1%}, "
    use = "" if "added" in policy.by_hand(k) else use
    return f"{_name(policy, k)}: {use}{origin_said(policy, k)}"


def program(policy: Policy, width: int | None = None) -> str:
    """The policy as text: experts by the share of time they lead, the default action last. Of a
    linear policy, its matrix; of a network, that there is nothing to read."""
    width = min(max(width or shutil.get_terminal_size((100, 24)).columns, 40), 140)
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
        *_learned_with(policy),
        "",
        *_closeness(policy, width),
    ]
    order = np.lexsort((-policy.share, -policy.lead))
    # How much an expert that a person changed is used, nobody has measured.
    used = [int(k) for k in order if policy.share[k] >= UNUSED or policy.by_hand(k)]
    unused = sorted(set(range(policy.n_experts)) - set(used))
    for k in used:
        lines.append(f"IF close to  # {about_expert(policy, k)}")
        lines += _columns(policy.feature_names, policy.prototypes[k], policy.feature_scale, width)
        lines += ["   DO", *_columns(policy.action_names, policy.actions[k], reach, width), ""]
    lines.append(f"OTHERWISE  # the default, membership {default:.1%}")
    lines += ["   DO", *_columns(policy.action_names, policy.default_action, reach, width)]
    if unused:
        lines += ["", f"# unused (membership below 0.1%): experts {', '.join(map(str, unused))}"]
    spread = ", ".join(f"{np.exp(s):.2g}" for s in policy.log_std)
    lines += ["", f"# sampled actions add noise of standard deviation {spread}"]
    return "\n".join(lines + _handwork(policy))


def _learned_with(policy: Mixture) -> list[str]:
    """What the simulator got of actions outside their range, where that is known to matter."""
    actions = policy.trained.get("actions", "clipped")
    if not clipping_matters(policy.task, actions):
        return []
    if actions == "raw":
        return [
            "# Actions are clipped to their range; while it learned, the simulator got raw ones."
        ]
    return ["# Actions are clipped to their range, as they were while it learned."]


def _handwork(policy: Mixture) -> list[str]:
    """What was changed by hand, for the end of the program."""
    said = [f"#   {line}" for line in listed(policy.edits, policy.labels)]
    title = "# changed by hand (what leads, and memberships, may be those before):"
    return ["", title, *said] if said else []

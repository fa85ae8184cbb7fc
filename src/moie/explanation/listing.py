"""A mixture as a program that a reader can carry out by hand: `moie show`."""

import math
import textwrap
from collections.abc import Iterable, Sequence

import numpy as np

from moie.environments.catalogue import clipping_matters, unit
from moie.explanation.origins import origin_said
from moie.explanation.printed import LITTLE, Printed, printed
from moie.policy.handwork import listed
from moie.policy.mixture import Mixture
from moie.policy.reading import percent

INDENT = " " * 6
HOW = (
    "Each IF has the strength exp(h - d), where d is the sum of ((feature - value) / radius)^2 "
    "over its features, and OTHERWISE has 1. The command is the average of all DO, weighted by "
    "strength and then clipped to its range. The strongest part leads; within its radii, the root "
    "of d, an IF is stronger than OTHERWISE."
)


def listing(policy: Mixture, width: int, everything: bool = False) -> str:
    """The program. With `everything` it has all features and experts, and more digits."""
    of = printed(policy, everything)
    lines = [*_head(of, width), "", *_features(of, width), ""]
    for k in of.leading:
        lines += _block(of, k, width)
    lines += ["OTHERWISE" + _default_said(of)]
    lines += _command(of, of.default_action, width)
    for k in of.correcting:
        lines += ["", *_block(of, k, width)[:-1]]
    lines += _left_out(of, width)
    spread = ", ".join(f"{np.exp(s):.2g}" for s in policy.log_std)
    lines += ["", *_remark(f"Sampled actions add noise of standard deviation {spread}.", width)]
    return "\n".join(lines + _handwork(policy, width))


def _remark(text: str, width: int, indent: str = "") -> list[str]:
    """A sentence as comment lines."""
    return textwrap.wrap(text, width, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def number(value: float, decimals: int) -> str:
    """Signed, with so many decimals, and no minus before a zero."""
    return f"{round(float(value), decimals) + 0.0:+.{decimals}f}"


def cells(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Pairs of name and number, aligned in as many columns as fit."""
    wide = max((len(name) for name, _ in pairs), default=0)
    long = max((len(value) for _, value in pairs), default=0)
    padded = [f"{name:<{wide}} {value:>{long}}" for name, value in pairs]
    columns = max(1, (width - len(INDENT)) // (wide + long + 4))
    rows = [padded[i : i + columns] for i in range(0, len(padded), columns)]
    return [INDENT + "   ".join(row).rstrip() for row in rows]


def _head(of: Printed, width: int) -> list[str]:
    policy, visited = of.policy, of.policy.visited
    n, can = policy.n_experts, int(of.reading.can_lead.sum())
    who, steps = policy.trained.get("algorithm", "moie"), policy.trained.get("steps", 0)
    lines = _remark(
        f"{policy.task}: {n} expert{'s' * (n != 1)}, of which {can} can lead; "
        f"{policy.n_parameters} parameters, learned by {who} from {steps:,} steps.",
        width,
    )
    lines += _remark(HOW, width)
    if visited is None:
        said = (
            "How often each part leads was not measured: experts come as training used them last."
        )
    else:
        count = f"{visited.episodes} episode{'s' * (visited.episodes != 1)}"
        said = f'"leads": in how many of {len(visited.states)} states of {count} with mean actions.'
        if visited.period is not None and visited.phases:
            said += (
                f" The episodes repeat themselves every {visited.period:.0f} steps; phase 0 to 1 "
                "says when in that time an expert is active."
            )
    return [*lines, *_remark(said, width), *_clipping(policy, width)]


def _clipping(policy: Mixture, width: int) -> list[str]:
    """What the simulator got of actions outside their range, where that is known to matter."""
    actions = policy.trained.get("actions", "clipped")
    if not clipping_matters(policy.task, actions):
        return []
    how = "given to the simulator as they were" if actions == "raw" else "clipped, too"
    return _remark(f"While it learned, commands outside their range were {how}.", width)


def _features(of: Printed, width: int) -> list[str]:
    """The table of features: radius, unit, and where the policy has been."""
    policy, states = of.policy, of.reading.states
    names = [policy.feature_names[i] for i in of.features]
    wide = max([len("FEATURE"), *(3 + len(name) for name in names)])
    radii = [f"{radius:.{n}f}" for radius, n in zip(of.radii, of.radius_decimals, strict=True)]
    long = max([len("radius"), *map(len, radii)])
    head = f"{'FEATURE':<{wide}}   {'radius':>{long}}"
    lines = [head if states is None else f"{head}   visited, middle 90%"]
    for i, name, radius, places in zip(of.features, names, radii, of.decimals, strict=True):
        line = f"   {name:<{wide - 3}}   {radius:>{long}}"
        if states is not None:
            low, high = np.quantile(states[:, i], (0.05, 0.95))
            line += f"   {number(low, places)} to {number(high, places)}"
        line += f" {unit(policy.task, name)}"
        lines.append(line.rstrip())
    hidden = [name for i, name in enumerate(policy.feature_names) if i not in of.features]
    if hidden:
        n = len(hidden)
        lines += _remark(
            f"{n} more feature{'s' * (n != 1)} hardly count{'s' * (n == 1)}: fixed at "
            f"{'their medians' if n > 1 else 'its median'}, for which h allows, "
            f"{'they change' if n > 1 else 'it changes'} no command by more than {LITTLE:.1%} of "
            f"its range in these states ({', '.join(hidden)}).",
            width,
        )
    bounds = [
        (name, f"{low:g} to {high:g}")
        for name, low, high in zip(
            policy.action_names, policy.action_low, policy.action_high, strict=True
        )
    ]
    return [*lines, "", "COMMAND, range", *cells(bounds, width)]


def _block(of: Printed, k: int, width: int) -> list[str]:
    """One expert: IF it can lead, ALSO if it only corrects others."""
    policy, head = of.policy, float(of.head_starts[k])
    h = f"(h {number(head, of.head_decimals)})"
    if not of.reading.can_lead[k]:
        first = f"ALSO near {h}"
    elif head > 0:
        first = f"IF within {math.sqrt(head):.1f} radii {h} of"
    else:
        first = f"IF near {h}"
    values = [
        (policy.feature_names[i], number(policy.prototypes[k, i], n))
        for i, n in zip(of.features, of.decimals, strict=True)
    ]
    return [
        f"{first}  # {policy.label(k)}: {_use(of, k)}",
        *cells(values, width),
        *_remark(_about(of, k), width, INDENT),
        *_command(of, of.actions[k], width),
        "",
    ]


def _use(of: Printed, k: int) -> str:
    if not of.reading.can_lead[k]:
        return f"can never lead, has at most {percent(of.reading.most[k])} of a command"
    visited = of.policy.visited
    said = of.reading.lead_said(k)
    if visited is not None and visited.phases and visited.phases[k] is not None:
        said += f", phase {visited.phases[k]:.2f}"
    return said


def _about(of: Printed, k: int) -> str:
    pruned = of.policy.trained.get("pruned")
    before = pruned["kept"][k] if pruned else None
    return origin_said(of.policy, k) + (
        f"; expert {before} before pruning" if before is not None else ""
    )


def _command(of: Printed, action: Iterable[float], width: int) -> list[str]:
    pairs = [
        (name, number(value, n))
        for name, value, n in zip(of.policy.action_names, action, of.action_decimals, strict=True)
    ]
    first, *rest = cells(pairs, width)
    return [f"   DO {first[len(INDENT) :]}", *rest]


def _default_said(of: Printed) -> str:
    leads = of.reading.leads
    if leads is None:
        return ""
    return (
        f"  # the default: {f'leads {percent(leads[-1])}' if leads[-1] else 'did not lead there'}"
    )


def _left_out(of: Printed, width: int) -> list[str]:
    """One line about experts that are not printed."""
    if not of.left_out:
        return []
    each = ", ".join(f"{of.policy.label(k)} ({percent(of.reading.most[k])})" for k in of.left_out)
    here = (
        ""
        if of.reading.states is None
        else (
            f" All together they change no command by more than {LITTLE:.1%} of its range in these "
            "states."
        )
    )
    return [
        "",
        *_remark(
            f"Left out, because none of them can ever lead: {each}; in brackets the largest share "
            f"of a command that each can have anywhere.{here}",
            width,
        ),
    ]


def _handwork(policy: Mixture, width: int) -> list[str]:
    """What was changed by hand, for the end of the program."""
    said = listed(policy.edits, policy.labels)
    if not said:
        return []
    title = "Changed by hand; visited states, if any are known, are those before:"
    return ["", *_remark(title, width), *(f"#   {line}" for line in said)]

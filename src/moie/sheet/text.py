"""A data sheet as text, for a terminal."""

import textwrap
from collections.abc import Sequence
from typing import Any

from moie.policy.reading import percent

WIDTH = 80
MOST_FEATURES = 8
"""Features of an expert's range that are listed."""
WIDE = 0.95
"""A range that is this part of the visited box says little and is not listed."""
ENDED = {
    "tight": "as near as wanted",
    "boxes": "as many as are looked at",
    "seconds": "ended by the limit of time",
}


def text(facts: dict[str, Any], width: int = WIDTH) -> str:
    """All sections."""
    sections = (_head, _commands, _leading, _tolerance, _slope, _deletion, _size)
    return "\n\n".join("\n".join(section(facts, width)) for section in sections)


def _said(sentence: str, width: int, indent: str = "  ") -> list[str]:
    return textwrap.wrap(sentence, width, initial_indent=indent, subsequent_indent=indent)


def _table(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """Aligned columns; those of numbers to the right."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:>{n}}" if i in numbers else f"{cell:<{n}}"
            for i, (cell, n) in enumerate(zip(row, wide, strict=True))
        ]
        lines.append(f"    {'  '.join(cells)}".rstrip())
    return lines


def _head(facts: dict[str, Any], width: int) -> list[str]:
    policy, states = facts["policy"], facts["states"]
    count = f"{states['episodes']} episode{'s' * (states['episodes'] != 1)}"
    return [
        *_said(
            f"{policy['task']}: data sheet of a policy of {policy['n_experts']} experts, learned "
            f"by {policy['by']}",
            width,
            "",
        ),
        *_said(
            '"Proved" holds in every state that the sentence names, whoever visits it; "sampled" '
            f"rests on states that were visited: {states['n']}, of {count} with mean actions. The "
            "visited box is all states whose features are between the smallest and the largest "
            "value there. A radius is the difference of a feature that alone brings an expert's "
            "strength down to 37%.",
            width,
        ),
    ]


def _commands(facts: dict[str, Any], width: int) -> list[str]:
    rows = [
        (one["joint"], "stays within", f"{one['low']:g}", "to", f"{one['high']:g}")
        for one in facts["commands"]
    ]
    return ["COMMANDS", "  Proved for every state:", *_table(rows, (2, 4))]


def _leading(facts: dict[str, Any], width: int) -> list[str]:
    leading = facts["leading"]
    can = [one["name"] for one in leading["experts"]]
    never = leading["never"]
    said = f"Proved for every state: {len(can)} of {facts['policy']['n_experts']} experts can lead"
    said += f"; {', '.join(never)} never {'do' if len(never) > 1 else 'does'}." if never else "."
    lines = ["WHO CAN LEAD", *_said(said, width)]
    matter = {one["name"] for one in facts["features"] if one["matters"]}
    lines += _said(
        "Proved for the visited box: each leads only within these ranges, if at all; ranges of "
        "nearly the whole box are left out.",
        width,
    )
    for one in leading["experts"]:
        sampled = f"leads {percent(one['leads'])} of the visited states"
        if one["nowhere"]:
            lines.append(f"    {one['name']}: nowhere")
            continue
        rows = [
            (f"  {row['feature']}", f"{row['low']:g}", "to", f"{row['high']:g}", row["unit"])
            for row in one["ranges"]
            if row["feature"] in matter and row["share_of_box"] < WIDE
        ][:MOST_FEATURES]
        lines.append(f"    {one['name']} ({sampled}):{'' if rows else ' anywhere'}")
        lines += _table(rows, (1, 3))
    return lines


def _tolerance(facts: dict[str, Any], width: int) -> list[str]:
    tolerance = facts["tolerance"]
    if tolerance["smallest"] is None:
        return ["SENSOR TOLERANCE", *_said("Proved: only one part can lead.", width)]
    lines = [
        "SENSOR TOLERANCE",
        *_said(
            f"Sampled, exact for each of {tolerance['n_states']} visited states: another part "
            f"leads only after a change of {tolerance['median']:.2g} radii (median; 5% of the "
            f"states need less than {tolerance['q05']:.2g}, the nearest "
            f"{tolerance['smallest']:.2g}). One feature alone, and how often it is the one that "
            "needs the least of its radius:",
            width,
        ),
    ]
    rows = [("feature", "first", "median", "5%", "smallest", "")]
    for one in tolerance["features"][:MOST_FEATURES]:
        if not one["first"]:
            continue
        values = (
            "never" if one[n] is None else f"{one[n]:.2g}" for n in ("median", "q05", "smallest")
        )
        rows.append((one["feature"], percent(one["first"]), *values, one["unit"]))
    return lines + _table(rows, (1, 2, 3, 4))


def _slope(facts: dict[str, Any], width: int) -> list[str]:
    slope = facts["slope"]
    n = slope["n_boxes"]
    boxes = f"{n:,} boxes, {ENDED[slope['ended']]}" if n > 1 else "closed form"
    lines = [
        "SLOPE",
        *_said(
            f"Proved for the visited box ({boxes}): how much a command changes at most with a "
            "feature, per radius and in its own unit, along the feature of the largest bound. "
            "Found: the steepest that a search met.",
            width,
        ),
    ]
    rows = [("command", "at most", "found", "gap", "along", "per unit")]
    for one in slope["joints"]:
        row = next(row for row in one["features"] if row["feature"] == one["feature"])
        gap = "-" if one["gap"] is None else f"{one['gap']:.2f}x"
        per = f"{row['bound']:g}" + f" per {row['unit']}" * bool(row["unit"])
        rows.append(
            (one["joint"], f"{one['bound']:g}", f"{one['found']:.3g}", gap, one["feature"], per)
        )
    return lines + _table(rows, (1, 2, 3))


def _deletion(facts: dict[str, Any], width: int) -> list[str]:
    lines = [
        "WITHOUT ONE EXPERT",
        *_said(
            "Proved for every state: the largest share of a command that it has, and how much "
            "commands change at most without it.",
            width,
        ),
    ]
    rows = [("expert", "share", "change", "of")]
    for one in facts["deletion"]:
        share = f"{100 * one['largest_share']:.4g}%"
        rows.append((one["name"], share, f"{one['most']:g}", one["joint"]))
    return lines + _table(rows, (1, 2))


def _size(facts: dict[str, Any], width: int) -> list[str]:
    size = facts["size"]
    said = (
        f"{size['parameters']:,} parameters. As one sequential program without vectors and "
        "loops (the protocol of Kohler and Akrour, arXiv 2503.08322): "
        f"{size['bytes']:,} bytes of Python"
    )
    if size["microseconds"] is not None:
        said += f", {size['microseconds']:.0f} microseconds for a step here (measured, one core)"
    said += "."
    returns = size["returns"]
    if returns is not None:
        said += (
            f" Return {returns['mean']:.1f} over {returns['episodes']} fresh episodes with mean "
            f"actions, bootstrap interval of 95% {returns['low']:.1f} to {returns['high']:.1f}."
        )
        if returns["threshold"] is not None:
            met = "met" if returns["is_met"] else "not met"
            said += f" Their threshold of {returns['threshold']} is {met}."
    return ["SIZE", *_said(said, width)]

"""The zoo as text: all policies in a table, or all that is known of one."""

import textwrap

from moie.zoo.catalogue import PREFIX, Entry, content, entries

_GAIN = "of the gain over the default action"
_SAME = "do nearly what the policy does"
READINGS = {
    "literal": f"the leading part would {_SAME} in 80% of the states, and keeps 90% {_GAIN}",
    "pairs": f"the leading two parts {_SAME} in 80% of the states, and keep 90% {_GAIN}",
    "guide": f"the leading two parts {_SAME} in half of the states, and keep half {_GAIN}",
    "blend": "many parts act together",
    "undecided": "the episodes leave it open",
    "unknown": "the policy gains nothing over the default action",
}
"""What the words of the column "reading" mean."""


def listing() -> str:
    """All policies, their remarks, and what the columns mean."""
    known = entries()
    head = f"{'name':<18} {'task':<28} {'experts':>7} {'return':>14} {'alone':>7} {'attention':>9}"
    lines = [f"{head}  reading", *map(_row, known), ""]
    lines += [*(f"{one.name:<18} {one.remark}" for one in known if one.remark), ""]
    used = {one.reading for one in known}
    meanings = {
        "return": f"mean and standard error of {content()['episodes']} episodes with mean actions",
        "alone": "return when only the leading part of the program acts",
        "attention": "how many parts of the program one has to look at, at a time",
        **{word: meaning for word, meaning in READINGS.items() if word in used},
    }
    for word, meaning in meanings.items():
        lines += textwrap.wrap(f"  {word:<10} {meaning}", 80, subsequent_indent=" " * 13)
    lines.append("")
    name = known[0].name
    lines += [
        f"'moie zoo {name}' tells all about one; 'moie show {PREFIX}{name}' prints its program.",
        f"{PREFIX}NAME stands for a policy file in every command that takes one, and in Python.",
    ]
    return "\n".join(lines)


def _row(one: Entry) -> str:
    earned = f"{one.return_mean:.0f} ± {one.standard_error:.0f}"
    figures = f"{one.experts:>7} {earned:>14} {one.alone:>7.0f} {one.attention:>9.1f}"
    return f"{one.name:<18} {one.task:<28} {figures}  {one.reading}"


def details(one: Entry) -> str:
    """All that is known of a policy."""
    measured = content()
    seeds = f"{measured['episodes']} episodes with mean actions, seed {measured['episodes_seed']}"
    facts = {
        "policy": f"{one.algorithm}, {one.experts} experts, for {one.task}",
        "trained with": one.command,
        "seed": str(one.seed),
        "steps": f"{one.steps:,} in {one.iterations} iterations",
        "return": f"{one.return_mean:.1f} ± {one.standard_error:.1f} ({seeds})",
        "distance": "" if one.distance is None else f"{one.distance:.1f} m",
        "leading part": f"return {one.alone:.1f}",
        "leading pair": f"return {one.pair:.1f}",
        "default action": f"return {one.default:.1f}",
        "actions in range": f"{one.in_range:.0%} of the experts",
        "coverage": f"{one.coverage:.0%}",
        "attention": f"{one.attention:.2f} parts at a time",
        "says the same": f"leading part in {one.near_alone:.0%} of the states, leading pair in "
        f"{one.near_pair:.0%}; {one.wrong_side:.0%} of its commands on the wrong side",
        "reading": f"{one.reading}: {READINGS[one.reading]}",
        "remark": one.remark,
        "file": str(one.file),
        "sha256": one.sha256,
    }
    lines = [f"  {name:<17} {value}" for name, value in facts.items() if value]
    return "\n".join([f"{PREFIX}{one.name}", *lines])

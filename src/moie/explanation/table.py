"""The pruning curve as text."""

from moie.explanation.facts.schema import Answer, Pruning

ANSWERS: dict[Answer, str] = {
    "whole": "-",
    "proved": "acts alike (proved)",
    "seen": "acts alike (seen)",
    "enough": "yes",
    "not enough": "no",
    "undecided": "undecided",
    "not tried": "not tried",
}
"""What is known of a smaller policy, in a table."""


def pruning_table(pruning: Pruning) -> str:
    """Return against number of experts, why policies are good enough, and what was chosen."""
    lines = [
        f"{'experts':>7}  {'removed':>8}  {'change':>6}  {'most':>6}  {'ever':>6}  "
        f"{'return, sampled':>18}  {'return, mean action':>19}  enough"
    ]
    for row in pruning["curve"]:
        removed = "-" if row["removed"] is None else str(row["removed"])
        if row["heir"] is not None:
            removed += f" to {row['heir']}"
        returns = [
            "-" if k is None else f"{k['return']:.1f} ± {k['error']:.1f}"
            for k in (row["sampled"], row["mean"])
        ]
        lines.append(
            f"{row['n_experts']:>7}  {removed:>8}  {row['change']:>6.1%}  {row['largest']:>6.1%}  "
            f"{row['bound']:>6.1%}  {returns[0]:>18}  {returns[1]:>19}  {ANSWERS[row['answer']]}"
        )
    lines += ["", *_explained(pruning), *_comparisons(pruning)]
    n, loss = pruning["n_experts"], pruning["margin"]
    lines.append(
        f"smallest policy that may be taken to lose at most {loss:.0%}: "
        f"{n} expert{'s' * (n != 1)}, {pruning['n_parameters']} parameters"
    )
    return "\n".join(lines)


def _explained(pruning: Pruning) -> list[str]:
    """What the columns of changes are, and what follows from them."""
    return [
        f"change of the mean action, as a share of its range: root mean square over "
        f"{pruning['n_states']:,} visited states;",
        "most: the largest in any of them; ever: no state at all has a larger one. Policies act "
        "alike, and are not simulated,",
        f"if no change is above {pruning['alike']:.0%}: proved for every state, or seen in the "
        f"visited ones (and at most {pruning['tolerance']:.0%} ever)",
    ]


def _comparisons(pruning: Pruning) -> list[str]:
    """What was measured of the policies that were compared with the whole one."""
    lines = []
    for row in pruning["curve"]:
        if row["answer"] not in ("enough", "not enough", "undecided"):
            continue
        parts = [
            f"{kind} actions lose {one['loss']:.1f} ± {one['loss_error']:.1f}, "
            f"{one['allowed']:.1f} allowed, {one['episodes']} episodes: {one['verdict']}"
            for kind, one in (("sampled", row["sampled"]), ("mean", row["mean"]))
            if one is not None
        ]
        lines.append(f"{row['n_experts']} experts: {'; '.join(parts)}")
    if any(row["answer"] == "undecided" for row in pruning["curve"]):
        lines.append("more episodes (--most-episodes) may decide what is undecided")
    return lines

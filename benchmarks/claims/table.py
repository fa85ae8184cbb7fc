"""The page docs/results/claims.md: every claim, what was measured, and the verdict."""

from collections import Counter
from collections.abc import Sequence

from benchmarks.claims.evidence import Evidence
from benchmarks.claims.policies import LEADS
from benchmarks.claims.sentences import SECTIONS, Claim
from benchmarks.claims.statements import CLOSE, ENOUGH, WALKS, million
from benchmarks.claims.verdicts import FEWEST, Part, Verdict, reasons

from moie.comparison.notes.wording import joined

RULE = f"""
# The paper's claims, one by one

Every sentence of the paper's section 6 that states a result, beside what the published runs and
policies say of it. Nothing here is written by hand: `python -m benchmarks.claims --write` makes
this page from the evaluations and [policies](policies/README.md) in this folder, and a test makes
it once more. Runs that are published later change it.

## The rule

It is the same for all claims. A claim is taken apart into comparisons, each on one task:

- **Confirmed** or **contradicted** is what has the 95% interval of the measurement on one side of
  what the claim says; otherwise it is **undecided**. The final return of a run is that of the
  [tables](README.md): sampled actions, the last tenth of the compared steps. Two learners are
  compared by Welch's interval of the difference of their mean returns over seeds.
  *Above*: the difference is more than zero. *Far above* ("largely outperforms"): it is more than
  {CLOSE:.0%} of the task's scale, which goes from the untrained policy to the best learner.
  *Close to or above* ("match", "approach", "competitive"): not more than {CLOSE:.0%} of it below.
- Undecided is also what has **not been run**, what has **one seed**, and what has **too few
  steps**: less than {ENOUGH:.0%} of those in the paper's figure.
- Undecided is what was measured with **clipped actions** on PyBullet's four walkers. The paper's
  agents were charged for actions outside their range; these runs were not, and their returns are
  not comparable with the paper's ([the difference](../method.md#raw-and-clipped-actions)). They are
  made again with raw actions.
- Single runs: a run **walks** if it comes {WALKS:.0f} m or farther in an episode, on average. One
  run shows that something can happen, or contradicts that it never does; to say "in none" or "in
  all" takes {FEWEST} runs (what happens in every second run is missed in all of five with a
  probability below 5%). A run that does not walk counts only with enough steps.
- An expert has **high activation** if its membership is the largest one in {LEADS:.0%} of the
  visited states or more.

A claim is confirmed if all of its comparisons are, and contradicted if one is. A claim that counts
tasks is decided as soon as the undecided ones cannot change the count.
"""

LEFT_OUT = """
## Not judged here

What a person has to look at: that single experts are responsible for landing or propelling, that
the decomposition of a gait can be understood, that prototypes learned by gradient collide with
themselves, and that the curves show two phases of learning. `moie explain` shows the first three
for any policy; [the curves](README.md) show the last.
"""


def _counts(parts: Sequence[Part]) -> str:
    """How many comparisons came out how."""
    verdicts: tuple[Verdict, ...] = ("confirmed", "contradicted", "undecided")
    each = {verdict: sum(part.verdict == verdict for part in parts) for verdict in verdicts}
    return ", ".join(f"{n} {verdict}" for verdict, n in each.items() if n)


def _range(values: Sequence[int], unit: str) -> str:
    low, high = min(values), max(values)
    return f"{low if low == high else f'{low} to {high}'} {unit}{'' if high == 1 else 's'}"


def measured(parts: Sequence[Part]) -> str:
    """Comparisons, seeds and steps in a few words."""
    if len(parts) == 1:
        return parts[0].text
    seeds = [n for part in parts for n in part.seeds if n]
    steps = sorted({n for part in parts for n in part.steps})
    said = [f"of {len(parts)}: {_counts(parts)}"]
    said += [_range(seeds, "run") if seeds else ""]
    said += [f"{joined(map(million, steps))} steps" if steps else ""]
    return "; ".join(filter(None, said))


def outcome(claim: Claim, parts: Sequence[Part]) -> str:
    """The verdict, with the reasons where it is undecided."""
    verdict = claim.rule(parts)
    if verdict != "undecided":
        return f"**{verdict}**"
    found = reasons(parts)
    few = ", ".join(why if n == 1 else f"{why} ({n})" for why, n in found.most_common())
    return f"undecided: {few}"


def _details(part: Part, indent: str = "") -> list[str]:
    why = f": {part.why}" if part.why else ""
    line = f"{indent}- {part.text}. *{part.verdict}{why}*"
    return [line, *(text for inner in part.parts for text in _details(inner, indent + "    "))]


def _section(number: int, claim: Claim, parts: Sequence[Part]) -> list[str]:
    """A claim with all of its comparisons."""
    taken = [f"Taken to say: {claim.read_as}.", ""] if claim.read_as else []
    head = ["", f"### Claim {number}", "", f"> {claim.quote}", "", *taken]
    return [
        *head,
        f"Verdict: {outcome(claim, parts)}.",
        "",
        *(text for part in parts for text in _details(part)),
    ]


def markdown(evidence: Evidence) -> bytes:
    """The whole page."""
    rows, sections, verdicts = [], [], Counter[Verdict]()
    for title, claims in SECTIONS.items():
        sections += ["", f"## {title}"]
        for claim in claims:
            parts = claim.parts(evidence)
            verdicts[claim.rule(parts)] += 1
            number = verdicts.total()
            cells = (
                f"[{number}](#claim-{number})",
                f"“{claim.quote}”",
                measured(parts),
                outcome(claim, parts),
            )
            rows.append(f"| {' | '.join(cells)} |")
            sections += _section(number, claim, parts)
    head = [
        "",
        "## All claims",
        "",
        f"Of {verdicts.total()} claims {verdicts['confirmed']} confirmed, "
        f"{verdicts['contradicted']} contradicted, {verdicts['undecided']} undecided.",
        "",
        "| | the paper says | measured | verdict |",
        "|---|---|---|---|",
    ]
    page = [RULE.strip(), *head, *rows, LEFT_OUT.rstrip(), *sections]
    return ("\n".join(page) + "\n").encode()

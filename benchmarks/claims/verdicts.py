"""From measurements to verdicts: one rule for all claims.

A claim is made of parts. A part about a number compares the interval of what was measured with a
threshold; a part about runs counts those it is true of. What is known of the parts decides the
claim, and what is not known is never guessed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from moie.comparison.statistics import Interval

Verdict = Literal["confirmed", "contradicted", "undecided"]
Why = Literal[
    "",
    "not run",
    "no policy walks",
    "clipped actions",
    "one seed",
    "too few steps",
    "too few runs",
    "interval too wide",
]
"""Why a part is undecided; empty where it is not."""
FEWEST = 5
"""Runs that it takes to say "in none" or "in all": what happens in every second run is missed in
all of five with a probability below 5%."""


@dataclass(frozen=True)
class Part:
    """One comparison that a claim rests on, or several taken together."""

    text: str  # what was compared, and what was measured
    verdict: Verdict
    why: Why = ""
    seeds: tuple[int, ...] = ()  # seeds of each learner that was measured
    steps: tuple[int, ...] = ()
    parts: tuple["Part", ...] = ()  # those that it was put together from


def judged(interval: Interval, threshold: float) -> tuple[Verdict, Why]:
    """Whether a number is above a threshold, by its interval."""
    if interval.low > threshold:
        return "confirmed", ""
    if interval.high <= threshold:
        return "contradicted", ""
    return "undecided", "interval too wide"


def seen(
    n_true: int, n_false: int, quantifier: Literal["some", "none", "every"]
) -> tuple[Verdict, Why]:
    """Whether something is true of some, none or every run, when it is of `n_true` of them and not
    of `n_false`: one run decides where it can, and silence counts from FEWEST runs on."""
    witness, silent = (n_false, n_true) if quantifier == "every" else (n_true, n_false)
    if witness:
        return ("confirmed" if quantifier == "some" else "contradicted"), ""
    if silent >= FEWEST:
        return ("contradicted" if quantifier == "some" else "confirmed"), ""
    return "undecided", "too few runs"


def counted(parts: Sequence[Part], least: int, most: int) -> Verdict:
    """Whether between `least` and `most` of the parts are true, whatever the undecided ones are."""
    verdicts = Counter(part.verdict for part in parts)
    sure, possible = verdicts["confirmed"], verdicts["confirmed"] + verdicts["undecided"]
    if least <= sure and possible <= most:
        return "confirmed"
    return "contradicted" if sure > most or possible < least else "undecided"


def all_of(parts: Sequence[Part]) -> Verdict:
    return counted(parts, len(parts), len(parts))


def any_of(parts: Sequence[Part]) -> Verdict:
    return counted(parts, 1, len(parts))


def reasons(parts: Sequence[Part]) -> Counter[str]:
    """How many of the parts are undecided for which reason; one that was put together may have
    several."""
    found: Counter[str] = Counter()
    for part in parts:
        if part.verdict == "undecided":
            found.update(set(reasons(part.parts)) if part.parts else [part.why])
    return found

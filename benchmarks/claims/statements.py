"""What a claim can say of learners: one is above another, close to it, or walks.

Each function makes a part of a claim of what was published.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from benchmarks.claims.evidence import Cell, Evidence, Who, cell_of, name_of
from benchmarks.claims.verdicts import Part, Verdict, Why, judged, seen

from moie.comparison.statistics import Array, difference_interval, share_interval

CLOSE = 0.1
"""Share of a task's scale, from the untrained policy to the best learner: less is close, more is
a large difference."""
ENOUGH = 0.5  # share of the paper's steps from which on a result says something about it
WALKS = 10.0  # metres an episode; a robot that only stands or creeps stays below
Cells = dict[Who, Cell | None]
Kind = Literal["above", "far above", "close to or above"]
THRESHOLDS: dict[Kind, float] = {"above": 0.0, "far above": CLOSE, "close to or above": -CLOSE}


def million(steps: int) -> str:
    return f"{steps / 1e6:.1f}M"


def has_enough(cell: Cell) -> bool:
    """Whether the compared steps are enough of those that the paper's figure has."""
    planned = cell.task["planned"]
    return planned is None or cell.task["budget"] >= ENOUGH * planned


def number(value: float, digits: int = 0) -> str:
    """With a minus sign, and no minus zero."""
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def each(values: Sequence[float] | Array, digits: int = 0) -> str:
    return ", ".join(number(float(value), digits) for value in values)


def shared(n_true: int, n: int) -> str:
    """How many runs of all, with Wilson's interval of the share."""
    share = share_interval(n_true, n)
    return f"{n_true} of {n} (95% interval {share.low:.0%} to {share.high:.0%})"


def missing(question: str, cells: Cells) -> Part:
    """An answer to a question about learners some of which have no run."""
    names = " and of ".join(name_of(who) for who, cell in cells.items() if cell is None)
    return Part(f"{question} There is no run of {names}", "undecided", "not run")


def cells_of(evidence: Evidence, study: str, task: str, *learners: Who) -> Cells:
    return {who: cell_of(evidence, study, task, who) for who in learners}


def compared(evidence: Evidence, study: str, task: str, a: Who, kind: Kind, b: Who) -> Part:
    """Whether the mean final return of a is above, far above, or close to or above that of b."""
    question = f"{task}: {name_of(a)} {kind} {name_of(b)}?"
    cells = cells_of(evidence, study, task, a, b)
    ours, theirs = cells[a], cells[b]
    if ours is None or theirs is None:
        return missing(question, cells)
    interval = difference_interval(ours.returns, theirs.returns)
    scale, budget = ours.task["scale"], ours.task["budget"]
    span = scale["best"] - scale["untrained"] if scale is not None else 0.0
    verdict, why = _decided(judged(interval, THRESHOLDS[kind] * span), [ours, theirs])
    ends = ""
    if np.isfinite(interval.low):
        ends = f" (95% interval {number(float(interval.low))} to {number(float(interval.high))})"
    close = f"; {CLOSE:.0%} of the scale is {number(CLOSE * span)}" if kind != "above" else ""
    text = (
        f"{question} {each(ours.returns)} against {each(theirs.returns)} after {million(budget)} "
        f"steps: difference {number(float(interval.value))}{ends}{close}"
    )
    return Part(text, verdict, why, (ours.result["n"], theirs.result["n"]), (budget,))


def _decided(decision: tuple[Verdict, Why], cells: Sequence[Cell]) -> tuple[Verdict, Why]:
    """The decision, unless actions were clipped where the paper's were not, or there are too few
    steps or seeds for one."""
    if not all(cell.is_papers for cell in cells):
        return "undecided", "clipped actions"
    if not all(map(has_enough, cells)):
        return "undecided", "too few steps"
    if min(cell.result["n"] for cell in cells) < 2:
        return "undecided", "one seed"
    return decision


def walking(
    evidence: Evidence,
    study: str,
    task: str,
    who: Who,
    quantifier: Literal["some", "none", "every"],
) -> Part:
    """Whether some, none or every run walks. One that walks does so whatever its steps; one that
    does not might have learned it later."""
    words = {"some": "a run", "none": "no run", "every": "every run"}[quantifier]
    question = f"{task}: {words} of {name_of(who)} walks?"
    cell = cell_of(evidence, study, task, who)
    if cell is None or cell.distances is None:
        return missing(question, {who: None})
    n_walk, budget = int(np.sum(cell.distances >= WALKS)), cell.task["budget"]
    n_stand = cell.result["n"] - n_walk if has_enough(cell) else 0
    verdict, why = seen(n_walk, n_stand, quantifier)
    if why and not has_enough(cell):
        why = "too few steps"
    if not cell.is_papers:
        verdict, why = "undecided", "clipped actions"
    text = (
        f"{question} {shared(n_walk, cell.result['n'])}: {each(cell.distances, 1)} m after "
        f"{million(budget)} steps"
    )
    return Part(text, verdict, why, (cell.result["n"],), (budget,))


def sized(evidence: Evidence, study: str, task: str, who: Who, expected: int) -> Part:
    """Whether a policy has as many parameters as the paper's; seeds and steps do not matter."""
    question = f"{task}: {name_of(who)} has {expected:,} parameters?"
    cell = cell_of(evidence, study, task, who)
    if cell is None or cell.result["parameters"] is None:
        return missing(question, {who: None})
    size = cell.result["parameters"]
    return Part(f"{question} {size:,}", "confirmed" if size == expected else "contradicted")


def smaller(evidence: Evidence, study: str, task: str, a: Who, b: Who) -> Part:
    """Whether a has fewer parameters than b."""
    question = f"{task}: {name_of(a)} has fewer parameters than {name_of(b)}?"
    cells = cells_of(evidence, study, task, a, b)
    ours, theirs = (cell.result["parameters"] if cell else None for cell in cells.values())
    if ours is None or theirs is None:
        return missing(question, cells)
    verdict: Verdict = "confirmed" if ours < theirs else "contradicted"
    return Part(f"{question} {ours:,} and {theirs:,}", verdict)


def farther(evidence: Evidence, study: str, task: str, a: Who, b: Who) -> Part:
    """Whether the prototypes of a are farther from the states of the last batch than those of b,
    mean over prototypes, in the learner's features."""
    question = (
        f"{task}: prototypes of {name_of(a)} farther from the visited states than those of "
        f"{name_of(b)}?"
    )
    cells = cells_of(evidence, study, task, a, b)
    ours, theirs = cells[a], cells[b]
    if ours is None or theirs is None:
        return missing(question, cells)
    mine, other = (evidence[study].late(cell, "prototype_distance") for cell in (ours, theirs))
    budget = ours.task["budget"]
    verdict, why = _decided(judged(difference_interval(mine, other), 0.0), [ours, theirs])
    text = f"{question} {each(mine, 2)} against {each(other, 2)} after {million(budget)} steps"
    return Part(text, verdict, why, (len(mine), len(other)), (budget,))

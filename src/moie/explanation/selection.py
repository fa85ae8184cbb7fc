"""Which experts, features and steps are worth drawing, and in which colour.

An expert has the same colour everywhere: one of ten for the most used, grey for all others.
"""

import numpy as np

from moie.explanation.facts.schema import Expert, Facts
from moie.policy.handwork import named
from moie.present.style import PALETTE, REST


def colours(facts: Facts) -> dict[int, str]:
    """The colour of each expert, in order of use."""
    order = [expert["expert"] for expert in facts["experts"]]
    return {k: PALETTE[i] if i < len(PALETTE) else REST for i, k in enumerate(order)}


def captions(facts: Facts, most: int | None = None) -> dict[int, str]:
    """What each expert is called, in order of use; its label in at most so many characters."""
    labels = {expert["expert"]: expert["label"] for expert in facts["experts"]}
    if most is not None:
        labels = {k: x if len(x) <= most else f"{x[: most - 1]}…" for k, x in labels.items()}
    return {k: named(f"expert {k}", label) for k, label in labels.items()}


def chosen(facts: Facts, most: int) -> list[int]:
    """Experts worth drawing, as the paper picks them: much used, or not active together with one
    that was picked before."""
    picked: list[int] = []
    overlap = facts["overlap"]
    for expert in facts["experts"]:
        k = expert["expert"]
        apart = expert["share"] >= 0.01 and all(overlap[k][j] < 0.8 for j in picked)
        if expert["lead"] >= 0.05 or apart:
            picked.append(k)
    return (picked or [facts["experts"][0]["expert"]])[:most]


def leading(facts: Facts, most: int) -> list[int]:
    """Experts that lead most often, none of them together with another; in the order in which they
    come in a cycle, if there is one."""
    leads = [expert for expert in facts["experts"] if expert["lead"] > 0]
    overlap, picked = facts["overlap"], list[Expert]()
    for expert in leads or facts["experts"]:  # where only the default leads, those used the most
        others = (overlap[expert["expert"]][one["expert"]] for one in picked)
        if max(others, default=0.0) < 0.8:
            picked.append(expert)
    shown = picked[:most]
    if all(expert["phase"] is not None for expert in shown):
        shown.sort(key=lambda expert: expert["phase"] or 0.0)
    return [expert["expert"] for expert in shown]


def varied(facts: Facts, most: int) -> list[int]:
    """The features in which prototypes differ most, for the range of visited states; in order."""
    at = np.asarray([expert["prototype"] for expert in facts["experts"]])
    wide = np.asarray([feature["high"] - feature["low"] for feature in facts["features"]])
    spread = at.std(axis=0) / np.where(wide > 0, wide, np.inf)
    return sorted(np.argsort(-spread, kind="stable")[:most].tolist())


def window(facts: Facts, cycles: int = 8) -> range:
    """Steps of the shown episode that can be told apart on paper, some cycles or 200: those in
    which memberships vary most."""
    length, cycle = facts["shown"]["length"], facts["cycle"]
    wide = min(length, 200 if cycle is None else int(np.clip(cycles * cycle["period"], 60, 300)))
    memberships = np.asarray(facts["shown"]["memberships"])
    starts = range(0, length - wide + 1, 10)
    start = max(starts, key=lambda at: float(memberships[at : at + wide].var(axis=0).sum()))
    return range(start, start + wide)

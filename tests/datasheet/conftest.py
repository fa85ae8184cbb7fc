"""The zoo's policies as data sheets see them; a short search in the suite, the whole one where slow
tests are asked for."""

import functools

import moie
from moie.sheet import branching
from moie.sheet.facts import facts
from moie.sheet.parts import Parts
from moie.sheet.slope import slopes
from moie.zoo.catalogue import entries

ZOO = [entry.name for entry in entries()]


@functools.cache
def parts_of(name: str) -> Parts:
    policy = moie.load(f"zoo:{name}")
    assert isinstance(policy, moie.MixturePolicy)
    assert policy.visited is not None
    return Parts(policy, policy.visited.features)


@functools.cache
def facts_of(name: str, share_of_work: float) -> dict:
    """The figures, with so much of the work on slopes."""
    whole, most = branching.WORK, branching.MOST_BOXES
    branching.WORK, branching.MOST_BOXES = whole * share_of_work, int(most * share_of_work)
    try:
        return facts(parts_of(name), slopes(parts_of(name), 600.0), 5)
    finally:
        branching.WORK, branching.MOST_BOXES = whole, most

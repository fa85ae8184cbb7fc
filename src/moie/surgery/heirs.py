"""Weights that deleted experts pass on, as pruning does it: one after the other."""

from typing import Any

from moie.errors import shortened
from moie.policy.base import Array
from moie.policy.mixture import Mixture
from moie.surgery.values import Values


def passed_on(
    heirs: Any, weights: Array, sources: tuple[int | None, ...], original: Mixture, values: Values
) -> Array:
    """The weights with those of deleted experts added to their heirs', in the order of the table.

    `heirs` is a table of the file: `3 = 7` adds the weight of expert 3, which was deleted, to that
    of expert 7, whose own may be passed on further down.
    """
    if not isinstance(heirs, dict):
        values.add(("heirs",), f"heirs is {shortened(heirs)}, expected a table such as 3 = 7")
        return weights
    by_number = dict(enumerate(original.weights.tolist()))
    by_number |= {k: w for k, w in zip(sources, weights.tolist(), strict=True) if k is not None}
    gone: set[int] = set()
    for key, heir in heirs.items():
        number = int(key) if key.isdecimal() and len(key) < 10 else -1
        if number not in by_number or number in sources:
            expected = "the id of an expert that was deleted"
            values.add(("heirs", key), f"heirs: {shortened(key)} is not there, expected {expected}")
        elif type(heir) is not int or heir not in by_number or heir in {number, *gone}:
            expected = "the id of an expert that has not passed on its own weight"
            said = f"the heir of expert {number} is {shortened(heir)}, expected {expected}"
            values.add(("heirs", key), said)
        else:
            by_number[heir] += by_number[number]
            gone.add(number)
    new = weights.copy()
    for i, source in enumerate(sources):
        if source is not None:
            new[i] = by_number[source]
    return new

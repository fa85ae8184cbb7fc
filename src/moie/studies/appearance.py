"""How a learner looks, in every figure the same: whoever else is compared changes nothing.

The algorithm gives the colour (after Okabe and Ito, to be told apart by everyone), the marker and
the kind of line; more experts make the colour darker, fewer lighter.
"""

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_hex, to_rgb

LOOKS: dict[str, tuple[str, str, Any]] = {
    "moie": ("#d55e00", "o", "-"),
    "ppo": ("#0072b2", "s", "-"),
    "trpo": ("#009e73", "^", "-"),
    "trpo-linear": ("#7d8590", "v", (0, (1, 1.2))),
    "ppo-diffproto": ("#56b4e9", "D", (0, (4, 1.5))),
    "trpo-diffproto": ("#cc79a7", "P", (0, (4, 1.5))),
    "ppo-diffproto-entropy": ("#7b5fb8", "X", (0, (5, 1.2, 1, 1.2))),
    "trpo-diffproto-entropy": ("#b8860b", "p", (0, (5, 1.2, 1, 1.2))),
}
VARIANTS: tuple[Any, ...] = (
    (0, (2, 1)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (8, 2)),
    (0, (3, 2, 1, 2)),
    (0, (1, 2)),
)
"""Lines of learners that only a setting tells from another one."""
USUAL_EXPERTS = 10


@dataclass(frozen=True)
class Look:
    """Of one learner."""

    colour: str
    marker: str
    line: Any
    width: float


def _shade(colour: str, experts: int | None) -> str:
    """Towards white for fewer experts than usual, towards black for more; as far as it goes for
    four times as few or many."""
    amount = math.log2((experts or USUAL_EXPERTS) / USUAL_EXPERTS) / 2
    target, most = (0.0, 0.45) if amount > 0 else (1.0, 0.6)
    share = most * min(1.0, abs(amount))
    red, green, blue = ((1 - share) * part + share * target for part in to_rgb(colour))
    return to_hex((red, green, blue))


def looks(learners: list[dict[str, Any]]) -> dict[str, Look]:
    """Of every learner of the facts, by name."""
    found: dict[str, Look] = {}
    before: dict[tuple[str, int | None], int] = {}
    for one in learners:
        colour, marker, line = LOOKS[one["algorithm"]]
        key = one["algorithm"], one["experts"]
        nth = before[key] = before.get(key, -1) + 1
        if nth:
            line = VARIANTS[(nth - 1) % len(VARIANTS)]
        width = 1.9 if one["algorithm"] == "moie" else 1.2
        found[one["learner"]] = Look(_shade(colour, one["experts"]), marker, line, width)
    return found

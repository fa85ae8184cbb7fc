"""How a learner looks: the same in every figure, and whoever else is compared, as long as nobody
else would look like it.

The algorithm gives the colour (after Okabe and Ito, to be told apart by everyone), the marker and
the kind of line; more experts make the colour darker, fewer lighter. Learners that colour does not
tell apart, because only a setting does or nearly as many experts, differ in line and marker, and a
little in hue.
"""

import colorsys
import math
from dataclasses import dataclass
from itertools import count
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from moie.comparison.facts.schema import Learner
from moie.learn import registry

LINES: tuple[Any, ...] = ((0, (2, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (1, 3.5)))
"""Lines of the first four variants of a learner, which colour does not tell from it."""
MARKERS = ("d", "<", ">", "h", "s", "^", "v", "D", "P", "X", "p", "*", "o")
"""Markers of variants; those that no algorithm has come first."""
HUES = (0.0, 18.0, -18.0, 9.0, -9.0)
"""Degrees by which the first, second, ... variant differs from the algorithm's colour."""
USUAL_EXPERTS = 10
NEAR = 0.08  # shares of black or white that differ by less are hard to tell apart


@dataclass(frozen=True)
class Look:
    """The appearance of one learner."""

    colour: str
    marker: Any
    is_hollow: bool
    line: Any
    width: float
    nth: int
    """Its number among learners of nearly its colour: zero for the first, which has the algorithm's
    marker and line."""

    def mark(self, size: float, edge: str | None = None) -> dict[str, Any]:
        """Its marker, as options of `plot`. `edge`: the colour around a filled marker."""
        size *= 1.5 if self.marker == "*" else 1.0  # most of a star is not there
        width = 0.2 * size if self.is_hollow else 0.6 if edge else 0.0
        return {
            "marker": self.marker,
            "markersize": size,
            "markerfacecolor": "white" if self.is_hollow else self.colour,
            "markeredgecolor": self.colour if self.is_hollow or edge is None else edge,
            "markeredgewidth": width,
        }


def _share(experts: int | None) -> float:
    """The share of black in the colour, for more experts than usual; for fewer, that of white,
    negative. It grows evenly up to four times as many or few, and then ever more slowly."""
    amount = math.log2((experts or USUAL_EXPERTS) / USUAL_EXPERTS) / 2
    far = abs(amount) if abs(amount) <= 1 else 1.4 - 0.4 / abs(amount)
    return 0.45 * far if amount > 0 else -0.6 * far


def _shade(colour: str, share: float, turn: float) -> str:
    """A colour with a share of black or white, and its hue turned by some degrees."""
    hue, light, full = colorsys.rgb_to_hls(*to_rgb(colour))
    turned = colorsys.hls_to_rgb((hue + turn / 360) % 1, light, full)
    target, share = (0.0, share) if share > 0 else (1.0, -share)
    red, green, blue = ((1 - share) * part + share * target for part in turned)
    return to_hex((red, green, blue))


def _line(nth: int) -> Any:
    """The line of the nth variant: beyond LINES, dashes and dots that can be counted."""
    if nth <= len(LINES):
        return LINES[nth - 1]
    dashes, dots = divmod(nth - len(LINES) - 1, 3)
    return 0, (3, 1) * (dashes + 2) + (1, 1) * (dots + 1)


def _marker(nth: int, own: str) -> Any:
    """The marker of the nth variant, the algorithm's own one first, each filled and then hollow.
    Stars with ever more points follow when there are no others left."""
    markers = [own, *(marker for marker in MARKERS if marker != own)]
    at = nth // 2
    return markers[at] if at < len(markers) else (at - len(markers) + 6, 1, 0)


def looks(learners: list[Learner]) -> dict[str, Look]:
    """The look of every learner of the facts, by name and in their order."""
    by_name: dict[str, Look] = {}
    before: list[tuple[str, float, int]] = []
    for one in learners:
        algorithm, share = one["algorithm"], _share(one["experts"])
        taken = {n for other, at, n in before if other == algorithm and abs(at - share) < NEAR}
        nth = next(n for n in count() if n not in taken)
        before.append((algorithm, share, nth))
        who = registry.algorithm(algorithm)
        by_name[one["learner"]] = Look(
            colour=_shade(who.colour, share, HUES[nth % len(HUES)]),
            marker=_marker(nth, who.marker),
            is_hollow=nth % 2 == 1,
            line=_line(nth) if nth else who.line,
            width=1.2 if who.is_baseline else 1.9,
            nth=nth,
        )
    return by_name

"""A data sheet: its facts, as text, JSON and a page."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from moie.errors import InputError
from moie.files import finite
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.sheet.facts import facts
from moie.sheet.parts import Parts
from moie.sheet.returns import measured, visited
from moie.sheet.slope import slopes
from moie.sheet.text import MOST_FEATURES, WIDE, text
from moie.terminal import printable

MOST = 300
"""Features of a policy that a data sheet is made of: its time and memory grow with them."""
SECONDS = 20.0
"""Limit of branch and bound, for slow machines; on others its number of boxes ends it first."""


@dataclass(frozen=True, eq=False)
class Datasheet:
    """`print` it, or use its facts; `json()` and `html()` are its other forms."""

    facts: dict[str, Any]

    def __str__(self) -> str:
        return text(self.facts)

    def repeatable(self) -> str:
        """The text without what depends on the machine's speed."""
        return text(self.facts | {"size": self.facts["size"] | {"microseconds": None}})

    def json(self) -> str:
        """The facts."""
        return json.dumps(finite(self.facts), indent=2, allow_nan=False)

    def html(self) -> bytes:
        """A page that prints on one sheet of A4."""
        from moie.present.html import rendered

        css = (files("moie.sheet") / "templates" / "sheet.css").read_text()
        return rendered(
            *("moie.sheet", "sheet.html", self.facts, {}),
            css=css,
            most=MOST_FEATURES,
            wide=WIDE,
        )


def datasheet(policy: Policy, episodes: int, seed: int, workers: int) -> Datasheet:
    """The data sheet of a mixture; with `episodes`, its return over as many."""
    if not isinstance(policy, Mixture):
        learner = printable(policy.trained.get("algorithm", "another learner"))
        raise InputError(f"this policy of {learner} has no experts: a data sheet is about experts")
    n = len(policy.feature_names)
    if n > MOST:
        raise InputError(f"this policy has {n:,} features: a data sheet is made of at most {MOST}")
    known = policy.visited
    if known is None:
        known = visited(policy, seed, workers)
    parts = Parts(policy, known.features)
    found = facts(parts, slopes(parts, SECONDS), known.episodes)
    if episodes:
        found["size"]["returns"] = measured(policy, episodes, seed, workers)
    return Datasheet(found)

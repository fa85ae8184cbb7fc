"""Values of a file that a person has edited. In place of a bad value stands a good one, so that no
second mistake follows from it."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from moie.errors import shortened
from moie.policy.base import Array
from moie.surgery.lines import Path


@dataclass
class Values:
    """Takes values out of tables, and keeps what is wrong with them: where, and a sentence."""

    mistakes: list[tuple[Path, str]] = field(default_factory=list)

    def add(self, path: Path, said: str) -> None:
        """Note a mistake."""
        self.mistakes.append((path, said))

    def known(self, table: dict[str, Any], names: Sequence[str], path: Path, what: str) -> None:
        """Note every key that is not one of the names."""
        for key in table:
            if key not in names:
                near = difflib.get_close_matches(key[:100], names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
                self.add((*path, key), f"unknown {what} {shortened(key)}; {hint}")

    def number(self, value: Any, path: Path, what: str, otherwise: float) -> float:
        """A value that has to be a number."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                pass  # hundreds of digits
        found = "missing" if value is None else shortened(value)
        self.add(path, f"{what} is {found}, expected a number")
        return otherwise

    def row(
        self, value: Any, names: Sequence[str], path: Path, what: str, otherwise: Array
    ) -> Array:
        """A table with a number for each name."""
        if not isinstance(value, dict):
            found = "missing" if value is None else shortened(value)
            self.add(path, f"{what} is {found}, expected a table with a number for each name")
            return otherwise
        kind = "joint" if path[-1] == "action" else "feature"
        self.known(value, names, path, f"{kind} in the {what}:")
        given = otherwise.copy()
        for j, name in enumerate(names):
            said = f"{what}: {kind} {name!r}"
            given[j] = self.number(value.get(name), (*path, name), said, float(otherwise[j]))
        return given

    def tables(self, value: Any, path: Path, what: str) -> dict[int, dict[str, Any]]:
        """A list of tables, by their numbers."""
        if not isinstance(value, list):
            self.add(path, f"{what} is {shortened(value)}, expected tables: [[{what}]]")
            return {}
        for number, one in enumerate(value):
            if not isinstance(one, dict):
                said = f"{what} is {shortened(one)}, expected a table: [[{what}]]"
                self.add((*path, number), said)
        return {number: one for number, one in enumerate(value) if isinstance(one, dict)}

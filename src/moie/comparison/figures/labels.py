"""Room for names: how wide they are, where they break, and letters for names that are too long."""

import textwrap
from collections.abc import Sequence
from itertools import product
from string import ascii_uppercase

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from moie.present.style import STYLE

ROW_SIZE = float(STYLE["font.size"])
"""Points, of names beside rows."""
MOST_BESIDE = 2.15
"""Inches that names may take beside rows."""


def width(text: str, size: float) -> float:
    """Inches of the longest line."""
    font, path = FontProperties(family=STYLE["font.sans-serif"], size=size), TextToPath()
    lines = text.split("\n")
    return max(path.get_text_width_height_descent(line, font, False)[0] for line in lines) / 72


def widest(texts: Sequence[str], size: float) -> float:
    return max(width(text, size) for text in texts)


def n_lines(texts: Sequence[str]) -> int:
    """Of the text with the most."""
    return max(text.count("\n") + 1 for text in texts)


def wrapped(name: str, most: float, size: float) -> str:
    """In as few lines of `most` inches as it takes, about equally long: they end after a comma, and
    elsewhere only where what lies between two commas is too long itself."""
    wide = width(name, size)
    if wide <= most:
        return name
    parts = [part.replace(" ", "\xa0") for part in name.split(", ")]
    letters = max(4, int(0.95 * len(name) * most / wide))
    enough = len(_lines(parts, letters))
    shortest = min(letters, max(len(part) + 1 for part in parts))
    fits = (_lines(parts, n) for n in range(shortest, letters + 1))
    lines = next(lines for lines in fits if len(lines) == enough)
    return "\n".join(lines).replace("\xa0", " ")


def _lines(parts: list[str], letters: int) -> list[str]:
    return textwrap.wrap(", ".join(parts), letters, break_on_hyphens=False)


def letters(n: int) -> list[str]:
    """A, B, ..., Z, AA, AB, ..."""
    found = list(ascii_uppercase)
    while len(found) < n:
        longest = [one for one in found if len(one) == len(found[-1])]
        found += ["".join(pair) for pair in product(longest, ascii_uppercase)]
    return found[:n]


def beside(names: list[str]) -> tuple[list[str], bool]:
    """Names of rows, in one line or two; letters where that is not enough, and whether it is so."""
    found = [wrapped(name, MOST_BESIDE, ROW_SIZE) for name in names]
    if n_lines(found) <= 2 and widest(found, ROW_SIZE) <= 1.05 * MOST_BESIDE:
        return found, False
    return letters(len(names)), True


def listed(names: list[str]) -> list[str]:
    """What the letters stand for."""
    return [f"{letter}   {name}" for letter, name in zip(letters(len(names)), names, strict=True)]

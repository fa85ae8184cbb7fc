"""Room for names: how wide they are, where they break, and letters for names that are too long."""

import textwrap
from collections.abc import Sequence
from itertools import count, islice, product
from string import ascii_uppercase

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from moie.present.style import STYLE

ROW_SIZE = float(STYLE["font.size"])  # points of names beside rows


def width(text: str, size: float) -> float:
    """Inches of a text's longest line."""
    font, path = FontProperties(family=STYLE["font.sans-serif"], size=size), TextToPath()
    lines = text.split("\n")
    return max(path.get_text_width_height_descent(line, font, False)[0] for line in lines) / 72


def widest(texts: Sequence[str], size: float) -> float:
    return max(width(text, size) for text in texts)


def n_lines(texts: Sequence[str]) -> int:
    """Lines of the text with the most."""
    return max(text.count("\n") + 1 for text in texts)


def wrapped(name: str, most: float, size: float) -> str:
    """A name in as few lines of `most` inches as it takes, about equally long. They end after a
    comma, and elsewhere only where the text between two commas is too long itself."""
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
    every = (product(ascii_uppercase, repeat=size) for size in count(1))
    return ["".join(one) for one in islice((one for some in every for one in some), n)]

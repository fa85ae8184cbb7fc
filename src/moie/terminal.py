"""Output to the terminal. A name in a file may hold control characters, which a terminal obeys:
here, and nowhere else, they are replaced by escapes."""

import sys
from typing import TextIO


def printable(text: str) -> str:
    r"""The same in one line, with an escape such as \x1b for whatever is not to be seen: control
    characters, line breaks, marks that turn the direction of writing, halves of characters."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def printable_lines(text: str) -> str:
    """The same for a text whose line breaks are meant."""
    return "\n".join(printable(line) for line in text.split("\n"))


def say(text: object, file: TextIO | None = None) -> None:
    """Print a text of one or several lines, to the standard output if not said otherwise."""
    print(printable_lines(str(text)), file=sys.stdout if file is None else file)

"""Output to the terminal. A name in a file may hold control characters, which a terminal obeys:
here, and nowhere else, they are replaced by escapes."""

import codecs
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


def encodable(text: str, encoding: str) -> str:
    r"""The same with an escape such as \u00b1 for each character that an encoding does not have."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        if len(text) > 1:
            return "".join(encodable(one, encoding) for one in text)
        return f"\\u{ord(text):04x}" if ord(text) < 0x10000 else f"\\U{ord(text):08x}"
    return text


def _encoding(file: TextIO) -> str:
    return getattr(file, "encoding", None) or "utf-8"


def say(text: object, file: TextIO | None = None) -> None:
    """Print a text of one or several lines, to the standard output if not said otherwise."""
    file = sys.stdout if file is None else file
    print(encodable(printable_lines(str(text)), _encoding(file)), file=file)


def say_file(text: str) -> None:
    """Print a file to the standard output, from where it goes to one. It is then a text in UTF-8,
    whatever the terminal's own encoding is."""
    is_utf8 = codecs.lookup(_encoding(sys.stdout)).name == "utf-8"
    say(text if is_utf8 else encodable(text, "ascii"))

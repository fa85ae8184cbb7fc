"""Where things stand in a TOML file: `tomllib` reads values, but does not say on which line."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from moie.files import DAMAGE, reason

LONGEST = 1000
"""Lines of a single value; behind a longer one, no lines are known."""
ENDS = ("]", '"""', "'''")
"""One of these is in the last line of a value of several lines."""
Path = tuple[str | int, ...]


class NotTomlError(ValueError):
    """The text is not TOML; the message has no place in it."""

    def __init__(self, line: int, said: str):
        super().__init__(said)
        self.line = line


def parsed(text: str) -> dict[str, Any]:
    """The values of a TOML text; NotTomlError if it is none."""
    try:
        return tomllib.loads(text)
    except DAMAGE as error:
        where = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
        said = reason(error)
        found = where.search(said)
        if found is None:  # a number with thousands of digits, brackets without end
            said = said.partition("; use sys.")[0]  # advice to whoever wrote the program
            raise NotTomlError(_first_bad(text), said) from error
        line = int(found[1] or text.count("\n") + 1)
        raise NotTomlError(line, where.sub("", said)) from error


def _loads(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except DAMAGE:
        return None


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Each table's header and each `key = value`, with its line; None for one that has no end."""
    lines = text.replace("\r\n", "\n").split("\n")
    i = 0
    while i < len(lines):
        if not lines[i].strip() or lines[i].lstrip().startswith("#"):
            i += 1
            continue
        # Of a text that is TOML, the shortest run of lines that is TOML too is one statement.
        content = None
        for end in range(i + 1, min(len(lines), i + LONGEST) + 1):
            if end > i + 1 and not any(mark in lines[end - 1] for mark in ENDS):
                continue
            content = _loads("\n".join(lines[i:end]))
            if content is not None:
                break
        yield i + 1, lines[i].strip(), content
        if content is None:
            return
        i = end


def _first_bad(text: str) -> int:
    return next((line for line, _, content in _statements(text) if content is None), 1)


class Lines:
    """The line of every key of a text that is TOML, by its path."""

    def __init__(self, text: str):
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        table: Path = ()
        for line, start, content in _statements(text):
            if content is None:
                break
            if start.startswith("["):
                table = self._table(content, start.startswith("[["))
                self._lines.setdefault(table, line)
            else:
                self._note(table, content, line)

    def __getitem__(self, path: Path) -> int:
        """The line of a key, or of the table in which it is missing."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _table(self, content: dict[str, Any], is_array: bool) -> Path:
        """The path of a header: of an array's table with its number, and of what is in its last."""
        path: Path = ()
        inner: Any = content
        while inner and isinstance(inner, dict):
            (name, inner), path = next(iter(inner.items())), self._last(path)
            path = (*path, name)
        if is_array:
            self._counts[path] = self._counts.get(path, 0) + 1
        return self._last(path)

    def _last(self, path: Path) -> Path:
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _note(self, path: Path, content: Any, line: int) -> None:
        items: Any = ()
        if isinstance(content, dict):
            items = content.items()
        elif isinstance(content, list):
            items = enumerate(content)
        for name, inner in items:
            self._lines.setdefault((*path, name), line)
            self._note((*path, name), inner, line)

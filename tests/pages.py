"""What a page says: its numbers, and the facts that they name."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np

VOID = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """Numbers that name their fact, and all other text with digits in it."""

    def __init__(self, text: str):
        super().__init__()
        self.numbers: list[tuple[str, str, str]] = []
        self.other: list[str] = []
        self.addresses: list[str] = []
        self._open: list[tuple[str, dict[str, Any]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        given = dict(attributes)
        self.addresses += [given[name] for name in ("src", "href", "srcset") if name in given]
        if tag not in VOID:
            self._open.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, text: str) -> None:
        _, given = self._open[-1] if self._open else ("", {})
        if "data-fact" in given:
            self.numbers.append((given["data-fact"], given["data-format"], text))
        elif not {"script", "style", "svg", "pre"} & {name for name, _ in self._open}:
            self.other += [text] if re.search(r"\d", text) else []


def look_up(facts: Any, path: str) -> Any:
    for part in path.split("."):
        facts = facts[int(part)] if isinstance(facts, list | np.ndarray) else facts[part]
    return facts

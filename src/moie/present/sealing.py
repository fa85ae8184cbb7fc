"""Pages that show and run only what they were written with: their Content-Security-Policy has the
hash of the page's one style sheet and of its one script, and lets nothing else in.

Such a policy rules out `style` attributes, too: `Styles` turns what would stand in them into
classes.
"""

import base64
import hashlib
import html
import re
from typing import Any

import jinja2
from markupsafe import Markup

SVG_RULE = re.compile(r"<style\b.*?</style>", re.DOTALL)
"""Matplotlib's rule for all lines; report.css has it."""


class Styles:
    """Classes for what would be the `style` of single elements."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, declarations: str) -> str:
        """The name of a class that declares just this."""
        return self._names.setdefault(declarations, f"s{len(self._names)}")

    def in_svg(self, svg: str) -> str:
        """A drawing with classes in place of its styles."""

        def classed(tag: re.Match[str]) -> str:
            return re.sub(
                r'(?<=\s)style="([^"]*)"',
                lambda style: f'class="{self(html.unescape(style[1]))}"',
                tag[0],
            )

        return re.sub(r"<[^<>]*>", classed, SVG_RULE.sub("", svg))

    def rules(self) -> Markup:
        """For the page's style sheet, once everything else is written."""
        return Markup("".join(f".{name}{{{text}}}\n" for text, name in self._names.items()))


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def policy(css: str, js: str | None = None) -> Markup:
    """The Content-Security-Policy of a page with this style sheet and script."""
    parts = ["default-src 'none'", "img-src data:", f"style-src {_hash(css)}"]
    parts += [] if js is None else [f"script-src {_hash(js)}"]
    return Markup("; ".join([*parts, "base-uri 'none'", "form-action 'none'"]))


def rendered(template: str, styles: Styles, **values: Any) -> bytes:
    """A page. The template writes its body first, then the head, which depends on it."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    page = environment.from_string(template)
    return page.render(styled=styles, policy=policy, **values).encode()

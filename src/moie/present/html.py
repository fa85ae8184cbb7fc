"""What the pages share: numbers that name their place in the facts, figures as part of the page."""

import re
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from moie.present.sealing import Styles
from moie.present.style import INK, PAPER

STYLE_SHEET = files("moie.present") / "templates" / "report.css"
ZOOM = 1.65
"""Pixels of the page for a point of a figure."""


def look_up(facts: Any, path: str) -> Any:
    """The value at "experts.0.share"."""
    for part in path.split("."):
        facts = facts[int(part)] if isinstance(facts, list) else facts[part]
    return facts


def numbers(facts: Any) -> Any:
    """The template's function for a number: its place in the facts, and its format."""

    def number(path: str, form: str = "") -> Markup:
        value = look_up(facts, path)
        text = "-" if value is None else format(value, form)
        return Markup('<span data-fact="{}" data-format="{}">{}</span>').format(path, form, text)

    return number


def inline(svg: bytes, styles: Styles) -> Markup:
    """A figure as part of the page, in the page's own ink and on its ground: readable in light and
    dark."""
    text = re.sub(rf'<g id="{PAPER}">.*?</g>', "", svg.decode(), count=1, flags=re.DOTALL)
    text = styles.in_svg(text[text.index("<svg") :].replace(INK, "currentColor"))
    points = re.search(r'<svg [^>]*?width="([\d.]+)pt"', text)
    assert points is not None  # matplotlib always writes it
    width = styles(f"--width:{ZOOM * float(points.group(1)):.0f}px")
    return Markup(text.replace("<svg ", f'<svg class="{width}" ', 1))

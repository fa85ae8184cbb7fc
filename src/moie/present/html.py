"""Pages: a sealed frame, numbers that name their place in the facts, figures.

A page shows and runs only what it was written with: its Content-Security-Policy holds the hash of
its one style sheet and of its one script, and lets nothing else in. Such a policy rules out `style`
attributes, too: `Styles` turns them into classes.
"""

import base64
import hashlib
import html
import re
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from moie.present.style import INK, PAPER

STYLE_SHEET = files("moie.present") / "templates" / "report.css"
ZOOM = 1.65  # pixels of the page for a point of a figure


class Styles:
    """Classes in place of the `style` attributes of single elements."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, declarations: str) -> str:
        """The name of a class that declares just this."""
        return self._names.setdefault(declarations, f"s{len(self._names)}")

    def drawing(self, svg: bytes) -> Markup:
        """A figure as part of the page, in the page's own ink and on its ground: readable in light
        and dark; with classes in place of its styles."""

        def classed(tag: re.Match[str]) -> str:
            return re.sub(
                r'(?<=\s)style="([^"]*)"',
                lambda style: f'class="{self(html.unescape(style[1]))}"',
                tag[0],
            )

        text = re.sub(rf'<g id="{PAPER}">.*?</g>', "", svg.decode(), count=1, flags=re.DOTALL)
        text = text[text.index("<svg") :].replace(INK, "currentColor")
        # Matplotlib's rule for all lines is in report.css.
        text = re.sub(r"<style\b.*?</style>", "", text, flags=re.DOTALL)
        text = re.sub(r"<[^<>]*>", classed, text)
        points = re.search(r'<svg [^>]*?width="([\d.]+)pt"', text)
        assert points is not None  # matplotlib always writes it
        width = self(f"--width:{ZOOM * float(points.group(1)):.0f}px")
        return Markup(text.replace("<svg ", f'<svg class="{width}" ', 1))

    def rules(self) -> Markup:
        """All rules for the page's style sheet; complete once the page's body is written."""
        return Markup("".join(f".{name}{{{text}}}\n" for text, name in self._names.items()))


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _security_policy(css: str, js: str) -> Markup:
    """The Content-Security-Policy of a page with this style sheet and script."""
    parts = ["default-src 'none'", "img-src data:", f"style-src {_hash(css)}"]
    parts += [f"script-src {_hash(js)}"] if js else []
    return Markup("; ".join([*parts, "base-uri 'none'", "form-action 'none'"]))


def rendered(
    package: str,
    template: str,
    facts: Any,
    figures: dict[str, bytes],
    css: str = "",
    js: str = "",
    **values: Any,
) -> bytes:
    """A page of facts, figures (SVG by name), more rules and a script, by a template of the
    package. There `n` writes a number of the facts `f`, `styled` makes a class of a style."""
    styles = Styles()

    def number(path: str, form: str = "") -> Markup:
        """The number at a path such as "experts.0.share"."""
        value = facts
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        text = "-" if value is None else format(value, form)
        return Markup('<span data-fact="{}" data-format="{}">{}</span>').format(path, form, text)

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p) for p in (package, "moie.present")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template(template).render(
        f=facts,
        n=number,
        figures={name: styles.drawing(svg) for name, svg in figures.items()},
        styled=styles,
        security_policy=_security_policy,
        css=Markup(STYLE_SHEET.read_text() + css),
        js=Markup(js),
        **values,
    )
    return page.encode()

"""What `mkdocs` puts into pages from the source: a comment in a page, `<!-- NAME: ARGUMENT -->`, is
replaced by what the function of that name returns. So no table of these is kept by hand."""

import contextlib
import dataclasses
import functools
import io
import os
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import griffe
from mkdocs.exceptions import PluginError

from moie.cli.arguments import Train
from moie.cli.main import main
from moie.environments.catalogue import TASKS
from moie.learn import registry
from moie.runs.config import RunConfig, unused_settings
from moie.runs.presets import PAPER

ROOT = Path(__file__).parent.parent


@functools.cache
def _module(name: str) -> griffe.Module:
    return typing.cast(griffe.Module, griffe.load(name, search_paths=[str(ROOT / "src")]))


def _described(kind: type, name: str) -> str:
    """What a field's docstring says, or the help that its type carries."""
    docstring = _module(kind.__module__)[f"{kind.__name__}.{name}"].docstring
    if docstring is not None:
        text = docstring.value
    else:
        hint: Any = typing.get_type_hints(kind, include_extras=True)[name]
        note = hint.__metadata__[0]
        text = note.documentation if hasattr(note, "documentation") else note.help
    return re.sub(r"([\[\]|])", r"\\\1", " ".join(text.split()))


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return " ".join(map(str, default)) or "none"
    return "none" if default is None else str(default)


def _used_by(setting: str) -> str:
    names = registry.names()
    users = [name for name in names if setting not in unused_settings(name)]
    return "all" if len(users) == len(names) else ", ".join(users)


def settings(_: str) -> str:
    """Every setting of a run: a table for each part of the configuration, from its docstrings."""
    parts: list[tuple[type, Any]] = [(RunConfig, RunConfig("TASK"))]
    text = []
    while parts:
        kind, values = parts.pop(0)
        rows = []
        for item in dataclasses.fields(kind):
            value = getattr(values, item.name)
            if dataclasses.is_dataclass(value):
                parts.append((type(value), value))
            elif item.name != "task":
                about = _described(kind, item.name)
                rows.append((f"`{item.name}`", _value(value), about, _used_by(item.name)))
        docstring = typing.cast(str, kind.__doc__)
        head = " ".join(docstring.split()).split(". ")[0].removesuffix(".")
        text += [f"## {head}", _table(("setting", "default", "", "looked at by"), rows)]
    return "\n\n".join(text)


def machinery(_: str) -> str:
    """The options of `moie train` that change no result."""
    items = [item for item in dataclasses.fields(Train) if item.name != "config"]
    rows = [(f"`{i.name}`", _value(i.default), _described(Train, i.name)) for i in items]
    return _table(("option", "default", ""), rows)


def presets(_: str) -> str:
    """What the paper's tasks have of their own."""
    rows = [(task.short, f"`{task.id}`", *map(str, PAPER[task.id])) for task in TASKS]
    return _table(("name", "id", "iterations", "temperature"), rows)


def usage(command: str) -> str:
    """What `moie COMMAND --help` prints; `moie --help` without a command."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), mock.patch.dict(os.environ, {"COLUMNS": "80"}):
        code = main([*command.split(), "--help"])
    if code:
        raise PluginError(f"moie {command} --help ended with {code}")
    return f"```text\n{said.getvalue().rstrip()}\n```"


def contributing(heading: str) -> str:
    """A section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        raise PluginError(f"CONTRIBUTING.md has no section {heading!r}")
    return found[1].strip()


SOURCES: dict[str, Callable[[str], str]] = {
    "settings": settings,
    "machinery": machinery,
    "presets": presets,
    "usage": usage,
    "contributing": contributing,
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    pattern = rf"^<!-- ({'|'.join(SOURCES)}):? ?(.*?) ?-->$"
    return re.sub(pattern, lambda found: SOURCES[found[1]](found[2]), markdown, flags=re.M)

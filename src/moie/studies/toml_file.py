"""Studies in TOML files: those that come with the package, and the user's own."""

import difflib
import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from moie.errors import InputError, shortened
from moie.files import read_bytes, reading
from moie.studies.declaration import Grid, Mistakes, Planned, Study, as_list, plan

SHIPPED = files("moie.studies") / "shipped"
GRID = tuple(item.name for item in fields(Grid))
KNOWN = ("name", "description", *GRID, "grid")
LARGEST = 2**20
"""Bytes of a study's file."""
NAMES, NUMBERS = (str, "a name or a list of names"), (int, "a whole number or a list of them")
LISTS = {"tasks": NAMES, "algorithms": NAMES, "experts": NUMBERS, "seeds": NUMBERS}
"""Type of the values of each dimension, and what was expected."""


def shipped() -> list[str]:
    """Names of the studies that come with the package."""
    return sorted(Path(file.name).stem for file in SHIPPED.iterdir())


def load(name: str) -> tuple[Study, list[Planned]]:
    """A study and its runs, by name or from a file; InputError with all mistakes."""
    if name in shipped():
        return from_toml((SHIPPED / f"{name}.toml").read_text(), name, f"study {name}")
    path = Path(name)
    if path.suffix != ".toml":
        near = difflib.get_close_matches(name, shipped(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(shipped())}"
        raise InputError(f"unknown study {name!r}; {hint}; a study of your own is a .toml file")
    with reading(f"cannot read {path}"):
        text = read_bytes(path, LARGEST).decode()
    return from_toml(text, path.stem, str(path))


def from_toml(text: str, name: str, what: str) -> tuple[Study, list[Planned]]:
    """A study and its runs; each `[[grid]]` may add to the top-level keys or replace them."""
    with reading(f"{what} is not TOML"):
        content = tomllib.loads(text)
    mistakes = Mistakes()
    _known(content, KNOWN, "", mistakes)
    shared = {key: value for key, value in content.items() if key in GRID}
    tables = content.get("grid", [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        mistakes.add("grid", f"{shortened(tables)}, expected tables: [[grid]]")
        tables = [{}]
    grids = tuple(
        _grid(shared, table, f"grid {number}: " if "grid" in content else "", mistakes)
        for number, table in enumerate(tables, 1)
    )
    texts = {key: content.get(key, name if key == "name" else "") for key in KNOWN[:2]}
    for key, value in texts.items():
        if not isinstance(value, str):
            mistakes.add(key, f"{shortened(value)}, expected a text")
            texts[key] = name
    study = Study(texts["name"], grids, texts["description"])
    try:
        planned = plan(study, mistakes)
    except InputError:
        mistakes.check(what)
        raise
    return study, planned


def _known(table: dict[str, Any], known: tuple[str, ...], where: str, mistakes: Mistakes) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key[:100], known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            mistakes.add(f"{where}{key[:100]}", f"unknown; {hint} (settings go below [settings])")


def _grid(shared: dict[str, Any], table: dict[str, Any], where: str, mistakes: Mistakes) -> Grid:
    _known(table, GRID, where, mistakes)
    values = shared | {key: value for key, value in table.items() if key in GRID}
    settings: dict[str, Any] = {}
    for place, given in (("", shared), (where, table)):
        part = given.get("settings", {})
        if isinstance(part, dict):
            settings |= part
        else:
            mistakes.add(f"{place}settings", f"{shortened(part)}, expected a table: [settings]")
    for key, (kind, expected) in LISTS.items():
        value = values.get(key, [])
        if not all(isinstance(one, kind) and type(one) is not bool for one in as_list(value)):
            mistakes.add(f"{where}{key}", f"{shortened(value)}, expected {expected}")
            values.pop(key)
            if key == "tasks":
                values["tasks"] = "pendulum"  # so that no second mistake follows from this
    return Grid(**values | {"settings": settings})

"""Exports as source code: C, Python, JavaScript. The templates are in `templates/`."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np

from moie.exports.description import Description, Experts, Layers
from moie.exports.guard import Guard
from moie.exports.manifest import VERSION
from moie.exports.notes import Notes
from moie.exports.vectors import Vectors
from moie.policy.observation import LARGEST

TEMPLATES = files("moie.exports") / "templates"
WIDTH = 96


@dataclass(frozen=True)
class Language:
    """How tables are written."""

    comment: str
    """A comment at the end of a line, with a place for the text."""
    brackets: str
    """Around a list."""
    single: str = ""
    """What follows a number in single precision."""

    def number(self, value: float, real: str) -> str:
        """A number with all digits that its precision has."""
        if real == "float":
            return f"{np.float32(value)!s}{self.single}"
        return repr(float(value))

    def column(self, values: Sequence[float], names: Sequence[str], indent: int, real: str) -> str:
        """One number a line, with its name."""
        numbers = [f"{self.number(value, real)}," for value in values]
        wide = max(map(len, numbers))
        lines = zip(numbers, names, strict=True)
        return "\n".join(
            f"{' ' * indent}{number:<{wide}}  {self.comment.format(name)}" for number, name in lines
        )

    def block(self, values: Sequence[float], indent: int, real: str) -> str:
        """All numbers in brackets, and a comma."""
        text = ", ".join(self.number(value, real) for value in values)
        text += "," if len(values) == 1 else ""  # a tuple of one
        text = f"{self.brackets[0]}{text}{self.brackets[1]},"
        # A number is never broken, at the sign of its exponent least of all.
        lines = textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False, break_long_words=False)
        return "\n".join(" " * indent + line for line in lines)


C = Language("/* {} */", "{}", "f")
PYTHON = Language("# {}", "()")
JAVASCRIPT = Language("// {}", "[]")


def _environment(language: Language, real: str, indent: int) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (TEMPLATES / name).read_text("utf-8")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # it is source code; `notes` has only texts that may stand in a comment
    )
    filters: dict[str, Callable[..., Any]] = {
        "plain": repr,
        "inverse": lambda values: [1 / value for value in values],
        "beside": lambda names, values: [
            f"{name}: 1 / {value:.4g}" for name, value in zip(names, values, strict=True)
        ],
        "number": lambda value: language.number(value, real),
        "column": lambda values, names, by=indent, real=real: language.column(
            values, names, by, real
        ),
        "block": lambda values, indent=indent, real=real: language.block(values, indent, real),
        "removesuffix": lambda text, mark: text.removesuffix(mark),
        "about": lambda text, mark: textwrap.indent(text.strip(), mark, lambda line: True),
    }
    environment.filters.update(filters)
    return environment


def _context(
    description: Description, guard: Guard, notes: Notes, vectors: Vectors, real: str
) -> dict[str, Any]:
    """What the templates may use: every table of the description by its name, as lists."""
    is_single_layer = isinstance(description, Layers) and len(description.matrices) == 1
    tables = {item.name: _listed(getattr(description, item.name)) for item in fields(description)}
    limits = guard.limits(np.float32 if real == "float" else np.float64)
    return tables | {
        "kind": "experts" if isinstance(description, Experts) else "layers",
        "notes": notes,
        "vectors": {item.name: _listed(getattr(vectors, item.name)) for item in fields(vectors)},
        "safe": guard.safe.tolist(),
        "ranges": list(zip(*map(_listed, limits), strict=True)) if guard.ranged.any() else [],
        "ranged": guard.ranged.tolist(),
        "format": VERSION,
        "largest": LARGEST,
        "real_max": "FLT_MAX" if real == "float" else "DBL_MAX",
        "real": real,
        "precision": "single" if real == "float" else "double",
        "exp": "expf" if real == "float" else "exp",
        "sum": "double" if is_single_layer else real,
    }


def _listed(table: Any) -> Any:
    if isinstance(table, tuple):
        return [one.tolist() for one in table]
    return table.tolist() if isinstance(table, np.ndarray) else table


def _files(
    templates: dict[str, str], environment: jinja2.Environment, context: dict[str, Any]
) -> dict[str, bytes]:
    return {
        name: environment.get_template(template).render(context).rstrip().encode() + b"\n"
        for name, template in templates.items()
    }


def c(
    description: Description, guard: Guard, notes: Notes, vectors: Vectors, real: str
) -> dict[str, bytes]:
    """C99: a header, a source, a self-test, and a main that runs it."""
    templates = {
        f"{notes.name}.h": "policy.h.jinja",
        f"{notes.name}.c": "policy.c.jinja",
        f"{notes.name}_test.c": "test.c.jinja",
        "main.c": "main.c.jinja",
    }
    context = _context(description, guard, notes, vectors, real)
    return _files(templates, _environment(C, real, 4), context)


def python(
    description: Description, guard: Guard, notes: Notes, vectors: Vectors, real: str
) -> dict[str, bytes]:
    """A Python file, and one with the test vectors."""
    templates = {f"{notes.name}.py": "policy.py.jinja", f"{notes.name}_test.py": "test.py.jinja"}
    context = _context(description, guard, notes, vectors, real)
    return _files(templates, _environment(PYTHON, real, 4), context)


def javascript(
    description: Description, guard: Guard, notes: Notes, vectors: Vectors, real: str
) -> dict[str, bytes]:
    """A JavaScript module, and one with the test vectors."""
    name = notes.name
    templates = {f"{name}.mjs": "policy.mjs.jinja", f"{name}_test.mjs": "test.mjs.jinja"}
    context = _context(description, guard, notes, vectors, real)
    return _files(templates, _environment(JAVASCRIPT, real, 2), context)

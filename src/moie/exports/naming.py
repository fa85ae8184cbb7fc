"""The name of an export: of its files, and of everything that C code sees of it."""

import keyword
import re
import sys

from moie.errors import InputError, require

LONGEST = 60
"""Characters of a name."""
C_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while"
)
C_HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg "
    "stdbool stddef stdint stdio stdlib string tgmath time wchar wctype"
)


def taken(name: str) -> str | None:
    """What uses a name already, so that no export can have it; None for a free name."""
    if name == "main":
        return "a file of every export to C"
    if name in C_KEYWORDS.split() or keyword.iskeyword(name):
        return f"a keyword of {'Python' if keyword.iskeyword(name) else 'C'}"
    if name in C_HEADERS.split():
        return "a header of C's library"
    return "a module of Python's library" if name in sys.stdlib_module_names else None


def check_name(name: str) -> str:
    """A name that a person chose; InputError unless C, Python and JavaScript can have it."""
    is_name = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
    expected = "a letter, then letters, digits and underscores of ASCII"
    require(is_name and len(name) <= LONGEST, "name", name, f"{expected}, at most {LONGEST}")
    if user := taken(name.lower()):
        raise InputError(f"name is {name!r}, expected another name: this is {user}")
    return name


def identifier(task: str) -> str:
    """The name of an export for which nobody chose one, from the policy's task: HopperBulletEnv-v0
    becomes hopper_bullet_env_v0."""
    words = re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", task.rpartition(":")[2])
    name = "_".join(words).lower()[:LONGEST]
    is_name = bool(name) and not name[0].isdigit()
    return name if is_name and not taken(name) else f"policy_{name}".rstrip("_")

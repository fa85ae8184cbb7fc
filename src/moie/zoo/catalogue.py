"""The zoo's catalogue, and the files behind names such as "zoo:hopper"."""

import difflib
import functools
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from moie.errors import FileError
from moie.files import parse_json

PREFIX = "zoo:"
FILE = Path(__file__).parent / "catalogue.json"
POLICIES = Path(__file__).parent / "policies"
HELD = 3
"""Episodes whose returns the catalogue has one by one, so that they can be measured again."""


@dataclass(frozen=True)
class Entry:
    """A policy of the zoo. Returns are means over the catalogue's episodes, with mean actions."""

    name: str
    task: str
    algorithm: str
    experts: int
    command: str
    """How it was trained."""
    iterations: int
    steps: int
    """Environment steps that it learned from."""
    seed: int
    """Seed of its training; `moie swarm` trains all of its seeds with one command."""
    return_mean: float
    standard_error: float
    """Of `return_mean`."""
    first_returns: tuple[float, ...]
    """Returns of the first few episodes."""
    distance: float | None
    """Metres covered in an episode; None where nothing walks."""
    in_range: float
    """Share of experts whose action lies in the action space."""
    coverage: float
    """One minus the default's mean share."""
    attention: float
    """Number of parts that give the policy's action, mean over states."""
    alone: float
    """Return of the leading part alone."""
    pair: float
    """Return of the blend of the leading two."""
    default: float
    """Return of the default action everywhere."""
    near_alone: float
    """Share of the states in which the leading part's action is within a tenth of the range of the
    policy's, in every command."""
    near_pair: float
    """The same for the blend of the leading two."""
    wrong_side: float
    """Share of the commands that the leading part has on the wrong side of the middle."""
    reading: Literal["literal", "pairs", "guide", "blend", "undecided", "unknown"]
    """How literally the program may be taken, as `moie evaluate` judges it."""
    remark: str
    """What one should know before using it; often empty."""
    sha256: str
    """Of the policy file."""

    @property
    def file(self) -> Path:
        """The policy file."""
        return file_of(self.name)


@functools.cache
def content() -> dict[str, Any]:
    """The catalogue as it is in the package: "policies", and how all of them were measured, the
    number of "episodes", their "episodes_seed" and what they were "measured_with"."""
    return parse_json(FILE.read_bytes())


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All policies of the zoo."""
    return tuple(_entry(row) for row in content()["policies"])


def _entry(row: dict[str, Any]) -> Entry:
    row = {"return_mean": row["return"], **row, "first_returns": tuple(row["first_returns"])}
    return Entry(**{item.name: row[item.name] for item in fields(Entry)})


def file_of(name: str) -> Path:
    """The policy file of a name in the catalogue."""
    return POLICIES / f"{name}.safetensors"


def is_named(path: str | os.PathLike[str]) -> bool:
    """Whether this is a name of the zoo, right or wrong, and not a path."""
    return os.fspath(path).startswith(PREFIX)


def find(name: str | os.PathLike[str]) -> Entry:
    """The policy of a name, with or without "zoo:"."""
    wanted = os.fspath(name).removeprefix(PREFIX)
    known = {one.name: one for one in entries()}
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted.lower(), known, n=3)
    hint = f"did you mean {' or '.join(PREFIX + one for one in near)}? " if near else ""
    raise FileError(f"there is no policy {os.fspath(name)!r}; {hint}the zoo has {', '.join(known)}")


def local(path: Path) -> Path:
    """The path whose neighbours are files about a policy: its own; of a policy of the zoo one in
    the current folder, since nothing is ever written into the package."""
    return Path(f"{find(path).name}.safetensors") if is_named(path) else path

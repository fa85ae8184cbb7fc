"""The folder of a swarm: `swarm.json` names its seeds; `s0`, `s1`, ... are their runs."""

import itertools
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moie.errors import FileError, InputError, shortened
from moie.files import (
    as_json,
    parse_json,
    read_bytes,
    reading,
    typed,
    write_bytes,
    write_folder,
)
from moie.runs.config import RunConfig, is_whole, with_seed
from moie.runs.disk.directory import RunDirectory, new_run

FORMAT, NAME, LARGEST = "moie-swarm", "swarm.json", 2**20
MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Swarm:
    """What a swarm is made of; the settings are in its runs."""

    seeds: tuple[int, ...]
    at_once: int
    """Seeds that learn side by side."""
    machine: str
    """The kind of accelerator."""

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Seeds that learn side by side; one group after the other."""
        return [
            self.seeds[first : first + self.at_once]
            for first in range(0, len(self.seeds), self.at_once)
        ]


def member_path(swarm: Path, seed: int) -> Path:
    """Where the run of a seed lies."""
    return swarm / f"s{seed}"


def is_swarm(path: Path) -> bool:
    """Whether a folder is a swarm's."""
    return (path / NAME).is_file()


def check_single(path: Path) -> None:
    """InputError where a run is one of a swarm's, which continue together."""
    if is_swarm(path.resolve().parent) and (path / "run.json").is_file():
        raise InputError(
            f"{path} is one of the runs of a swarm, which continue together: "
            f"{typed('resume', path.parent)}"
        )


def check_free(path: Path) -> None:
    """FileError if something is there already."""
    if is_swarm(path):
        raise FileError(
            f"{path} is a swarm already; continue it with: {typed('resume', path)}, or choose "
            "another --out"
        )
    RunDirectory.check_free(path)


def create(path: Path, swarm: Swarm, config: RunConfig) -> list[RunDirectory]:
    """Make a new swarm, which appears as a whole with all of its runs; the runs."""
    files, folders = {NAME: _content(swarm)}, []
    for seed in swarm.seeds:
        own, empty = new_run(with_seed(config, seed))
        place = member_path(Path(), seed)
        files |= {str(place / name): content for name, content in own.items()}
        folders += [str(place / name) for name in empty]
    try:
        write_folder(path, files, tuple(folders))
    except FileError:
        check_free(path)  # somebody else was faster
        raise
    return [RunDirectory(member_path(path, seed)) for seed in swarm.seeds]


def write(path: Path, swarm: Swarm) -> None:
    """Another `at_once` of a swarm that has learned nothing yet."""
    write_bytes(path / NAME, _content(swarm))


def _content(swarm: Swarm) -> bytes:
    return as_json({"format": FORMAT, **asdict(swarm)})


def read(path: Path) -> Swarm:
    """FileError where it is damaged or not ours."""
    with reading(f"{path / NAME} cannot be read"):
        content = parse_json(read_bytes(path / NAME, LARGEST))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it was not written by moie")
        swarm = Swarm(tuple(content["seeds"]), content["at_once"], content["machine"])
        for name, value in (("at_once", swarm.at_once), *(("seeds", s) for s in swarm.seeds)):
            if type(value) is not int or not 0 <= value < 2**63:
                raise ValueError(f"{name} has {shortened(value)}, expected whole numbers")
        if not swarm.at_once >= 1 or not swarm.seeds or not isinstance(swarm.machine, str):
            raise ValueError("it names no seeds")
        if len(set(swarm.seeds)) < len(swarm.seeds):
            raise ValueError("it names a seed twice")
        return swarm


def seeds_of(given: Any) -> tuple[int, ...]:
    """A number of seeds, counted from 0, or the seeds themselves; InputError unless they are."""
    expected = "a number of seeds, or different whole numbers like 0,3,7"
    some: Any = given
    if isinstance(given, str):
        parts = [part.strip() for part in given.split(",")]
        if not all(part.isdecimal() and len(part) < 20 for part in parts):
            raise InputError(f"seeds is {shortened(given)}, expected {expected}")
        some = [int(part) for part in parts] if len(parts) > 1 else int(parts[0])
    if isinstance(some, np.ndarray):
        some = some.tolist()
    if is_whole(some):
        some = range(min(int(some), MOST_SEEDS + 1))
    known = isinstance(some, Iterable) and not isinstance(some, (bytes, dict, set))
    seeds = tuple(itertools.islice(some, MOST_SEEDS + 1)) if known else ()
    good = all(is_whole(seed) and 0 <= seed < 2**63 for seed in seeds)
    if not good or not seeds or len(set(seeds)) != len(seeds):
        raise InputError(f"seeds is {shortened(given)}, expected {expected}")
    if len(seeds) > MOST_SEEDS:
        raise InputError(f"seeds is {shortened(given)}, expected at most {MOST_SEEDS}")
    return tuple(int(seed) for seed in seeds)

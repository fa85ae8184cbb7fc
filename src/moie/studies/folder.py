"""Whether a folder, and the runs that it has already, are those of a study."""

import contextlib
from pathlib import Path

from moie.comparison.checking import STUDY_FILE, STUDY_FORMAT
from moie.errors import InputError
from moie.files import DAMAGE, parse_json, read_bytes
from moie.runs.config import differences
from moie.runs.disk.directory import RunDirectory
from moie.studies.declaration import Mistakes, Planned


def check_folder(folder: Path, name: str) -> None:
    """InputError if the folder is a run, another study's or another program's."""
    if (folder / "run.json").exists():
        raise InputError(f"{folder} is a run, not the folder of a study; choose another --out")
    file = folder / STUDY_FILE
    if not file.exists():
        return
    content = None
    with contextlib.suppress(*DAMAGE):
        content = parse_json(read_bytes(file))
    if not isinstance(content, dict) or content.get("format") != STUDY_FORMAT:
        raise InputError(f"{file} is not a study's of moie; choose another --out")
    if content.get("name") != name:
        raise InputError(
            f"{folder} is the folder of the study {content.get('name')!r}, not of {name!r}; choose "
            "another --out"
        )


def misfits(folder: Path, planned: list[Planned]) -> Mistakes:
    """Runs that are there already, but were made with other settings."""
    mistakes = Mistakes()
    for one in planned:
        path = folder / one.name
        if not (path / "run.json").exists():
            if path.exists() and not (path.is_dir() and not any(path.iterdir())):
                mistakes.add(one.name, "exists and is not a run")
            continue
        try:
            there = RunDirectory(path).read_config()
        except InputError as error:
            mistakes.add(one.name, error)
            continue
        for name, old, new in differences(there, one.config):
            mistakes.add(one.name, f"was made with {name} = {old}, the study wants {new}")
    return mistakes

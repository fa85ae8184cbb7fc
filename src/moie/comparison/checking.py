"""Checks of what files say about runs and studies: JSON may be damaged, or from an older version.

Whatever is wrong is an error of `moie.files.DAMAGE` or an InputError; whoever reads the file says
which file it was.
"""

import json
from typing import Any, TypedDict

from moie.errors import shortened
from moie.learn.config import require
from moie.runs.config import flat, from_json, to_json

STUDY_FILE, STUDY_FORMAT = "study.json", "moie-study"  # the declaration in a study's folder


class RunFacts(TypedDict):
    """Facts of run.json about a run. Older runs did not record versions and host."""

    config: dict[str, Any]
    versions: dict[str, str]
    host: dict[str, str | int]


class DeclaredRun(TypedDict):
    """A run that a study wants."""

    run: str
    settings: dict[str, Any]  # settings that differ from those of the study


class StudyFacts(TypedDict):
    """The content of study.json."""

    format: str
    name: str
    description: str
    settings: dict[str, Any]
    runs: list[DeclaredRun]


def completed(config: Any) -> dict[str, Any]:
    """A configuration as JSON has it, with the defaults of newer settings; InputError where it is
    none."""
    return json.loads(json.dumps(to_json(from_json(config))))


def check_facts(facts: Any) -> RunFacts:
    """The facts about a run, as run.json has them."""
    _check(facts, dict, "what is known about the run", "an object")
    versions, host = facts.get("versions", {}), facts.get("host", {})
    for name, content, kinds, expected in (
        ("versions", versions, str, "an object of texts"),
        ("host", host, str | int, "an object of texts and whole numbers"),
    ):
        for value in _check(content, dict, name, expected).values():
            _check(value, kinds, name, expected)
    return {"config": completed(facts.get("config")), "versions": versions, "host": host}


def check_study(content: Any) -> StudyFacts:
    """A study's declaration."""
    _check(content, dict, "the study's declaration", "an object")
    for name in ("format", "name", "description"):
        _check(content.get(name, ""), str, name, "a text")
    study: StudyFacts = {
        "format": content.get("format", ""),
        "name": content.get("name", ""),
        "description": content.get("description", ""),
        "settings": content["settings"],
        "runs": content["runs"],
    }
    declared(study)
    return study


def declared(study: StudyFacts) -> list[tuple[str, dict[str, Any]]]:
    """Name and settings of every run that a study declares."""
    completed_settings: dict[str, dict[str, Any]] = {}  # most runs differ in nothing but the seed
    runs = []
    for one in study["runs"]:
        settings = {"seed": 0} | study["settings"] | one["settings"]
        seed = settings.pop("seed")
        require(type(seed) is int and 0 <= seed < 2**63, "seed", seed, "zero or more, below 2**63")
        _check(one["run"], str, "a run's name", "a text")
        key = json.dumps(settings)
        if key not in completed_settings:
            completed_settings[key] = flat(completed(settings))
        runs.append((one["run"], completed_settings[key] | {"seed": seed}))
    return runs


def check_texts(content: Any) -> list[str]:
    _check(content, list, "a list of problems", "a list")
    return [_check(one, str, "a problem", "a text") for one in content]


def _check(value: Any, kinds: Any, what: str, expected: str) -> Any:
    if not isinstance(value, kinds):
        raise ValueError(f"{what} is {shortened(value)}, expected {expected}")
    return value

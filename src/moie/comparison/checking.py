"""What files say of runs and studies, checked: JSON may be damaged, or written by an older version.

Whatever is wrong is an error of `moie.files.DAMAGE` or an InputError; who reads the file says
which file it was.
"""

import json
from typing import Any

from moie.errors import shortened
from moie.learn.config import require
from moie.runs.config import flat, from_json, to_json

STUDY_FILE, STUDY_FORMAT = "study.json", "moie-study"
"""The declaration in a study's folder."""


def completed(config: Any) -> dict[str, Any]:
    """A configuration as JSON has it, with the defaults of settings that are newer; InputError
    where it is none."""
    return json.loads(json.dumps(to_json(from_json(config))))


def check_facts(facts: Any) -> dict[str, Any]:
    """What is known about a run, as run.json has it; versions and host are newer than the rest."""
    _check(facts, dict, "what is known about the run", "an object")
    found = {name: facts.get(name, {}) for name in ("versions", "host")}
    for name, kinds, expected in (
        ("versions", str, "an object of texts"),
        ("host", str | int, "an object of texts and whole numbers"),
    ):
        _check(found[name], dict, name, expected)
        for value in found[name].values():
            _check(value, kinds, name, expected)
    return {"config": completed(facts.get("config")), **found}


def check_study(content: Any) -> dict[str, Any]:
    """A study's declaration."""
    _check(content, dict, "the study's declaration", "an object")
    found = {name: content[name] for name in ("settings", "runs")}
    texts = {name: content.get(name, "") for name in ("format", "name", "description")}
    for name, text in texts.items():
        _check(text, str, name, "a text")
    declared(found)
    return texts | found


def declared(study: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and settings of every run that a study declares. Most differ in nothing but the seed."""
    shared, known, found = study["settings"], {}, []
    for one in study["runs"]:
        settings = {"seed": 0} | shared | one["settings"]
        seed = settings.pop("seed")
        require(type(seed) is int and 0 <= seed < 2**63, "seed", seed, "zero or more, below 2**63")
        _check(one["run"], str, "a run's name", "a text")
        key = json.dumps(settings)
        if key not in known:
            known[key] = flat(completed(settings))
        found.append((one["run"], known[key] | {"seed": seed}))
    return found


def check_texts(content: Any) -> list[str]:
    _check(content, list, "a list of problems", "a list")
    return [_check(one, str, "a problem", "a text") for one in content]


def _check(value: Any, kinds: Any, what: str, expected: str) -> Any:
    if not isinstance(value, kinds):
        raise ValueError(f"{what} is {shortened(value)}, expected {expected}")
    return value

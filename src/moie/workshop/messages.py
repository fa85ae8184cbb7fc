"""What a page may say. Everything else is refused, and changes nothing."""

import math
import re
from collections.abc import Callable
from typing import Any

from moie.errors import InputError, shortened
from moie.files import parse_json
from moie.workshop.push import PLANE, SIDES

LONGEST = 2**16
"""Bytes of a message."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
"""Names under which a policy may be saved: no folders, nothing hidden."""

Check = Callable[[Any], tuple[bool, str]]
"""Whether a value is right, and what is expected."""


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> tuple[bool, str]:
        is_right = type(value) is int and low <= value <= high
        return is_right, f"a whole number from {low} to {high}"

    return check


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> tuple[bool, str]:
        return _is_number(value) and low <= value <= high, f"a number from {low:g} to {high:g}"

    return check


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 and math.isfinite(value)


def _one_of(*choices: str) -> Check:
    return lambda value: (
        value in choices if isinstance(value, str) else False,
        " or ".join(choices),
    )


def _truth(value: Any) -> tuple[bool, str]:
    return isinstance(value, bool), "true or false"


def _any_number(value: Any) -> tuple[bool, str]:
    return _is_number(value), "a number"


def _text(value: Any) -> tuple[bool, str]:
    return isinstance(value, str), "a text"


def _numbers(value: Any) -> tuple[bool, str]:
    return isinstance(value, list) and all(map(_is_number, value)), "a list of numbers"


def _name(value: Any) -> tuple[bool, str]:
    is_right = isinstance(value, str) and NAME.fullmatch(value) is not None
    return is_right, "letters, digits, '.', '_' and '-', no more than 100"


SEED, EXPERT, INDEX, COUNT = (
    _whole(0, 2**31 - 1),
    _whole(0, 10**6),
    _whole(0, 10**6),
    _whole(0, 2**53),
)
ON_EXPERT: dict[str, Check] = {"expert": EXPERT, "on": _truth}
FIELDS: dict[str, dict[str, Check]] = {
    **{name: {} for name in ("play", "pause", "step", "add", "undo", "redo", "original")},
    **{name: {} for name in ("try", "stop-try")},
    "restart": {"seed": SEED},
    "speed": {"value": _number(0.05, 4.0)},
    "actions": {"kind": _one_of("mean", "sampled")},
    "loop": {"on": _truth},
    "seen": {"frame": COUNT},
    "push": {"direction": _one_of(*PLANE, *SIDES), "strength": _number(0.1, 5.0)},
    "mute": ON_EXPERT,
    "solo": ON_EXPERT,
    "delete": {"expert": EXPERT},
    "what-if": {"state": _numbers, "number": COUNT},
    "map": {"x": INDEX, "y": INDEX, "state": _numbers, "number": COUNT},
    "save": {"name": _name},
}
NUMBER_SET: dict[str, Check] = {"value": _any_number, "final": _truth}
PARTS: dict[str, dict[str, Check]] = {
    "action": {"expert": EXPERT, "index": INDEX, **NUMBER_SET},
    "prototype": {"expert": EXPERT, "index": INDEX, **NUMBER_SET},
    "weight": {"expert": EXPERT, **NUMBER_SET},
    "label": {"expert": EXPERT, "value": _text, "final": _truth},
    "temperature": NUMBER_SET,
    "metric": {"index": INDEX, **NUMBER_SET},
}


def parsed(text: str) -> dict[str, Any]:
    """The message that a page has sent; InputError if it is none."""
    try:
        message = parse_json(text.encode())
    except ValueError as error:  # UnicodeEncodeError is one: halves of characters
        raise InputError("the message is not JSON") from error
    if not isinstance(message, dict):
        raise InputError(f"the message is {shortened(message)}, expected an object")
    kind = message.get("type")
    if kind == "set":
        part = message.get("part")
        if not isinstance(part, str) or part not in PARTS:
            raise InputError(f"part is {shortened(part)}, expected one of {', '.join(PARTS)}")
        return _checked(message, {"type": _text, "part": _text, **PARTS[part]}, "set")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise InputError(f"type is {shortened(kind)}, expected one that the studio knows")
    return _checked(message, {"type": _text, **FIELDS[kind]}, kind)


def _checked(message: dict[str, Any], fields: dict[str, Check], kind: str) -> dict[str, Any]:
    if unknown := set(message) - set(fields):
        raise InputError(f"{kind!r} has {shortened(sorted(unknown))}, which it does not know")
    for name, check in fields.items():
        if name not in message:
            raise InputError(f"{kind!r} has no {name!r}")
        is_right, expected = check(message[name])
        if not is_right:
            raise InputError(f"{name} is {shortened(message[name])}, expected {expected}")
    return message

"""Descriptions of faults in the user's environment: in one line, and with the lines of code."""

import importlib
import re
import traceback
from pathlib import Path
from typing import Any

import gymnasium

_NOT_THE_USERS = (
    "<frozen ",
    str(Path(importlib.__file__).parent),
    str(Path(gymnasium.__file__).parent),
    str(Path(__file__).parent.parent),
)
"""Beginnings of the paths of Python's imports, Gymnasium and moie."""
FIRST, LAST = 1, 2
"""Frames of the user's code that the terminal shows, of a long traceback."""
RETURNS = {
    "reset": "two: observation, info",
    "step": "five: observation, reward, terminated, truncated, info",
}


class Unusable(Exception):  # noqa: N818  becomes an EnvironmentFault
    """The environment returned something unusable; the message says what."""


def said(error: BaseException) -> str:
    """Type and text of an error in one line; the text alone where the type says nothing."""
    text = " ".join(str(error).split())
    if text and isinstance(error, Unusable):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place(error: BaseException) -> str:
    """ " (file.py, line 3)": where the user's code was; nothing where it was not in it."""
    frames = users_frames(error) or (users_frames(error.__context__) if error.__context__ else [])
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def users_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of the traceback, from the first one in the user's code on."""
    frames = list(traceback.extract_tb(error.__traceback__))
    while frames and frames[0].filename.startswith(_NOT_THE_USERS):
        frames.pop(0)
    return frames


def last_lines(error: BaseException) -> list[str]:
    """The end of the traceback, from the user's code on; of a long one the middle is left out."""
    frames = [entry.rstrip().splitlines() for entry in traceback.format_list(users_frames(error))]
    if len(frames) > FIRST + LAST:
        frames[FIRST:-LAST] = [["  ..."]]
    return [line for frame in frames for line in frame]


def in_record(error: Exception) -> dict[str, Any]:
    """The error, where in the user's code it came from, and the whole traceback; the last two only
    where the environment raised it."""
    if isinstance(error, Unusable):
        return {"error": said(error)}
    lines = "".join(traceback.format_exception(error)).splitlines()
    return {"error": said(error), "where": last_lines(error), "traceback": lines}


def check_reset(result: Any, env: gymnasium.Env) -> None:
    """Raise Unusable unless `reset` returned a pair; an observation of two numbers is not one."""
    is_list = isinstance(result, list) and bool(result) and isinstance(result[-1], dict)
    if not (isinstance(result, tuple) or is_list) or len(result) != 2:
        several = f"{len(result)} values" if isinstance(result, tuple | list) else ""
        raise _returned(several or f"one {type(result).__name__}", "reset", env)


def meaning(error: Exception, env: gymnasium.Env) -> Exception:
    """The same error; or, where what `step` returned cannot be unpacked, one that says so."""
    count = re.search(r"values to unpack \(expected 5(?:, got (\d+))?\)", str(error))
    single = re.search(r"cannot unpack non-iterable (\w+) object", str(error))
    if not (count or single) or users_frames(error):
        return error
    what = f"one {single[1]}" if single else f"{(count and count[1]) or 'more than 5'} values"
    return _returned(what, "step", env)


def _returned(what: str, method: str, env: gymnasium.Env) -> Unusable:
    kind = type(env.unwrapped)
    code = getattr(getattr(kind, method, None), "__code__", None)
    where = f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""
    expected = RETURNS[method]
    return Unusable(f"{kind.__name__}.{method}{where} returned {what}, expected {expected}")

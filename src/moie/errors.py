"""The errors that a user can do something about. The command line prints each in one line and exits
with code 2. `Stopped` stands apart: it is what Ctrl-C raises, not an error."""

from typing import Any


class MoieError(Exception):
    """The base of all errors that moie raises on purpose."""


class InputError(MoieError):
    """Bad input: the message names the thing, its value and what was expected."""


class Busy(InputError):  # noqa: N818  a state, not a mistake
    """Another process is working on the run."""


class FileError(InputError):
    """A file or folder is missing, damaged, not moie's, or cannot be read or written."""


class ClusterError(InputError):
    """Ray does not start, cannot be reached, or keeps dying."""


class DivergenceError(InputError):
    """Learning produced numbers that are not finite; the last checkpoint is intact."""


class EnvironmentFault(InputError):  # noqa: N818  the environment's, not ours
    """The environment returned something unusable or raised; the message says how to repeat it."""

    def __init__(self, message: str, record: dict[str, Any] | None = None):
        """`record`: seed and actions that repeat it, and the traceback of what was raised."""
        super().__init__(message)
        self.record: dict[str, Any] = {} if record is None else record
        if self.last_lines:
            self.add_note("\n".join(self.last_lines))

    @property
    def last_lines(self) -> list[str]:
        """Lines of the environment's code that raised; empty where it raised nothing."""
        return list(self.record.get("where", []))


class Stopped(Exception):  # noqa: N818  not an error
    """Somebody asked to stop: Ctrl-C, SIGTERM or a callback. The message says how to go on."""


class StoppedByCallback(Stopped):
    """A callback returned False: the run ends here for now, and that is no surprise."""


def shortened(value: object, most: int = 100) -> str:
    """A value for a message: its `repr`, not longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, a list without end
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def require(condition: object, name: str, value: object, expected: str) -> None:
    """Fail with a line that names the thing, its value and what was expected."""
    if not condition:
        raise InputError(f"{name} is {shortened(value)}, expected {expected}")

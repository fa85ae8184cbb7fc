"""The errors that are the user's to mend; the command line prints them in one line, exit code 2."""

from typing import Any


class InputError(Exception):
    """Bad input: the message names the thing, its value and what was expected."""


class Busy(InputError):  # noqa: N818  a state, not a mistake
    """Another process is working on the run."""


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
        """Where in the environment's code it happened; nothing where it raised nothing."""
        return list(self.record.get("where", []))


class Stopped(Exception):  # noqa: N818  not an error
    """The user asked to stop (Ctrl-C or SIGTERM); the message says how to go on."""


def shortened(value: object, most: int = 100) -> str:
    """A value as a message has it: as Python writes it, and not longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, a list without end
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 4]} ..."

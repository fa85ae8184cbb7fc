"""The errors that are the user's to mend; the command line prints them in one line, exit code 2."""


class InputError(Exception):
    """Bad input: the message names the thing, its value and what was expected."""


class Busy(InputError):  # noqa: N818  a state, not a mistake
    """Another process is working on the run."""


class EnvironmentFault(InputError):  # noqa: N818  the environment's, not ours
    """The environment returned something unusable or raised; the message says how to repeat it."""

    record: dict
    """Seed and actions that repeat it."""


class Stopped(Exception):  # noqa: N818  not an error
    """The user asked to stop (Ctrl-C or SIGTERM); the message says how to go on."""


def shortened(value: object, most: int = 100) -> str:
    """A value as a message has it: as Python writes it, and not longer than a line."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 4]} ..."

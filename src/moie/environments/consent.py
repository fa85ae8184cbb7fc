"""Consent to code that a file names.

To make the task "my_module:MyEnv-v0" is to import `my_module`, which can do anything. Whoever types
that name has agreed to it; whoever opens a policy file or a run of somebody else has not.
"""

import os
import reprlib
import shlex
import sys

from moie.errors import InputError

FAMILIAR = frozenset(
    ("moie", "gymnasium", "pybullet_envs_gymnasium", "pybullet", "Box2D", "pygame", "mujoco")
)
"""Packages of moie itself and of its extras."""


def unfamiliar_module(task: str) -> str | None:
    """The module that making the task imports, unless moie or one of its extras brings it."""
    module = task.rpartition(":")[0]
    parts = module.split(".")
    return None if parts[0] in FAMILIAR and "__main__" not in parts else module or None


def check_consent(task: str, trust_task: bool, path: str | os.PathLike[str]) -> None:
    """InputError unless the task that the file or run at `path` names may be made."""
    if task.lstrip().startswith("{"):  # would be taken for a specification, with code to call
        raise InputError(f"the task of {path} is {reprlib.repr(task)}, expected an environment id")
    module = unfamiliar_module(task)
    if module is not None and module not in sys.modules and not trust_task:
        raise InputError(
            f"{path} names the task {task!r}: to make it is to import the module {module!r}, which "
            "may execute anything; if you trust both, repeat this with --trust-task "
            "(trust_task=True in Python)"
        )


def resume_command(path: str | os.PathLike[str], task: str) -> str:
    """The command that continues a run."""
    trust = " --trust-task" if unfamiliar_module(task) else ""
    return f"moie resume {shlex.quote(str(path))}{trust}"

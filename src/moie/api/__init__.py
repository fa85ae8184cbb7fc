"""The Python interface. Imports stay inside the functions: acting with a policy needs no jax."""

from moie.api.policies import evaluate, explain, find_task, load, prune, show
from moie.api.run import Run
from moie.api.training import default_out, resume, task_preset, tasks, train, train_config

__all__ = [
    "Run",
    "default_out",
    "evaluate",
    "explain",
    "find_task",
    "load",
    "prune",
    "resume",
    "show",
    "task_preset",
    "tasks",
    "train",
    "train_config",
]

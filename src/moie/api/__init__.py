"""The Python interface. Imports stay inside the functions: acting with a policy needs no jax."""

from moie.api.policies import evaluate, explain, find_task, load, prune, show
from moie.api.run import Run
from moie.api.training import default_out, resume, task_preset, tasks, train, train_config

__all__ = ["Run", "evaluate", "explain", "load", "prune", "resume", "show", "tasks", "train"]
__all__ += ["default_out", "find_task", "task_preset", "train_config"]  # for the command line

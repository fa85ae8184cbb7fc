"""The Python interface. Imports stay inside the functions: acting with a policy needs no jax."""

from moie.api.policies import evaluate, explain, find_task, load, prune, show
from moie.api.run import Run
from moie.api.swarming import swarm, swarm_config, swarm_preset
from moie.api.training import default_out, resume, task_preset, tasks, train, train_config

__all__ = ["Run", "evaluate", "explain", "load", "prune", "resume", "show", "swarm", "tasks"]
__all__ += ["train"]
__all__ += ["default_out", "find_task", "swarm_config", "swarm_preset", "task_preset"]
__all__ += ["train_config"]

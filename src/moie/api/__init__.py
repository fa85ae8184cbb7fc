"""The Python interface. Imports stay inside the functions: acting with a policy needs no jax."""

from moie.api.exporting import check_export, export
from moie.api.policies import edit, evaluate, explain, find_task, load, prune, show
from moie.api.run import Run
from moie.api.sheet import datasheet
from moie.api.swarming import swarm, swarm_config, swarm_preset
from moie.api.training import default_out, resume, task_preset, tasks, train, train_config
from moie.api.workshop import studio

__all__ = [
    "Run",
    "datasheet",
    "edit",
    "evaluate",
    "explain",
    "load",
    "prune",
    "resume",
    "show",
    "studio",
    "swarm",
    "tasks",
]
__all__ += ["check_export", "export", "train"]
__all__ += ["default_out", "find_task", "swarm_config", "swarm_preset", "task_preset"]
__all__ += ["train_config"]

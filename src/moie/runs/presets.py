"""Default settings for each task and algorithm: the paper's for its seven tasks, scale-free ones
for all others, and for crisp everywhere."""

import math

from moie.environments import spaces, tasks
from moie.environments.catalogue import TASKS
from moie.errors import require
from moie.learn import registry
from moie.learn.config import LearnerConfig, PolicyConfig
from moie.runs.config import RunConfig, with_settings

SCALED_TEMPERATURE = 2.7
"""Divided by the number of features: squared distances of standardised features grow with it."""

PAPER = {
    "HopperBulletEnv-v0": (1000, 1.0),
    "Walker2DBulletEnv-v0": (1000, 1.0),
    "HalfCheetahBulletEnv-v0": (1000, 0.33),
    "AntBulletEnv-v0": (1000, 0.33),
    "InvertedPendulumBulletEnv-v0": (500, 1.0),
    "BipedalWalker-v3": (500, 1.0),
    "Pendulum-v1": (500, 1.0),
}
"""Iterations and temperature of the paper's tasks."""


def preset(task: str, n_features: int, algorithm: str = registry.DEFAULT) -> RunConfig:
    """The default settings of a task; `n_features` may be 0 for the paper's tasks."""
    known = {one.id: len(one.features) for one in TASKS}
    iterations, temperature = PAPER.get(task, (1000, 0.0))
    who = registry.algorithm(algorithm)
    is_scaled = task not in PAPER or who.is_scaled
    if is_scaled:
        temperature = SCALED_TEMPERATURE / known.get(task, n_features)
    learner = LearnerConfig(algorithm=algorithm, policy=PolicyConfig(temperature=temperature))
    config = RunConfig(
        task,
        iterations=iterations,
        actions="clipped" if is_scaled else "raw",
        standardise=is_scaled,
        learner=learner,
    )
    return with_settings(config, dict(who.preset))


def full_id(name: str) -> str:
    """The id of the paper's task that has this short name; any other name as it is."""
    return next((task.id for task in TASKS if task.short == name), name)


def task_preset(
    task: str, algorithm: str = registry.DEFAULT, *, installed: bool = True
) -> RunConfig:
    """The same for a short name or an id; InputError if it is not usable. With `installed` False,
    a task of the paper is accepted whether its simulator is installed or not."""
    require(isinstance(task, str), "task", task, "a Gymnasium id or a short name")
    task = full_id(task)
    if installed or task not in PAPER:
        task = tasks.resolve(task)
    if task in PAPER:
        return preset(task, 0, algorithm)
    with tasks.opened(task) as env:
        spaces.check(env)
        return preset(task, math.prod(env.observation_space.shape or ()), algorithm)

"""Settings for each task: the paper's for its seven tasks, scale-free ones for all others."""

import math

from moie.learn.config import LearnerConfig, PolicyConfig, require
from moie.rollout import tasks
from moie.runs.config import RunConfig

LOCOMOTION_ITERATIONS = 1000
SMALL_ITERATIONS = 500
SCALED_TEMPERATURE = 2.7
"""Divided by the number of features: squared distances of standardised features grow with it."""

# id -> (iterations, temperature)
PAPER = {
    "HopperBulletEnv-v0": (LOCOMOTION_ITERATIONS, 1.0),
    "Walker2DBulletEnv-v0": (LOCOMOTION_ITERATIONS, 1.0),
    "HalfCheetahBulletEnv-v0": (LOCOMOTION_ITERATIONS, 0.33),
    "AntBulletEnv-v0": (LOCOMOTION_ITERATIONS, 0.33),
    "InvertedPendulumBulletEnv-v0": (SMALL_ITERATIONS, 1.0),
    "BipedalWalker-v3": (SMALL_ITERATIONS, 1.0),
    "Pendulum-v1": (SMALL_ITERATIONS, 1.0),
}


def preset(task: str, n_features: int) -> RunConfig:
    """The settings that a task gets where the user gives none."""
    if task in PAPER:
        iterations, temperature = PAPER[task]
        learner = LearnerConfig(policy=PolicyConfig(temperature=temperature))
        return RunConfig(task, iterations=iterations, standardise=False, learner=learner)
    learner = LearnerConfig(policy=PolicyConfig(temperature=SCALED_TEMPERATURE / n_features))
    return RunConfig(task, learner=learner)


def task_preset(task: str) -> RunConfig:
    """The same for a short name or an id; InputError if it is not usable."""
    require(isinstance(task, str), "task", task, "a Gymnasium id or a short name")
    task = tasks.resolve(task)
    if task in PAPER:
        return preset(task, 0)
    env = tasks.make(task)
    try:
        tasks.check_spaces(env)
        return preset(task, math.prod(env.observation_space.shape or ()))
    finally:
        env.close()

"""moie: continuous-control policies that a person can read (Mixture Of Interpretable Experts).

    run = moie.train("HopperBulletEnv-v0", experts=10, steps=100_000, seed=0, out="runs/hopper")
    policy = moie.load("runs/hopper")
    action, _ = policy.predict(observation, deterministic=True)
    moie.study("smoke").compare()

Importing this, loading a policy and acting with it need no jax.
"""

from moie.api import Run, load, train
from moie.errors import EnvironmentFault, InputError, Stopped
from moie.studies.interface import StudyRuns, compare, study, study_status

__version__ = "0.1.0"
__all__ = [
    "EnvironmentFault",
    "InputError",
    "Run",
    "Stopped",
    "StudyRuns",
    "compare",
    "load",
    "study",
    "study_status",
    "train",
]

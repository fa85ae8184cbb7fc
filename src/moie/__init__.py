"""moie: continuous-control policies that a person can read (Mixture Of Interpretable Experts).

    run = moie.train("HopperBulletEnv-v0", experts=10, steps=100_000, seed=0, out="runs/hopper")
    policy = moie.load("runs/hopper")
    action, _ = policy.predict(observation, deterministic=True)
    moie.study("smoke").compare()

Importing this, loading a policy and acting with it need no jax. Names are looked up when they are
first used: the command line must be able to take Ctrl-C before anything else is imported, `typing`
included.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
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
_HOMES = {
    "moie.api": ("Run", "load", "train"),
    "moie.errors": ("EnvironmentFault", "InputError", "Stopped"),
    "moie.studies.interface": ("StudyRuns", "compare", "study", "study_status"),
}


def __getattr__(name: str) -> object:
    import importlib

    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(home), name)
            return value
    raise AttributeError(f"module 'moie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]

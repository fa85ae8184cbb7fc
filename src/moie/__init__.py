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
    from moie import callbacks, zoo
    from moie.api import (
        Run,
        check_export,
        datasheet,
        edit,
        evaluate,
        explain,
        export,
        load,
        prune,
        resume,
        show,
        studio,
        swarm,
        tasks,
        train,
    )
    from moie.errors import (
        ClusterError,
        DivergenceError,
        EnvironmentFault,
        FileError,
        InputError,
        MoieError,
        Stopped,
    )
    from moie.policy.base import Explanation, Policy
    from moie.policy.mixture import Mixture as MixturePolicy
    from moie.runs.machinery import Callback
    from moie.runs.truth import Measured
    from moie.studies.declaration import Grid, Study
    from moie.studies.interface import StudyRuns, compare, study, study_status
    from moie.surgery.edit import Edited

__version__ = "0.1.0"
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
__all__ += ["Callback", "Explanation", "Measured", "MixturePolicy", "Policy", "callbacks"]
__all__ += ["Edited", "zoo"]
__all__ += ["Grid", "Study", "StudyRuns", "compare", "study", "study_status"]
__all__ += ["ClusterError", "DivergenceError", "EnvironmentFault", "FileError", "InputError"]
__all__ += ["MoieError", "Stopped"]
_HOMES = {
    "api": "Run check_export datasheet edit evaluate explain export load prune resume show studio "
    "swarm tasks train",
    "errors": "ClusterError DivergenceError EnvironmentFault FileError InputError MoieError "
    "Stopped",
    "policy.base": "Explanation Policy",
    "policy.mixture": "MixturePolicy",
    "runs.machinery": "Callback",
    "runs.truth": "Measured",
    "studies.declaration": "Grid Study",
    "studies.interface": "StudyRuns compare study study_status",
    "surgery.edit": "Edited",
}
_OTHERWISE_CALLED = {"MixturePolicy": "Mixture"}
"""Names here, and what they are called at home: the learner has a `MixturePolicy` of its own."""


def __getattr__(name: str) -> object:
    import importlib

    if name in ("callbacks", "zoo"):
        return importlib.import_module(f"moie.{name}")
    for home, names in _HOMES.items():
        if name in names.split():
            module = importlib.import_module(f"moie.{home}")
            value = globals()[name] = getattr(module, _OTHERWISE_CALLED.get(name, name))
            return value
    raise AttributeError(f"module 'moie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]

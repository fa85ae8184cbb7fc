"""Settings of a run, and how they are read from and written to JSON and keyword arguments."""

import contextlib
import copy
import dataclasses
import difflib
import functools
import math
import numbers
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from tyro.conf import Suppress

from moie.environments.catalogue import check_names
from moie.errors import InputError, shortened
from moie.learn import registry
from moie.learn.config import LearnerConfig, require

ONLY_SHOWN = ("feature_names", "action_names")
"""Settings that change nothing but what a reader sees."""

Actions = Literal["raw", "clipped"]
"""What the simulator gets while a policy learns."""

LARGEST = 2**31
"""Limit of iterations and of steps in a batch: their product fits into 63 bits."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Episodes that only measure; they do not change what is learned."""

    evaluation_every: int = 10
    """Evaluate the policy every so many iterations: 1 is the paper's protocol, 0 evaluates only the
    final policy."""
    evaluation_episodes: int = 5
    """Episodes with sampled actions in an evaluation, and as many with mean actions."""

    def __post_init__(self) -> None:
        require(self.evaluation_every >= 0, "evaluation_every", self.evaluation_every, "0 or more")
        episodes = self.evaluation_episodes
        require(episodes >= 1, "evaluation_episodes", episodes, "at least 1")


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run learns. The number of workers does not."""

    task: Annotated[str, Suppress]  # the command line has it as its first word
    seed: int = 0
    """Random seed of the whole run."""
    iterations: int = 1000
    """Batches to learn from."""
    schedule: int = 0
    """Iterations over which crisp's schedules run; 0 stands for --iterations."""
    batch_steps: int = 3008
    """Environment steps in a batch."""
    environments: Annotated[int, Suppress] = 0  # `moie swarm` has its own option
    """Environments that are stepped side by side on an accelerator; 0: a run of `moie train`."""
    actions: Actions = "clipped"
    """What the simulator gets of an action outside the action range. raw: the action itself, for
    which the simulator may charge; clipped: the nearest action in the range. Raw on the paper's
    tasks, except with crisp."""
    standardise: bool = True
    """Scale features by their mean and standard deviation in the first batches, and actions by
    their range. Off by default on the paper's tasks; crisp scales actions in any case."""
    scaling_batches: int = 3
    """Number of first batches from which the scale of the features is estimated."""
    scaling_hold: int = 1
    """Steps for which each random action is held in the batches that only estimate the scale."""
    feature_names: tuple[str, ...] = ()
    """A name for each number of an observation, for whoever reads the policy; default: the
    environment's own names."""
    action_names: tuple[str, ...] = ()
    """A name for each number of an action; default: the environment's own names."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "zero or more, below 2**63")
        require(self.iterations >= 1, "iterations", self.iterations, "at least 1")
        require(self.batch_steps >= 2, "batch_steps", self.batch_steps, "at least 2")
        for name in ("iterations", "batch_steps", "scaling_batches"):
            require(getattr(self, name) < LARGEST, name, getattr(self, name), "less than 2**31")
        good = self.environments >= 0
        require(good, "environments", self.environments, "zero or more")
        require(self.schedule >= 0, "schedule", self.schedule, "zero or more")
        kinds = get_args(Actions)
        require(self.actions in kinds, "actions", self.actions, f"one of {', '.join(kinds)}")
        require(self.scaling_batches >= 1, "scaling_batches", self.scaling_batches, "at least 1")
        require(self.scaling_hold >= 1, "scaling_hold", self.scaling_hold, "at least 1")
        check_names("feature_names", self.feature_names)
        check_names("action_names", self.action_names)
        if registry.algorithm(self.learner.algorithm).has_visited_prototypes:
            experts, most = self.learner.policy.experts, f"batch_steps ({self.batch_steps})"
            expected = f"no more than {most}: every prototype is a visited state"
            require(experts <= self.batch_steps, "experts", experts, expected)

    def progress(self, iteration: int) -> float:
        """Share of crisp's schedules that is over before an iteration: 0 to 1."""
        return min(iteration / (self.schedule or self.iterations), 1.0)

    @property
    def scales_actions(self) -> bool:
        """Whether the learner's actions are in halves of the action range, around its middle."""
        return self.standardise or registry.algorithm(self.learner.algorithm).is_scaled


def with_steps(config: RunConfig, steps: Any) -> RunConfig:
    """The configuration with as many whole batches as make up these steps; unchanged for None."""
    if steps is None:
        return config
    return with_settings(config, {"iterations": -(-whole("steps", steps) // config.batch_steps)})


def with_schedule(config: RunConfig) -> RunConfig:
    """The configuration with which a run starts: crisp's schedules keep their length when the run
    is continued later, or goes less far for now."""
    if "schedule" in unused_settings(config.learner.algorithm) or config.schedule:
        return config
    return dataclasses.replace(config, schedule=config.iterations)


@functools.cache
def settings_of(kind: type, prefix: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Name of every single setting and its path in the nested configuration."""
    paths: dict[str, tuple[str, ...]] = {}
    for item in dataclasses.fields(kind):
        path = (*prefix, item.name)
        if dataclasses.is_dataclass(item.type):
            paths |= settings_of(item.type, path)  # type: ignore[arg-type]
        else:
            paths[item.name] = path
    return paths


def unknown_setting(name: str, known: list[str]) -> InputError:
    """The error for a name that is not a setting."""
    near = difflib.get_close_matches(name[:100], known, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"settings are {', '.join(known)}"
    return InputError(f"unknown setting {shortened(name)}; {hint}")


def with_settings(config: RunConfig, settings: dict[str, Any]) -> RunConfig:
    """The configuration with some settings replaced, by name; all are checked together."""
    known = settings_of(RunConfig)
    for name in settings:
        if name not in known:
            raise unknown_setting(name, list(known))

    def rebuilt(part: Any) -> Any:
        changes = {}
        for item in dataclasses.fields(part):
            value = getattr(part, item.name)
            if dataclasses.is_dataclass(value):
                changes[item.name] = rebuilt(value)
            elif item.name in settings:
                changes[item.name] = _as_type_of(value, settings[item.name], item.name)
        return dataclasses.replace(part, **changes)

    return rebuilt(config)


def _as_type_of(default: Any, value: Any, name: str) -> Any:
    """The value as the default's type. JSON knows no tuples, a user may write 1 for 1.0 or take a
    number from NumPy; anything else must fit."""
    if isinstance(default, tuple) and isinstance(value, list | tuple):
        like = default[0] if default else ""  # no names are given by default
        return tuple(_as_type_of(like, one, name) for one in value)
    if not isinstance(value, bool) and not isinstance(default, bool):
        if isinstance(default, int) and is_whole(value):
            require(abs(int(value)) <= 2**63, name, value, "at most 2**63")
            return int(value)
        if isinstance(default, float) and isinstance(value, numbers.Real):
            require(_is_finite(value), name, value, "a finite number")
            return float(value)
    require(type(value) is type(default), name, value, f"a value of type {type(default).__name__}")
    return value


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of any type: 1e5 is one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Integral) or (_is_finite(value) and float(value).is_integer())


def whole(name: str, value: Any, least: int = 1) -> int:
    """A number that Python code or the command line gave: 100000, 1e5, "2" or "1e5"; InputError
    unless it is whole and large enough."""
    expected = f"at least {least}" if least else "zero or more"
    number = _number(value) if isinstance(value, str) else value
    require(is_whole(number), name, value, f"a whole number, {expected}")
    require(number >= least, name, number, expected)
    return int(number)


def _number(text: str) -> Any:
    """The number that a text stands for, or the text itself."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _is_finite(value: numbers.Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is too large
        return False


def to_json(config: RunConfig) -> dict[str, Any]:
    """Plain nested dictionaries."""
    return dataclasses.asdict(config)


@functools.cache
def unused_settings(algorithm: str) -> frozenset[str]:
    """Names of the settings that change nothing about an algorithm."""
    unused = registry.OPTIONAL - registry.algorithm(algorithm).uses
    return frozenset(name for name, path in settings_of(RunConfig).items() if unused & {*path})


def with_seed(config: RunConfig, seed: int) -> RunConfig:
    """The same run with another seed. The rest is not checked again: studies have thousands."""
    require(0 <= seed < 2**63, "seed", seed, "zero or more, below 2**63")
    other = copy.copy(config)
    object.__setattr__(other, "seed", seed)
    return other


def differences(old: RunConfig, new: RunConfig) -> list[tuple[str, Any, Any]]:
    """Name and both values of each setting that differs and is used, except iterations."""
    before, after = flat(to_json(old)), flat(to_json(new))
    ignored = {"iterations", *ONLY_SHOWN}
    if old.learner.algorithm == new.learner.algorithm:
        ignored |= unused_settings(old.learner.algorithm)
    names = [name for name in before if name not in ignored and before[name] != after[name]]
    return [(name, before[name], after[name]) for name in names]


def flat(content: dict[str, Any]) -> dict[str, Any]:
    """Every single setting by its name, from nested dictionaries."""
    settings: dict[str, Any] = {}
    for name, value in content.items():
        settings |= flat(value) if isinstance(value, dict) else {name: value}
    return settings


def from_json(content: Any) -> RunConfig:
    """The configuration that `to_json` wrote."""
    task = content.get("task") if isinstance(content, dict) else None
    if not isinstance(task, str):
        raise InputError("the run's configuration names no task")
    require(0 < len(task) < 1000 and task.isprintable(), "task", task, "a Gymnasium id")
    return with_settings(RunConfig(task), flat(content))

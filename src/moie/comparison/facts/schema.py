"""The facts of a comparison: `facts.json`, field by field.

Page, figures and tables are made of these facts alone. A number that is not finite is None.
"""

from typing import Any, TypedDict

Number = float | None


class Estimate(TypedDict):
    """A mean over runs with Student's interval."""

    mean: float
    low: Number  # None with a single run, like `high` and `half`
    high: Number
    half: Number
    runs: list[Number]  # each run, in the order of the seeds


class Attention(Estimate):
    """An estimate over the runs that recorded attention."""

    seeds: list[int]


class Final(TypedDict):
    """Mean of the evaluations in the last part of the compared steps; None where a run has none."""

    return_sampled: Estimate
    return_mean: Estimate | None
    distance_sampled: Estimate | None
    distance_mean: Estimate | None
    attention: Attention | None


class Curve(TypedDict):
    """Mean and interval over runs, at the steps that all of them have."""

    steps: list[int]
    mean: list[Number]
    low: list[Number]
    high: list[Number]


class Result(TypedDict):
    """The result of one learner on one task."""

    task: str
    learner: str
    parameters: int | None
    n: int  # number of runs
    seeds: list[int]
    runs: list[str]
    final: Final
    curve: Curve
    distance: Curve | None
    settings: dict[str, list[Any]]
    """Settings that the learner uses, each with all values that runs have."""
    is_front: bool
    """No other result of the task is better with as few parameters, or as good with fewer."""
    is_attention_front: bool  # the same for attention


class Scale(TypedDict):
    """The returns that count as zero and one on a task."""

    untrained: float
    best: float
    best_learners: list[str]


class Task(TypedDict):
    """One of the compared tasks."""

    task: str
    budget: int  # steps at which its learners are compared
    planned: int | None  # steps that the study asks for
    n_runs: int
    has_distance: bool
    has_attention: bool
    scale: Scale | None


class Learner(TypedDict):
    """An algorithm, its number of experts, and the settings that tell it from others."""

    learner: str
    algorithm: str
    experts: int | None
    differing: dict[str, Any]


class Interval(TypedDict):
    """A score over all tasks with its bootstrap interval."""

    value: float
    low: Number
    high: Number


class Profile(TypedDict):
    """The share of runs above each threshold."""

    value: list[float]
    low: list[Number]
    high: list[Number]


class Aggregate(TypedDict):
    """Normalised scores over all tasks; a place in the lists for each of `learners`."""

    tasks: list[str]
    learners: list[str]
    runs: list[list[int]]
    samples: int
    iqm: list[Interval]
    mean: list[Interval]
    thresholds: list[float]
    profiles: list[Profile]
    improvement: list[list[Interval | None]]
    """Probability that the first learner's run beats the second's; None for the same learner."""
    coverage: dict[str, float] | None
    """How often intervals of so few runs hold the truth, simulated: `held`, with the `fewest` runs
    on a number of `tasks`."""


class Facts(TypedDict):
    """All facts of a comparison."""

    format: str
    version: int
    name: str
    description: str
    steps_asked: int | None
    level: float  # level of all intervals
    last_part: float  # share of the compared steps whose evaluations make up a final return
    attention_tolerance: float
    n_runs: int
    n_found: int
    n_planned: int | None
    n_tasks: int
    n_learners: int
    fewest_seeds: int
    most_seeds: int
    tasks: list[Task]
    learners: list[Learner]
    results: list[Result]
    aggregate: Aggregate | None
    problems: list[str]  # sentences on what restricts the comparison
    notices: list[str]  # sentences on what else a reader should know
    versions: list[dict[str, Any]]  # packages, and the number of runs that were made with them
    hosts: list[dict[str, Any]]  # kinds of machines, and the number of runs on each

"""The facts of an explanation: `facts.json`.

Report, player and figures are made of these facts alone. In the file, null stands for a number that
is not finite. Parts without a type of their own are spelled out where they are made, in
`behaviour.py` and `pictures.py`.
"""

from typing import Any, Literal, NotRequired, TypedDict

from moie.explanation.sequential import Verdict
from moie.policy.cycle import Cycle

Kind = Literal["sampled", "mean"]  # kinds of actions
Return = TypedDict("Return", {"return": float})  # a return: the class syntax has no such field


class Place(TypedDict):
    """A visited state, and its distance to the nearest prototype or to a given one."""

    episode: int
    step: int
    distance: float


class Replay(TypedDict):
    """How well repeating an episode led back to a state."""

    difference: float | None  # largest difference of a feature; None if it did not get there
    matches: bool
    problem: str | None


class Expert(TypedDict):
    """One expert, and its use over the visited states."""

    expert: int
    label: str  # what a person calls it; empty if nobody named it
    by_hand: list[str]  # parts that a person set: "added", "prototype", "action", "weight"
    weight: float
    prototype: list[float]
    action: list[float]
    share: float  # mean membership, over the states that the policy file holds
    lead: float  # share of these states in which it leads: no part's membership is larger
    can_lead: bool  # whether it leads anywhere at all
    reach: float | None  # the distance, in radii, at which it is as strong as the default
    most: float  # the largest membership that it can have anywhere
    peak: float  # largest membership
    stretch: float  # mean number of steps for which it leads without a break
    phase: float | None  # the phase of the cycle around which it is active
    concentration: float | None  # one if it is active at a single phase, zero if at all alike
    distance: float  # from the prototype to the nearest visited state
    nearest: Place
    replay: Replay | None
    distance_in_training: float
    origin: dict[str, int] | None
    """Iteration, episode, step and seed of its visit in training; None if it was never visited."""


class Moment(Place):
    """A visited state with a large default share, and the strongest expert in it; `distance`: from
    its prototype, in radii."""

    default: float
    strongest: int
    reach: float | None  # of this expert
    differences: list[tuple[str, float]]  # the features that differ most from its prototype


class Default(TypedDict):
    """How much is left to the default action, over time."""

    share: float
    lead: float  # share of the states that the policy file holds in which it leads
    half: float  # share of the states in which it has the threshold or more
    threshold: float
    curve_step: int  # steps from one point of the curve to the next
    curve: list[float]
    curve_episodes: list[int]  # episodes still running at each point
    moments: list[Moment]


class Feature(TypedDict):
    """The range of a feature over the visited states."""

    name: str
    low: float
    q05: float
    median: float
    q95: float
    high: float


class Shown(Return):
    """The episode of median return, step by step."""

    episode: int
    seed: int
    length: int
    rewards: list[float]
    actions: list[list[float]]
    memberships: list[list[float]]
    leader: list[int]  # the number of experts stands for the default
    strongest: list[int]  # of the experts
    distance: list[float]  # from the prototype of the strongest expert, in radii


class Losses(Return):
    """Return of a smaller policy, and its loss against the whole one on the same seeds."""

    error: float
    episodes: int  # episodes of each of the two
    loss: float
    loss_error: float
    allowed: float
    verdict: Verdict


Answer = Literal["whole", "proved", "seen", "enough", "not enough", "undecided", "not tried"]
"""What is known of a policy of the pruning curve. Without simulation: it is the whole one; or it
acts alike, which is "proved" for every state, or was "seen" in the visited ones. By simulation: it
loses no more than it may, it loses more, or the limit of episodes came before an answer. "not
tried": the search ended at a larger policy."""


class Removal(TypedDict):
    """One expert less; none less for the whole policy. Changes are those of the mean action, by
    this removal and all before, as shares of the action's range."""

    removed: int | None
    heir: int | None  # the expert that takes over its weight
    change: float  # root mean square over visited states
    largest: float  # the largest change of a component in any visited state
    bound: float  # what no component changes by more than, in any state at all
    kept: list[int]


class Removed(Removal):
    """A policy of the pruning curve."""

    n_experts: int
    answer: Answer
    sampled: Losses | None  # None where nothing was simulated
    mean: Losses | None


class Pruning(TypedDict):
    """How many experts the policy needs."""

    loss: float  # share of the return that may be lost
    margin: float  # the share that was tested: `loss`, or the smallest that can be
    chance: float  # largest chance of a wrong verdict
    alike: float  # largest change, as a share of the action's range, of policies that act alike
    tolerance: float  # what it must be proved to stay below, where it was only seen to be small
    n_states: int  # visited states that changes are from
    episodes: int  # episodes of each kind that a comparison begins with
    most_episodes: int  # and has at most
    simulated: int  # all episodes of comparisons, of the whole policy and of smaller ones
    curve: list[Removed]
    n_experts: int  # experts of the chosen policy, as are `kept` and `n_parameters`
    kept: list[int]
    n_parameters: int


class Behaviour(TypedDict):
    """The policy and its behaviour in the episodes."""

    format: str
    version: int
    policy: dict[str, Any]  # most fields of `policy.mixture.Mixture`
    evaluation: dict[str, Any]  # the episodes whose states are the visited states
    truth: dict[str, Any]  # how literally the program may be taken, as in `runs.truth.Truth`
    raw: NotRequired[dict[str, Any]]
    """Returns when the simulator gets actions outside their range as they are, on the same seeds;
    where this is known to matter, as in `runs.truth.Raw`."""
    experts: list[Expert]  # in order of use
    overlap: list[list[float]]
    """(K, K): one for experts that are always active together, zero for never."""
    default: Default
    cycle: Cycle | None
    features: list[Feature]
    closeness: list[dict[str, Any]] | None
    """The feature that counts the most first; None where no metric was learned."""
    spacing: float | None  # median distance of a visited state to the nearest other
    shown: Shown
    pruning: NotRequired[Pruning]


class Record(TypedDict):
    """Facts from outside the policy file."""

    versions: dict[str, str]
    learning: NotRequired[list[dict[str, Any]]]
    """Rows of metrics.jsonl; `learned`: the steps that the evaluated policy had learned from."""
    run: NotRequired[dict[str, Any]]
    """Settings of the run, and the versions that it was started with."""


class Facts(Behaviour, Record):
    """Everything."""

    digest: str  # SHA-256 of the policy file
    scenes: dict[str, Any]  # how well pictures and video agree with what they show

"""What `moie evaluate` measures: returns, and how literally a mixture's program may be taken.

`policy.truth` defines the figures; here they meet episodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from moie.environments.catalogue import clipping_matters
from moie.policy import truth
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode
from moie.runs.evaluation import Evaluation, Evaluator, Interval, paired_difference, summary

Reading = Literal["literal", "pairs", "guide", "blend", "undecided", "unknown"]
ENOUGH, HALF = 0.9, 0.5
"""Share of the gain that has to be kept where a program is taken literally, and as a guide."""
MOSTLY = 0.8
"""Share of the states in which the leading parts then have to say what the policy does; HALF of
them for a guide."""
SAID: dict[Reading, str] = {
    "literal": "may be taken literally",
    "pairs": "may be taken literally, two parts at a time",
    "guide": "may be taken as a guide only",
    "blend": "must not be taken literally: many parts act together",
    "undecided": "cannot be judged from so few episodes",
    "unknown": "cannot be judged: it earns no more than its default action",
}
"""What each reading means for the program."""


@dataclass(frozen=True)
class Truth:
    """How far a reader may rely on the leading parts: mean actions, on the same seeds."""

    in_range: float
    """Share of experts whose action lies in the action space."""
    coverage: float
    """One minus the default's mean share, over the states of the whole policy's episodes."""
    attention: float
    """Number of parts that give the policy's action, mean over the same states."""
    largest_action: float
    """Farthest that an expert's action lies from the middle, in halves of the action range."""
    near_alone: Interval
    """Share of the states in which the leading part says what the policy does: `policy.truth`."""
    near_pair: Interval
    """The same for the blend of the leading two."""
    wrong_side: Interval
    """Share of the components that the leading part has on the wrong side."""
    whole: Evaluation
    """The policy as it is."""
    alone: Evaluation
    """The leading part alone, at each step."""
    pair: Evaluation
    """The blend of the leading two."""
    default: Evaluation
    """The default action everywhere: what the policy earns without any expert."""

    def ratio(self, some: Evaluation) -> float | None:
        """Its return as a share of the whole policy's; None unless both are positive."""
        if min(some.mean, self.whole.mean) <= 0:
            return None
        return some.mean / self.whole.mean

    def kept(self, some: Evaluation) -> float | None:
        """Its share of what the whole policy gains over the default action; None where that gain is
        not sure."""
        if not self.gains:
            return None
        return (some.mean - self.default.mean) / (self.whole.mean - self.default.mean)

    @property
    def gains(self) -> bool | None:
        """Whether the whole policy earns more than its default action; None where that is open."""
        gains = np.subtract(self.whole.returns, self.default.returns)
        if len(gains) < 2:
            return None
        interval = Interval.of(gains.tolist())
        return True if interval.low > 0 else False if interval.high <= 0 else None

    def keeps(self, some: Evaluation, share: float) -> bool | None:
        """Whether it keeps at least this share of the gain, on the same seeds; None where the
        episodes leave that open."""
        parts = (some.returns, self.whole.returns, self.default.returns)
        acting, whole, default = (np.asarray(returns) for returns in parts)
        return Interval.of((acting - default - share * (whole - default)).tolist()).is_least(0.0)

    @property
    def reading(self) -> Reading:
        """How literally the program may be taken: by what its leading parts say, and by what they
        earn. Not given where the episodes leave it open."""
        if not self.gains:
            return "undecided" if self.gains is None else "unknown"
        levels: tuple[tuple[Reading, Interval, float, Evaluation, float], ...] = (
            ("literal", self.near_alone, MOSTLY, self.alone, ENOUGH),
            ("pairs", self.near_pair, MOSTLY, self.pair, ENOUGH),
            ("guide", self.near_pair, HALF, self.pair, HALF),
        )
        for level, near, often, acting, share in levels:
            answers = (near.is_least(often), self.keeps(acting, share))
            if all(answers):
                return level
            if False not in answers:
                return "undecided"
        return "blend"

    def __str__(self) -> str:
        alone, pair = (_return(part) + self._share(part) for part in (self.alone, self.pair))
        return (
            f"  read literally: in range {self.in_range:.0%}, coverage {self.coverage:.0%}, "
            f"attention {self.attention:.1f} parts at a time\n"
            f"  every command within {truth.NEAR:.0%} of the policy's: leading part in "
            f"{_share(self.near_alone)} of the\n"
            f"    states, leading pair in {_share(self.near_pair)}\n"
            f"  commands of the leading part on the wrong side: {_share(self.wrong_side)}\n"
            f"  leading part alone: {alone}\n"
            f"  leading pair: {pair}\n"
            f"  default action only: {_return(self.default)}\n"
            f"  the program {SAID[self.reading]}"
        )

    def _share(self, some: Evaluation) -> str:
        ratio, kept = self.ratio(some), self.kept(some)
        said = [] if ratio is None else [f"{ratio:.0%} of the whole"]
        said += [] if kept is None else [f"{kept:.0%} of its gain over the default action"]
        return f" ({', '.join(said)})" if said else ""


def _share(of: Interval) -> str:
    """A share, with its interval where there is one."""
    ends = f" ({max(of.low, 0):.0%} to {min(of.high, 1):.0%})" if np.isfinite(of.low) else ""
    return f"{of.mean:.0%}{ends}"


def fidelity(policy: Mixture, episodes: Sequence[Episode]) -> dict[str, Interval]:
    """How often the leading parts say what the policy does, episode by episode."""
    each = [episode.observations[:-1] for episode in episodes]
    sides = [truth.wrong_side(policy, states) for states in each]
    shares = [wrong.sum() / counts.sum() for wrong, counts in sides if counts.sum()]
    return {
        "near_alone": Interval.of([truth.near(policy, states, 1).mean() for states in each]),
        "near_pair": Interval.of([truth.near(policy, states, 2).mean() for states in each]),
        "wrong_side": Interval.of(shares or [0.0]),
    }


def measure_truth(
    policy: Mixture,
    episodes: Sequence[Episode],
    evaluator: Evaluator,
    tell: Callable[[str], None] = lambda text: None,
) -> Truth:
    """Measure the whole policy's episodes with mean actions, and its readings on the same seeds."""
    states = np.concatenate([episode.observations[:-1] for episode in episodes])
    series = episodes[0].job.iteration

    def earned(other: Mixture, name: str) -> Evaluation:
        runs = evaluator.episodes(other, len(episodes), series, kinds=["mean"])
        result = summary("mean", runs["mean"])
        tell(f"{name}: return {result.mean:.1f}")
        return result

    return Truth(
        in_range=truth.in_range(policy),
        coverage=truth.coverage(policy, states),
        attention=truth.attention(policy, states),
        largest_action=truth.largest_action(policy),
        **fidelity(policy, episodes),
        whole=summary("mean", episodes),
        alone=earned(truth.led(policy, 1), "leading part alone"),
        pair=earned(truth.led(policy, 2), "leading pair"),
        default=earned(truth.default_only(policy), "default action alone"),
    )


@dataclass(frozen=True)
class Raw:
    """Episodes whose actions the simulator got as they are, even outside their range, beside those
    with clipped actions on the same seeds."""

    learned_raw: bool
    """Whether the policy learned that way."""
    sampled: Evaluation
    mean: Evaluation
    clipped_sampled: Evaluation
    clipped_mean: Evaluation

    @property
    def differs(self) -> bool:
        """Whether a return differs from that with clipped actions by more than the error of the
        comparison, and by more than a hundredth."""
        pairs = ((self.clipped_sampled, self.sampled), (self.clipped_mean, self.mean))
        for clipped, raw in pairs:
            difference, error = paired_difference(clipped.returns, raw.returns)
            little = 0.01 * max(abs(clipped.mean), abs(raw.mean))
            if abs(difference) > max(little, 0.0 if math.isnan(error) else error):
                return True
        return False

    def __str__(self) -> str:
        how = "raw" if self.learned_raw else "clipped"
        if not self.differs:
            return f"  learned with {how} actions; whether they are clipped makes no difference"
        return (
            "  these actions are clipped to their range, as wherever the policy is used; it\n"
            f"  learned with {how} ones; raw ones, which the simulator charges for, earn\n"
            f"    sampled: {_return(self.sampled)}\n"
            f"    mean:    {_return(self.mean)}"
        )


def measure_raw(
    policy: Policy, clipped: Mapping[str, Sequence[Episode]], evaluator: Evaluator
) -> Raw | None:
    """Run the episodes of an evaluation again, with raw actions. None where the task is known to
    clip actions itself, and where the policy has not learned with raw ones and nothing is known
    about the task: it may not be made for them."""
    actions = policy.trained.get("actions", "clipped")
    if not clipping_matters(policy.task, actions):
        return None
    count, series = len(clipped["mean"]), clipped["mean"][0].job.iteration
    raw = evaluator.episodes(policy, count, series, raw=True)
    runs = [summary(kind, of[kind]) for of in (raw, clipped) for kind in ("sampled", "mean")]
    return Raw(actions == "raw", *runs)


@dataclass(frozen=True)
class Measured:
    """Episodes with both kinds of actions, and for a mixture how literally it may be taken. Printed
    as `moie evaluate` prints it."""

    task: str
    seed: int
    sampled: Evaluation
    mean: Evaluation
    truth: Truth | None
    raw: Raw | None = None
    """The same episodes with actions outside their range given to the simulator as they are; None
    where that is no different, or was never tried."""

    def __str__(self) -> str:
        count = len(self.mean.returns)
        episodes = f"{count} episode{'s' * (count != 1)} of each kind"
        lines = [f"{self.task}: {episodes}, seed {self.seed}"]
        lines += [_line(self.sampled), _line(self.mean)]
        lines += [str(part) for part in (self.raw, self.truth) if part is not None]
        return "\n".join(lines)


def evaluate(
    policy: Policy, episodes: int, seed: int, workers: int, check: Callable[[], None] = lambda: None
) -> Measured:
    """Measure a policy; the same seed gives the same numbers, whatever the number of workers."""
    with Evaluator(policy.task, seed, workers, check=check) as evaluator:
        by_kind = evaluator.episodes(policy, episodes)
        sampled, mean = (summary(kind, by_kind[kind]) for kind in ("sampled", "mean"))
        reading = None
        if isinstance(policy, Mixture):
            reading = measure_truth(policy, by_kind["mean"], evaluator)
        raw = measure_raw(policy, by_kind, evaluator)
    return Measured(policy.task, seed, sampled, mean, reading, raw)


def _line(one: Evaluation) -> str:
    line = f"  {one.kind:<7} actions: {_return(one)}"
    if len(one.returns) > 1:
        line += " (standard error)"
    lengths = f"{min(one.lengths)} to {max(one.lengths)}"
    line += f", length {sum(one.lengths) / len(one.lengths):.0f} ({lengths})"
    if one.distances is not None:
        line += f", distance {sum(one.distances) / len(one.distances):.2f} m"
    return line


def _return(one: Evaluation) -> str:
    """The mean return, with its standard error where there is one."""
    error = "" if math.isnan(one.standard_error) else f" ± {one.standard_error:.1f}"
    return f"return {one.mean:.1f}{error}"

"""What `moie evaluate` measures and says of a policy."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.runs.evaluation import Evaluation, Evaluator, summary
from moie.runs.truth import SAID, Truth, measure_truth


@dataclass(frozen=True)
class Measured:
    """Episodes with both kinds of actions, and for a mixture how literally it may be taken. Printed
    as `moie evaluate` prints it."""

    task: str
    seed: int
    sampled: Evaluation
    mean: Evaluation
    truth: Truth | None

    def __str__(self) -> str:
        count = len(self.mean.returns)
        lines = [f"{self.task}: {count} episodes of each kind, seed {self.seed}"]
        lines += [_line(one) for one in (self.sampled, self.mean)]
        return "\n".join(lines + ([] if self.truth is None else [_as_read(self.truth)]))


def evaluate(
    policy: Policy,
    episodes: int,
    seed: int,
    workers: int,
    worker_timeout: float = 300.0,
    check: Callable[[], None] = lambda: None,
) -> Measured:
    """Both kinds of actions, and for a mixture how literally it may be taken; the same seed gives
    the same numbers, whatever the number of workers."""
    with Evaluator(policy.task, seed, workers, worker_timeout, check) as evaluator:
        found = evaluator.episodes(policy, episodes)
        sampled, mean = (summary(kind, found[kind]) for kind in ("sampled", "mean"))
        truth = None
        if isinstance(policy, Mixture):
            truth = measure_truth(policy, found["mean"], evaluator)
    return Measured(policy.task, seed, sampled, mean, truth)


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
    """With its standard error, where there is one."""
    error = "" if math.isnan(one.standard_error) else f" ± {one.standard_error:.1f}"
    return f"return {one.mean:.1f}{error}"


def _as_read(truth: Truth) -> str:
    """How literally a mixture may be taken."""

    def share(part: Evaluation) -> str:
        ratio, kept = truth.ratio(part), truth.kept(part)
        said = [] if ratio is None else [f"{ratio:.0%} of the whole"]
        said += [] if kept is None else [f"{kept:.0%} of its gain over the default action"]
        return f" ({', '.join(said)})" if said else ""

    alone, pair = (_return(part) + share(part) for part in (truth.alone, truth.pair))
    return (
        f"  read literally: in range {truth.in_range:.0%}, coverage {truth.coverage:.0%}, "
        f"attention {truth.attention:.1f} parts at a time\n"
        f"  leading part alone: {alone}\n"
        f"  leading pair: {pair}\n"
        f"  default action only: {_return(truth.default)}\n"
        f"  the program {SAID[truth.reading]}"
    )

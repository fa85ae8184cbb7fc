"""The price of a change: what a policy earns before and after it, on the same seeds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from moie.policy.mixture import Mixture
from moie.runs.evaluation import Evaluation, Evaluator, paired_difference, summary
from moie.surgery.parts import same_bits


@dataclass(frozen=True)
class Change:
    """Episodes with one kind of actions, before and after, seed by seed."""

    before: Evaluation
    after: Evaluation

    @property
    def difference(self) -> float:
        """Mean return after less that before; negative: the change costs something."""
        return paired_difference(self.before.returns, self.after.returns)[0]

    @property
    def standard_error(self) -> float:
        """The standard error of the difference; NaN for a single episode."""
        return paired_difference(self.before.returns, self.after.returns)[1]

    def __str__(self) -> str:
        error = "" if math.isnan(self.standard_error) else f" ± {self.standard_error:.1f}"
        return (
            f"  {self.before.kind:<7} actions: return {self.before.mean:.1f} before, "
            f"{self.after.mean:.1f} after: {self.difference:+.1f}{error}"
        )


@dataclass(frozen=True)
class Price:
    """What a change costs or earns, by kind of actions. Printed as `moie edit` prints it."""

    task: str
    seed: int
    sampled: Change
    mean: Change

    def __str__(self) -> str:
        count = len(self.mean.before.returns)
        end = "; ± is the standard error of the difference" if count > 1 else ""
        episodes = f"{count} episode{'s' * (count != 1)} of each kind"
        title = f"{self.task}: {episodes} on the same seeds, seed {self.seed}"
        return "\n".join([title + end, str(self.sampled), str(self.mean)])


def acts_alike(one: Mixture, other: Mixture) -> bool:
    """Whether two policies are the same but for labels, records and origins."""
    names = ("prototypes", "actions", "weights", "closeness_scale")
    arrays = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.temperature == other.temperature and all(
        a.shape == b.shape and same_bits(a, b).all() for a, b in arrays
    )


def measure(
    before: Mixture,
    after: Mixture,
    episodes: int,
    seed: int,
    workers: int,
    check: Callable[[], None] = lambda: None,
    done: Callable[[int], None] = lambda count: None,
) -> Price:
    """Run both policies on the same seeds; whatever the number of workers, the same numbers. A
    policy that acts as the other does is not run again. `done` hears how many episodes are."""

    def look() -> None:
        check()
        done(evaluator.n_done)

    evaluator = Evaluator(before.task, seed, workers, check=look)
    with evaluator:
        first = evaluator.episodes(before, episodes)
        second = first if acts_alike(before, after) else evaluator.episodes(after, episodes)
    changes = {
        kind: Change(summary(kind, first[kind]), summary(kind, second[kind])) for kind in first
    }
    return Price(before.task, seed, changes["sampled"], changes["mean"])

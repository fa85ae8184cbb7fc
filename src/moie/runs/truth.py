"""How literally a mixture's program may be taken, measured: what its leading parts earn alone.

`rollout.truth` defines the figures; here they meet episodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from moie.policy import truth
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode
from moie.runs.evaluation import Evaluation, Evaluator, standard_error, summary

Reading = Literal["literal", "pairs", "guide", "no", "unknown"]
ENOUGH, HALF = 0.9, 0.5
"""Share of the gain that makes a reading literal, and that makes it a guide."""
SAID: dict[Reading, str] = {
    "literal": "may be taken literally",
    "pairs": "may be taken literally, two parts at a time",
    "guide": "may be taken as a guide only",
    "no": "must not be taken literally",
    "unknown": "cannot be judged: it earns no more than its default action",
}
"""What may be said of the program."""


@dataclass(frozen=True)
class Truth:
    """How far a reader may rely on the program's leading parts. All returns are of mean actions, on
    the same seeds."""

    in_range: float
    """Share of experts whose action lies in the action space."""
    coverage: float
    """One minus the default's mean share, over the states of the whole policy's episodes."""
    attention: float
    """Parts that it takes to give the policy's action, mean over the same states."""
    largest_action: float
    """Farthest that an expert's action lies from the middle, in halves of the action range."""
    whole: Evaluation
    """Of the policy as it is."""
    alone: Evaluation
    """Of the leading part alone, at each step."""
    pair: Evaluation
    """Of the blend of the leading two."""
    default: Evaluation
    """Of the default action everywhere: what the policy earns without any expert."""

    def ratio(self, some: Evaluation) -> float | None:
        """Its return as a share of the whole policy's; None unless both are positive."""
        if min(some.mean, self.whole.mean) <= 0:
            return None
        return some.mean / self.whole.mean

    def kept(self, some: Evaluation) -> float | None:
        """Its share of what the whole policy gains over the default action; None where that gain is
        no larger than its standard error."""
        gains = np.subtract(self.whole.returns, self.default.returns)
        error = standard_error(gains.tolist())
        gain = float(gains.mean())
        if gain <= (0.0 if np.isnan(error) else error):
            return None
        return (some.mean - self.default.mean) / gain

    @property
    def reading(self) -> Reading:
        """How literally the program may be taken."""
        alone, pair = self.kept(self.alone), self.kept(self.pair)
        if alone is None or pair is None:
            return "unknown"
        if alone >= ENOUGH:
            return "literal"
        if pair >= ENOUGH:
            return "pairs"
        return "guide" if max(alone, pair) >= HALF else "no"


def measure_truth(
    policy: Mixture,
    episodes: Sequence[Episode],
    evaluator: Evaluator,
    tell: Callable[[str], None] = lambda text: None,
) -> Truth:
    """From the whole policy's episodes with mean actions, and as many of each of its readings on
    the same seeds."""
    states = np.concatenate([episode.observations[:-1] for episode in episodes])
    series = episodes[0].job.iteration

    def earned(other: Mixture, name: str) -> Evaluation:
        found = evaluator.episodes(other, len(episodes), series, kinds=["mean"])["mean"]
        result = summary("mean", found)
        tell(f"{name}: return {result.mean:.1f}")
        return result

    return Truth(
        in_range=truth.in_range(policy),
        coverage=truth.coverage(policy, states),
        attention=truth.attention(policy, states),
        largest_action=truth.largest_action(policy),
        whole=summary("mean", episodes),
        alone=earned(truth.led(policy, 1), "leading part alone"),
        pair=earned(truth.led(policy, 2), "leading pair"),
        default=earned(truth.default_only(policy), "default action alone"),
    )

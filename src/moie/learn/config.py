"""Settings of the learner; the defaults are those of the paper's section 6 and its experiments.

A field's docstring is also the command line's help. Values are checked where they are built.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from typing_extensions import Doc

from moie.errors import require
from moie.learn import registry


def setting(default: Any, is_right: Callable[[Any], bool], expected: str) -> Any:
    """A field of `Checked`: its default, and what its value has to be."""
    return field(default=default, metadata={"is_right": is_right, "expected": expected})


class Checked:
    """A dataclass whose settings are checked when it is built."""

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            if item.metadata:
                value = getattr(self, item.name)
                is_right, expected = item.metadata["is_right"], item.metadata["expected"]
                require(is_right(value), item.name, value, expected)


COUNT = (lambda value: value >= 1, "at least 1")
POSITIVE = (lambda value: value > 0, "a positive number")
FINITE = (lambda value: 0 < value < math.inf, "a positive, finite number")
NOT_NEGATIVE = (lambda value: value >= 0, "zero or more")
SHARE = (lambda value: 0 < value <= 1, "a number above 0, at most 1")
FRACTION = (lambda value: 0 < value < 1, "above 0, below 1")
LAYERS = (lambda sizes: min(sizes, default=0) >= 1, "at least one layer, at least 1 unit a layer")

ALGORITHMS = "; ".join(f"{one.name}, {one.about}" for one in registry.SHIPPED)


@dataclass(frozen=True)
class PolicyConfig(Checked):
    """The mixture policy."""

    experts: int = setting(10, *COUNT)
    """Number of experts: the length of the program."""
    temperature: float = setting(1.0, *FINITE)
    """How fast an expert's influence falls with the squared distance from its prototype."""
    initial_std: float = setting(1.0, *FINITE)
    """Standard deviation of the first policy's actions, in units of the action scale."""


@dataclass(frozen=True)
class TrustRegionConfig(Checked):
    """How far one update may go, and how much exploration stays."""

    bound: float = setting(0.015, *POSITIVE)
    """Largest KL divergence of a policy from its predecessor."""
    entropy_fraction: float = setting(0.5, math.isfinite, "a finite number")
    """The entropy floor appears when this fraction of the initial entropy is reached."""
    entropy_fall: float = setting(0.0075, *NOT_NEGATIVE)
    """How much the entropy floor then falls in each iteration."""


@dataclass(frozen=True)
class UpdateConfig(Checked):
    """Gradient ascent on the policy, through the projections."""

    epochs: int = setting(20, *COUNT)
    """Passes over the batch."""
    minibatch: int = setting(64, *COUNT)
    """States in a gradient step."""
    weight_rate: float = setting(0.01, *POSITIVE)
    """Adam's rate for the experts' weights."""
    action_rate: float = setting(0.01, *POSITIVE)
    """Adam's rate for the experts' actions."""
    std_rate: float = setting(0.001, *POSITIVE)
    """Adam's rate for the logarithm of the standard deviation."""


@dataclass(frozen=True)
class SelectionConfig(Checked):
    """The search for prototypes."""

    candidates: int = setting(2000, *COUNT)
    """Random lists of prototypes scored in each try to swap."""
    runners_up: int = setting(3, lambda value: value >= 2, "at least 2")
    """How many of the highest activations the swap objective compares."""
    compress: bool = True
    """After a search for prototypes, delete experts that are not needed and put new ones in their
    place: the paper's compressPolicy."""
    delete_share: float = setting(0.5, *SHARE)
    """Share of the bound within which an expert is deleted."""
    reweight_share: float = setting(0.66, *SHARE)
    """Share of the bound that the weights of experts put in its place may use."""


@dataclass(frozen=True)
class CrispConfig(Checked):
    """Crisp, the mixture that may be taken at its word; each part can be switched off."""

    in_range: bool = True
    """Keep every expert's action within the action range."""
    learn_metric: bool = True
    """Learn how much each feature counts towards being close."""
    metric_limit: float = setting(
        20.0, lambda limit: 1 < limit < 1e6, "a number above 1, below 1e6"
    )
    """Largest factor by which a feature may come to count more, or less, than at the start."""
    std_by_budget: bool = True
    """Lower the smallest allowed standard deviation as the run progresses; no floor otherwise."""
    final_std: float = setting(0.15, *FINITE)
    """Smallest standard deviation of each action at the end, in units of the action scale."""
    final_std_at: float = setting(0.7, *SHARE)
    """Fraction of the run after which it may be that small."""
    price: float = setting(0.1, lambda value: 0 <= value < math.inf, "zero or more, finite")
    """Penalty on blends whose parts disagree, in standardised advantage; 0 turns it off."""
    price_from: float = 0.3
    """Fraction of the run during which blends are free."""
    price_to: float = 0.8
    """Fraction of the run after which the full penalty applies."""
    settle_from: float = setting(0.7, *SHARE)
    """Fraction of the run after which the bound shrinks, to a tenth at the end; 1 keeps it."""
    swap_share: float = setting(0.5, *SHARE)
    """Fraction of the bound that a change of prototypes may use."""
    crisp_rate: float = setting(0.01, *FINITE)
    """Adam's rate for the experts' actions and the logarithm of their weights."""
    crisp_std_rate: float = setting(0.001, *FINITE)
    """Adam's rate for the logarithm of the standard deviation."""
    metric_rate: float = setting(0.003, *FINITE)
    """Adam's rate for the logarithm of the metric."""
    crisp_clip: float = setting(0.2, *FRACTION)
    """How far an action's likelihood ratio may be from one and still count."""
    crisp_epochs: int = setting(10, *COUNT)
    """Passes over the batch."""
    crisp_minibatch: int = setting(64, *COUNT)
    """States in a gradient step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        span = (self.price_from, self.price_to)
        expected = "0 <= price_from < price_to <= 1"
        require(0 <= span[0] < span[1] <= 1, "(price_from, price_to)", span, expected)


@dataclass(frozen=True)
class CriticConfig(Checked):
    """The value networks."""

    hidden: tuple[int, ...] = setting((64, 64), *LAYERS)
    """Units of the hidden layers."""
    critic_rate: float = setting(3e-4, *POSITIVE)
    """Adam's rate."""
    critic_epochs: int = setting(10, *COUNT)
    """Passes over the batch."""
    critic_minibatch: int = setting(64, *COUNT)
    """States in a gradient step."""
    discount: float = setting(0.99, *SHARE)
    """Discount factor of later rewards."""
    decay: float = setting(0.95, lambda value: 0 <= value <= 1, "between 0 and 1")
    """Lambda of generalised advantage estimation."""


@dataclass(frozen=True)
class NetworkConfig(Checked):
    """The network policy of the baselines."""

    policy_hidden: tuple[int, ...] = setting((64, 64), *LAYERS)
    """Units of the hidden layers."""


@dataclass(frozen=True)
class PPOConfig(Checked):
    """Proximal policy optimisation, a baseline."""

    clip: float = setting(0.2, *FRACTION)
    """How far an action's likelihood ratio may be from one and still count."""
    ppo_rate: float = setting(3e-4, *POSITIVE)
    """Adam's rate."""
    ppo_epochs: int = setting(10, *COUNT)
    """Passes over the batch."""
    ppo_minibatch: int = setting(64, *COUNT)
    """States in a gradient step."""


@dataclass(frozen=True)
class TRPOConfig(Checked):
    """Trust region policy optimisation, a baseline."""

    kl_limit: float = setting(0.01, *POSITIVE)
    """Largest KL divergence of a policy from its predecessor."""
    conjugate_steps: int = setting(10, *COUNT)
    """Iterations of the conjugate gradient method."""
    damping: float = setting(0.01, *NOT_NEGATIVE)
    """Added to the Fisher matrix's diagonal."""
    line_search_steps: int = setting(10, *COUNT)
    """Step lengths to try, each 0.8 times the one before."""


@dataclass(frozen=True)
class LearnerConfig:
    """Everything that Algorithm 2 needs besides its batches."""

    algorithm: Annotated[str, Doc(f"The learning algorithm: {ALGORITHMS}.")] = registry.DEFAULT
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    trust_region: TrustRegionConfig = field(default_factory=TrustRegionConfig)
    update: UpdateConfig = field(default_factory=UpdateConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    crisp: CrispConfig = field(default_factory=CrispConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    trpo: TRPOConfig = field(default_factory=TRPOConfig)

    def __post_init__(self) -> None:
        falls = "crisp" in registry.algorithm(self.algorithm).uses and self.crisp.std_by_budget
        first, last = self.policy.initial_std, self.crisp.final_std
        require(last <= first or not falls, "final_std", last, f"at most initial_std ({first})")

    @property
    def has_experts(self) -> bool:
        """Whether the policy is a mixture of experts."""
        return registry.algorithm(self.algorithm).has_experts

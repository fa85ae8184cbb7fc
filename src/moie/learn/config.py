"""Settings of the learner: what the paper's section 6 and the authors' experiments used.

A field's docstring is also the command line's help. Values are checked where they are built.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated

from typing_extensions import Doc

from moie.errors import InputError, shortened
from moie.learn import registry


def require(condition: bool, name: str, value: object, expected: str) -> None:
    """Fail with a line that names the setting, its value and what was expected."""
    if not condition:
        raise InputError(f"{name} is {shortened(value)}, expected {expected}")


WHO_LEARNS = "; ".join(f"{one.name}, {one.about}" for one in registry.SHIPPED)


@dataclass(frozen=True)
class PolicyConfig:
    """The mixture policy."""

    experts: int = 10
    """Number of experts: the length of the program."""
    temperature: float = 1.0
    """How fast an expert's influence falls with the squared distance from its prototype."""
    initial_std: float = 1.0
    """Standard deviation of the first policy's actions, in units of the action scale."""

    def __post_init__(self) -> None:
        require(self.experts >= 1, "experts", self.experts, "at least 1")
        for name in ("temperature", "initial_std"):
            value = getattr(self, name)
            require(0 < value < math.inf, name, value, "a positive, finite number")


@dataclass(frozen=True)
class TrustRegionConfig:
    """How far one update may go, and how much exploration stays."""

    bound: float = 0.015
    """Largest KL divergence of a policy from its predecessor."""
    entropy_fraction: float = 0.5
    """The entropy floor appears when this fraction of the initial entropy is reached."""
    entropy_fall: float = 0.0075
    """How much the entropy floor then falls in each iteration."""

    def __post_init__(self) -> None:
        require(self.bound > 0, "bound", self.bound, "a positive number")
        fraction = self.entropy_fraction
        require(math.isfinite(fraction), "entropy_fraction", fraction, "a finite number")
        require(self.entropy_fall >= 0, "entropy_fall", self.entropy_fall, "zero or more")


@dataclass(frozen=True)
class UpdateConfig:
    """Gradient ascent on the policy, through the projections."""

    epochs: int = 20
    """Passes over the batch."""
    minibatch: int = 64
    """States in a gradient step."""
    weight_rate: float = 0.01
    """Adam's rate for the experts' weights."""
    action_rate: float = 0.01
    """Adam's rate for the experts' actions."""
    std_rate: float = 0.001
    """Adam's rate for the logarithm of the standard deviation."""

    def __post_init__(self) -> None:
        require(self.epochs >= 1, "epochs", self.epochs, "at least 1")
        require(self.minibatch >= 1, "minibatch", self.minibatch, "at least 1")
        for name in ("weight_rate", "action_rate", "std_rate"):
            require(getattr(self, name) > 0, name, getattr(self, name), "a positive number")


@dataclass(frozen=True)
class SelectionConfig:
    """The search for prototypes."""

    candidates: int = 2000
    """Random lists of prototypes scored in each try to swap."""
    runners_up: int = 3
    """How many of the highest activations the swap objective compares."""
    delete_share: float = 0.5
    """Share of the bound within which an expert is deleted."""
    reweight_share: float = 0.66
    """Share of the bound that the weights of experts put in its place may use."""

    def __post_init__(self) -> None:
        require(self.candidates >= 1, "candidates", self.candidates, "at least 1")
        require(self.runners_up >= 2, "runners_up", self.runners_up, "at least 2")
        for name in ("delete_share", "reweight_share"):
            value = getattr(self, name)
            require(0 < value <= 1, name, value, "a number above 0, at most 1")


@dataclass(frozen=True)
class CrispConfig:
    """Crisp, the mixture that may be taken at its word; each part can be switched off."""

    in_range: bool = True
    """Keep every expert's action within the action range."""
    learn_metric: bool = True
    """Learn how much each feature counts towards being close."""
    metric_limit: float = 20.0
    """Largest factor by which a feature may come to count more, or less, than at the start."""
    std_by_budget: bool = True
    """Lower the smallest allowed standard deviation as the run progresses; no floor otherwise."""
    final_std: float = 0.15
    """Smallest standard deviation of each action at the end, in units of the action scale."""
    final_std_at: float = 0.7
    """Fraction of the run after which it may be that small."""
    price: float = 0.1
    """Penalty on blends whose parts disagree, in standardised advantage; 0 turns it off."""
    price_from: float = 0.3
    """Fraction of the run during which blends are free."""
    price_to: float = 0.8
    """Fraction of the run after which the full penalty applies."""
    settle_from: float = 0.7
    """Fraction of the run after which the bound shrinks, to a tenth at the end; 1 keeps it."""
    swap_share: float = 0.5
    """Fraction of the bound that a change of prototypes may use."""
    crisp_rate: float = 0.01
    """Adam's rate for the experts' actions and the logarithm of their weights."""
    crisp_std_rate: float = 0.001
    """Adam's rate for the logarithm of the standard deviation."""
    metric_rate: float = 0.003
    """Adam's rate for the logarithm of the metric."""
    crisp_clip: float = 0.2
    """How far an action's likelihood ratio may be from one and still count."""
    crisp_epochs: int = 10
    """Passes over the batch."""
    crisp_minibatch: int = 64
    """States in a gradient step."""

    def __post_init__(self) -> None:
        limit = self.metric_limit
        require(1 < limit < 1e6, "metric_limit", limit, "a number above 1, below 1e6")
        for name in ("final_std", "crisp_rate", "crisp_std_rate", "metric_rate"):
            value = getattr(self, name)
            require(0 < value < math.inf, name, value, "a positive, finite number")
        require(0 <= self.price < math.inf, "price", self.price, "zero or more, finite")
        for name in ("final_std_at", "swap_share", "settle_from"):
            value = getattr(self, name)
            require(0 < value <= 1, name, value, "a number above 0, at most 1")
        span = (self.price_from, self.price_to)
        expected = "0 <= price_from < price_to <= 1"
        require(0 <= span[0] < span[1] <= 1, "(price_from, price_to)", span, expected)
        require(0 < self.crisp_clip < 1, "crisp_clip", self.crisp_clip, "above 0, below 1")
        for name in ("crisp_epochs", "crisp_minibatch"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")


@dataclass(frozen=True)
class CriticConfig:
    """The value networks."""

    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers."""
    critic_rate: float = 3e-4
    """Adam's rate."""
    critic_epochs: int = 10
    """Passes over the batch."""
    critic_minibatch: int = 64
    """States in a gradient step."""
    discount: float = 0.99
    """Discount factor of later rewards."""
    decay: float = 0.95
    """Lambda of generalised advantage estimation."""

    def __post_init__(self) -> None:
        require(len(self.hidden) > 0, "hidden", self.hidden, "at least one layer")
        require(min(self.hidden) >= 1, "hidden", self.hidden, "at least 1 unit a layer")
        require(self.critic_rate > 0, "critic_rate", self.critic_rate, "a positive number")
        require(self.critic_epochs >= 1, "critic_epochs", self.critic_epochs, "at least 1")
        require(self.critic_minibatch >= 1, "critic_minibatch", self.critic_minibatch, "at least 1")
        require(0 < self.discount <= 1, "discount", self.discount, "above 0, at most 1")
        require(0 <= self.decay <= 1, "decay", self.decay, "between 0 and 1")


@dataclass(frozen=True)
class NetworkConfig:
    """The network policy of the baselines."""

    policy_hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers."""

    def __post_init__(self) -> None:
        layers = self.policy_hidden
        require(len(layers) > 0, "policy_hidden", layers, "at least one layer")
        require(min(layers) >= 1, "policy_hidden", layers, "at least 1 unit a layer")


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation, a baseline."""

    clip: float = 0.2
    """How far an action's likelihood ratio may be from one and still count."""
    ppo_rate: float = 3e-4
    """Adam's rate."""
    ppo_epochs: int = 10
    """Passes over the batch."""
    ppo_minibatch: int = 64
    """States in a gradient step."""

    def __post_init__(self) -> None:
        require(0 < self.clip < 1, "clip", self.clip, "above 0, below 1")
        require(self.ppo_rate > 0, "ppo_rate", self.ppo_rate, "a positive number")
        require(self.ppo_epochs >= 1, "ppo_epochs", self.ppo_epochs, "at least 1")
        require(self.ppo_minibatch >= 1, "ppo_minibatch", self.ppo_minibatch, "at least 1")


@dataclass(frozen=True)
class TRPOConfig:
    """Trust region policy optimisation, a baseline."""

    kl_limit: float = 0.01
    """Largest KL divergence of a policy from its predecessor."""
    conjugate_steps: int = 10
    """Iterations of the conjugate gradient method."""
    damping: float = 0.01
    """Added to the Fisher matrix's diagonal."""
    line_search_steps: int = 10
    """Step lengths to try, each 0.8 times the one before."""

    def __post_init__(self) -> None:
        require(self.kl_limit > 0, "kl_limit", self.kl_limit, "a positive number")
        require(self.conjugate_steps >= 1, "conjugate_steps", self.conjugate_steps, "at least 1")
        require(self.damping >= 0, "damping", self.damping, "zero or more")
        tries = self.line_search_steps
        require(tries >= 1, "line_search_steps", tries, "at least 1")


@dataclass(frozen=True)
class LearnerConfig:
    """Everything that Algorithm 2 needs besides its batches."""

    algorithm: Annotated[str, Doc(f"The learning algorithm: {WHO_LEARNS}.")] = registry.DEFAULT
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

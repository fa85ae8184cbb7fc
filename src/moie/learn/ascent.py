r"""Uphill with everything that a mixture learns by gradient, then back into the trust region.

The paper projects each group of parameters by a bound that is derived, and after a swap of
prototypes cannot update the weights. Here Adam climbs freely inside a box, and what it reached is
drawn back along the straight segment to where it started, until the KL on the whole batch is within
the bound: a KL that was computed, not bounded. So weights, actions, covariance and metric move
together, after a swap, too.

The box is convex. Clipping after each gradient step keeps every step in it, and so does the way
back: for two of its points :math:`x, y` and :math:`0\le t\le 1` each component of
:math:`x+t(y-x)` lies between those of x and y. So actions that start in the action range never
leave it, metric and weights stay positive and bounded, and no standard deviation falls below its
floor.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core import gaussian
from moie.core.policy import MixturePolicy
from moie.core.trust_region import Scalar, ScalarLike
from moie.learn.config import CrispConfig
from moie.learn.update import Problem, minibatches

HALVINGS = 14
"""Bisections of the segment on the way back: to a 16,000th of its length."""


class Parameters(NamedTuple):
    """Parameters learned by gradient. Weights and metric are positive, so their logarithms move."""

    log_weights: Float[Array, " K"]
    actions: Float[Array, "K A"]
    log_std: Float[Array, " A"]
    log_metric: Float[Array, " d"] | None

    @classmethod
    def of(cls, policy: MixturePolicy) -> "Parameters":
        metric = None if policy.metric is None else jnp.log(policy.metric)
        return cls(jnp.log(policy.magnitude), policy.actions, policy.log_std, metric)

    def put(self, policy: MixturePolicy) -> MixturePolicy:
        """The policy with these parameters."""
        metric = None if self.log_metric is None else jnp.exp(self.log_metric)
        weights = jnp.exp(self.log_weights)
        return MixturePolicy(
            policy.prototypes, weights, self.actions, self.log_std, policy.temperature, metric
        )


class Box(NamedTuple):
    """Lower and upper limit of every parameter."""

    low: Parameters
    high: Parameters

    def clip(self, parameters: Parameters) -> Parameters:
        """The nearest point of the box."""
        return jax.tree.map(jnp.clip, parameters, self.low, self.high)


class Climb(NamedTuple):
    """The end of the ascent, after the way back."""

    policy: MixturePolicy
    kl: Scalar
    share: Scalar
    """Share of the segment that the trust region leaves; one where nothing was taken back."""
    moments: optax.OptState


def start_moments(policy: MixturePolicy) -> optax.OptState:
    """Adam's zero moments."""
    return optax.scale_by_adam().init(Parameters.of(policy))


def disagreement(
    membership: Float[Array, "N K"], actions: Float[Array, "K A"], means: Float[Array, "N A"]
) -> Scalar:
    r"""How far the parts of a blend are from what is done: their variance, averaged over states and
    actions, :math:`E_s[\sum_k \psi_k\|a_k-\mu\|^2 + \psi_0\|\mu\|^2]/A`, the default's action
    being zero. As :math:`\mu=\sum_k\psi_k a_k`, it is
    :math:`E_s[\sum_k\psi_k\|a_k\|^2-\|\mu\|^2]/A`. Zero where one part acts alone or all that act
    agree, large where opposite actions hold the balance: that is what has a price."""
    squares = jnp.sum(actions * actions, axis=1)
    return jnp.mean(membership @ squares - jnp.sum(means * means, axis=1)) / actions.shape[1]


def blend(
    policy: MixturePolicy, states: Float[Array, "N d"]
) -> tuple[Float[Array, "N K"], Float[Array, "N A"]]:
    """Memberships and means."""
    membership = jax.vmap(policy.membership)(states)
    return membership, membership @ policy.actions


def climb(
    config: CrispConfig,
    policy: MixturePolicy,
    moments: optax.OptState,
    problem: Problem,
    box: Box,
    bound: ScalarLike,
    price: Scalar,
    *,
    key: PRNGKeyArray,
) -> Climb:
    """Adam on the clipped surrogate less the price of blends, one scan over minibatches; then back.

    Args:
        config: rates, passes and minibatches.
        policy: where the way back would end; it lies in the box.
        moments: Adam's.
        problem: what is gained, on which batch, and the anchor.
        box: what the parameters may be.
        bound: of the KL from the anchor.
        price: what a unit of disagreement costs, in standardised advantage.
        key: for the order of the minibatches.
    """
    adam, start = optax.scale_by_adam(), box.clip(Parameters.of(policy))
    rates = Parameters(
        jnp.full_like(start.log_weights, config.crisp_rate),
        jnp.full_like(start.actions, config.crisp_rate),
        jnp.full_like(start.log_std, config.crisp_std_rate),
        None if start.log_metric is None else jnp.full_like(start.log_metric, config.metric_rate),
    )

    def loss(parameters: Parameters, index: Int[Array, " M"]) -> Scalar:
        near, trial = problem.rows(index), parameters.put(policy)
        membership, means = blend(trial, near.states)
        gain = near.clipped_surrogate(means, trial.log_std, config.crisp_clip)
        return price * disagreement(membership, trial.actions, means) - gain

    def step(carry, index):
        parameters, moments = carry
        change, moments = adam.update(jax.grad(loss)(parameters, index), moments)
        moved = jax.tree.map(lambda x, c, rate: x - rate * c, parameters, change, rates)
        return (box.clip(moved), moments), None

    rows = minibatches(key, len(problem.states), config.crisp_minibatch, config.crisp_epochs)
    (end, moments), _ = jax.lax.scan(step, (start, moments), rows)
    after, kl, share = back_along(policy, start, end, box, problem, bound)
    return Climb(after, kl, share, moments)


def back_along(
    policy: MixturePolicy,
    start: Parameters,
    end: Parameters,
    box: Box,
    problem: Problem,
    bound: ScalarLike,
) -> tuple[MixturePolicy, Scalar, Scalar]:
    """The farthest point found on the segment whose KL from the anchor is within the bound; its KL,
    and how far it is. Where even the start is outside, the start."""

    def at(share: Scalar) -> MixturePolicy:
        # Rounding may put a blend a last bit outside the box.
        return box.clip(jax.tree.map(lambda a, b: a + share * (b - a), start, end)).put(policy)

    def kl_at(share: Scalar) -> Scalar:
        trial, anchor = at(share), problem.anchor
        _, means = blend(trial, problem.states)
        return gaussian.divergence(means, trial.log_std, anchor.means, anchor.log_std)

    def halve(_, bracket):
        inside, outside = bracket
        middle = 0.5 * (inside + outside)
        is_inside = kl_at(middle) <= bound
        return jnp.where(is_inside, middle, inside), jnp.where(is_inside, outside, middle)

    one = jnp.ones_like(problem.advantages[0])
    inside, _ = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(one), one))
    share = jnp.where(kl_at(one) <= bound, one, inside)
    return at(share), kl_at(share), share

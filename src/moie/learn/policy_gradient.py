"""PPO and TRPO on any Gaussian policy: the learners that the paper compares with.

Both maximise the importance-weighted advantage on a batch. PPO clips the weights and takes Adam's
steps over minibatches (Schulman et al. 2017); TRPO takes one step along the natural gradient, as
long as the KL divergence allows (Schulman et al. 2015).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core import gaussian
from moie.core.policy import GaussianPolicy
from moie.core.trust_region import Scalar
from moie.learn.config import PPOConfig, TRPOConfig
from moie.learn.update import clipped_gain, likelihood_ratio, minibatches

P = TypeVar("P", bound=GaussianPolicy)
BACKTRACK = 0.8
"""Factor from one step of the line search to the next."""
Shape = Callable[[Any], Any]
"""Maps a policy of free parameters to the one that acts: the entropy projection, or nothing."""


def as_it_is(policy: Any) -> Any:
    """No projection."""
    return policy


class Objective(eqx.Module):
    """A batch with its advantages, and the policy that sampled it, evaluated once."""

    states: Float[Array, "N d"]
    taken: Float[Array, "N A"]
    advantages: Float[Array, " N"]
    log_prob: Float[Array, " N"]
    means: Float[Array, "N A"]
    log_std: Float[Array, " A"]

    @classmethod
    def of(cls, policy: GaussianPolicy, states, taken, advantages) -> "Objective":
        """`policy` sampled `taken` in `states`."""
        return cls(
            states,
            taken,
            advantages,
            jax.vmap(policy.log_prob)(states, taken),
            jax.vmap(policy.mean)(states),
            policy.log_std,
        )

    def rows(self, index) -> "Objective":
        """The same on some states of the batch."""
        per_state = lambda o: (o.states, o.taken, o.advantages, o.log_prob, o.means)  # noqa: E731
        return eqx.tree_at(per_state, self, [x[index] for x in per_state(self)])

    def log_ratio(self, policy: GaussianPolicy) -> Float[Array, " N"]:
        """Logarithm of how much likelier each action is now."""
        return jax.vmap(policy.log_prob)(self.states, self.taken) - self.log_prob

    def surrogate(self, policy: GaussianPolicy) -> Scalar:
        """The importance-weighted advantage."""
        return jnp.mean(likelihood_ratio(self.log_ratio(policy)) * self.advantages)

    def clipped(self, policy: GaussianPolicy, clip: float) -> Scalar:
        """PPO's objective."""
        return clipped_gain(self.log_ratio(policy), self.advantages, clip)

    def divergence(self, policy: GaussianPolicy) -> Scalar:
        """TRPO's, the mean KL of the sampling policy from this one: KL(q || pi)."""
        means = jax.vmap(policy.mean)(self.states)
        return gaussian.divergence(self.means, self.log_std, means, policy.log_std)

    def divergence_of(self, policy: GaussianPolicy) -> Scalar:
        """The paper's, the other way round: KL(pi || q)."""
        means = jax.vmap(policy.mean)(self.states)
        return gaussian.divergence(means, policy.log_std, self.means, self.log_std)


def start_ppo(config: PPOConfig, policy: GaussianPolicy) -> optax.OptState:
    """Adam's zero moments."""
    return optax.adam(config.ppo_rate).init(eqx.filter(policy, policy.learned))


def update_ppo(
    config: PPOConfig,
    policy: P,
    moments: optax.OptState,
    objective: Objective,
    shape: Shape = as_it_is,
    *,
    key: PRNGKeyArray,
) -> tuple[P, optax.OptState]:
    """Adam over minibatches, one scan."""
    adam = optax.adam(config.ppo_rate)
    learned, fixed = eqx.partition(policy, policy.learned)

    def loss(learned, index):
        return -objective.rows(index).clipped(shape(eqx.combine(learned, fixed)), config.clip)

    def step(carry, index):
        learned, moments = carry
        change, moments = adam.update(jax.grad(loss)(learned, index), moments)
        return (optax.apply_updates(learned, change), moments), None

    rows = minibatches(key, len(objective.states), config.ppo_minibatch, config.ppo_epochs)
    (learned, moments), _ = jax.lax.scan(step, (learned, moments), rows)
    return shape(eqx.combine(learned, fixed)), moments


class NaturalStep(NamedTuple):
    """The step that TRPO took."""

    fraction: Scalar
    """Share of the longest step that was tried; zero if none was accepted."""
    divergence: Scalar
    gain: Scalar
    """Gain of the surrogate."""


def fisher_product(
    policy: GaussianPolicy, objective: Objective
) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
    """v -> F v at the sampling policy: the second derivative of the KL, forward over reverse."""
    learned, fixed = eqx.partition(policy, policy.learned)
    start, unravel = ravel_pytree(learned)

    def divergence(vector):
        return objective.divergence(eqx.combine(unravel(vector), fixed))

    return lambda vector: jax.jvp(jax.grad(divergence), (start,), (vector,))[1]


def _correction(limit: float, divergence: Scalar) -> Scalar:
    """Factor from the longest step of the quadratic model to that of the real divergence. The
    entropy projection takes a part of the step back, and would leave most of the limit unused."""
    factor = 0.999 * jnp.sqrt(limit / jnp.maximum(divergence, 1e-12))
    return jnp.where(jnp.isfinite(factor), jnp.clip(factor, 0.5, 10.0), 1.0)


def update_trpo(
    config: TRPOConfig, policy: P, objective: Objective, shape: Shape = as_it_is
) -> tuple[P, NaturalStep]:
    """Conjugate gradient for F^-1 g, then a line search on the surrogate under the KL limit."""
    learned, fixed = eqx.partition(policy, policy.learned)
    start, unravel = ravel_pytree(learned)

    def moved(vector) -> P:
        return shape(eqx.combine(unravel(vector), fixed))

    product = fisher_product(policy, objective)
    value, gradient = jax.value_and_grad(lambda vector: objective.surrogate(moved(vector)))(start)
    direction, _ = jax.scipy.sparse.linalg.cg(
        lambda vector: product(vector) + config.damping * vector,
        gradient,
        tol=1e-10,
        maxiter=config.conjugate_steps,
    )
    curvature = direction @ (product(direction) + config.damping * direction)
    longest = jnp.sqrt(2.0 * config.kl_limit / jnp.maximum(curvature, 1e-12)) * direction
    longest = longest * _correction(config.kl_limit, objective.divergence(moved(start + longest)))

    def judged(fraction: Scalar) -> NaturalStep:
        trial = moved(start + fraction * longest)
        gain = objective.surrogate(trial) - value
        return NaturalStep(fraction, objective.divergence(trial), gain)

    def refused(step: NaturalStep):
        # A comparison with a number that is none is false: such a step is refused too.
        return ~((step.gain >= 0.0) & (step.divergence <= config.kl_limit))

    def backtrack(carry):
        tries, step = carry
        return tries + 1, judged(BACKTRACK * step.fraction)

    _, step = jax.lax.while_loop(
        lambda carry: refused(carry[1]) & (carry[0] < config.line_search_steps),
        backtrack,
        (1, judged(jnp.ones_like(value))),
    )
    nothing = NaturalStep(*(jnp.zeros_like(value) for _ in range(3)))
    step = jax.tree.map(lambda none, one: jnp.where(refused(step), none, one), nothing, step)
    return moved(jnp.where(step.fraction > 0, start + step.fraction * longest, start)), step

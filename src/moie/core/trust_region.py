r"""Projections onto the trust region of the anchor `q` (sections 3.2 and 5.2.2 of the paper).

All maps interpolate between a policy and its anchor, so that a constrained problem can be solved by
unconstrained gradient steps through the projection. They are differentiable, and free of NaN at the
anchor itself and at zero weights: where a formula does not apply, its inputs are replaced before
it is evaluated, not only its result afterwards.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moie.core import gaussian
from moie.core.gaussian import covariance_shift, mean_shift, weighted_mean_shift
from moie.core.policy import MixturePolicy, membership_of

Scalar = Float[Array, ""]
ScalarLike = float | Scalar


class Anchor(eqx.Module):
    """The data-collecting policy, evaluated once on its batch."""

    weights: Float[Array, " K"]
    actions: Float[Array, "K A"]
    log_std: Float[Array, " A"]
    strength: Float[Array, "N K"]
    means: Float[Array, "N A"]
    log_prob: Float[Array, " N"]

    @classmethod
    def of(
        cls, policy: MixturePolicy, states: Float[Array, "N d"], taken: Float[Array, "N A"]
    ) -> "Anchor":
        """Evaluate `policy` on the states of a batch and the actions taken there."""
        strength = jax.vmap(policy.strength)(states)
        means = membership_of(strength) @ policy.actions
        log_prob = jax.vmap(gaussian.log_prob, (0, None, 0))(means, policy.log_std, taken)
        return cls(policy.magnitude, policy.actions, policy.log_std, strength, means, log_prob)

    def rows(self, index: Int[Array, " M"]) -> "Anchor":
        """The same anchor on some states of the batch."""
        per_state = lambda a: (a.strength, a.means, a.log_prob)  # noqa: E731
        return eqx.tree_at(per_state, self, tuple(x[index] for x in per_state(self)))


class GaussianProjection(eqx.Module):
    """The result of Algorithm 1: the projected Gaussian and how far it went."""

    means: Float[Array, "N A"]
    log_std: Float[Array, " A"]
    mean_step: Scalar
    covariance_step: Scalar
    kl: Scalar


def _where_safe(condition: Bool[Array, ""], numerator: ScalarLike, denominator: Scalar) -> Scalar:
    """`numerator / denominator` where `condition` holds, else one; no NaN in the gradient."""
    ratio = jnp.where(condition, numerator, 1.0) / jnp.where(condition, denominator, 1.0)
    return jnp.where(condition, ratio, 1.0)


def raise_entropy(log_std: Float[Array, " A"], entropy_floor: ScalarLike) -> Float[Array, " A"]:
    r"""Scale :math:`\Sigma` up to the entropy floor: Algorithm 1, line 2."""
    missing = jnp.maximum(entropy_floor - gaussian.entropy(log_std), 0.0)
    return log_std + missing / log_std.size


def weight_step(
    strength: Float[Array, "N K"], means: Float[Array, "N A"], anchor: Anchor, bound: ScalarLike
) -> Scalar:
    r"""The largest known :math:`\eta` with :math:`E_s[m_s(0,\eta)]\le\epsilon` (eqs. 16 and 17).

    Args:
        strength: of the new weights.
        means: of the new weights with the anchor's actions.
        anchor: the policy to stay near.
        bound: of the KL.

    Returns:
        One where the new weights are within the bound; else the larger solution of the
        quadratic bound, which always holds, and of the linear one, which holds where
        :math:`2\|w_q\|\|w\|>\|w_q\|^2` in every state. Norms include the default's one.
    """
    shift = mean_shift(means, anchor.means, anchor.log_std)
    outside = shift > bound
    norm = jnp.sum(strength, axis=1) + 1.0
    anchor_norm = jnp.sum(anchor.strength, axis=1) + 1.0

    def shift_times(factor: Float[Array, " N"]) -> Scalar:
        return weighted_mean_shift(means, anchor.means, anchor.log_std, factor)

    quadratic = shift_times(jnp.maximum((norm / anchor_norm) ** 2, 1.0))
    by_quadratic = jnp.sqrt(_where_safe(outside, bound, quadratic))

    denominator = 2.0 * anchor_norm * norm - anchor_norm**2
    holds = jnp.all(denominator > 0)
    linear = shift_times(norm**2 / jnp.where(denominator > 0, denominator, 1.0))
    by_linear = jnp.where(holds, _where_safe(outside & holds, bound, linear), 0.0)
    return jnp.where(outside, jnp.maximum(by_quadratic, by_linear), 1.0)


def _mean_step(
    step_shift: Scalar, cross: Scalar, budget: Scalar, outside: Bool[Array, ""]
) -> Scalar:
    r"""The positive root of :math:`a\nu^2 + 2b\nu = c`, in the form that does not cancel."""
    a, b, c = step_shift, cross, jnp.maximum(budget, 0.0)
    solvable = outside & (a > 0)
    inside_root = b * b + a * c
    root = jnp.sqrt(jnp.where(solvable & (inside_root > 0), inside_root, 1.0))
    root = jnp.where(inside_root > 0, root, 0.0)
    ahead = b > 0
    numerator = jnp.where(ahead, c, root - b)
    denominator = jnp.where(ahead, root + b, a)
    step = _where_safe(solvable & (denominator > 0), numerator, denominator)
    return jnp.where(solvable, jnp.clip(step, 0.0, 1.0), jnp.where(outside, 0.0, 1.0))


def _rounding(bound: ScalarLike, size: Scalar) -> Scalar:
    """The error that rounding may add to a KL of the bound's size, as a share of the bound, where
    each mean is a sum of parts of at most `size` standard deviations.

    A relative error u of these parts moves z = mean/sigma by u size, and such a KL by sqrt(2 bound)
    times that.
    """
    return jnp.sqrt(2.0 / bound) * (0.5 * float(jnp.finfo(size.dtype).eps)) * size


def _largest(means: Float[Array, "N A"], anchor: Anchor) -> tuple[Scalar, Scalar]:
    """Largest sizes of the means, and of the terms that they sum, in standard deviations. One
    maximum over states and actions together: axis by axis it is slow on an accelerator."""
    precision = jnp.exp(-anchor.log_std)[None, :]
    of_means = jnp.max(jnp.maximum(jnp.abs(means), jnp.abs(anchor.means)) * precision)
    return of_means, jnp.maximum(of_means, jnp.max(jnp.abs(anchor.actions) * precision))


def less_rounding(bound: ScalarLike, means: Float[Array, "N A"], anchor: Anchor) -> ScalarLike:
    """The bound, less what rounding may add to the KL where actions are large beside sigma: once
    for the policy and once for the anchor. Where that is next to nothing the bound is left alone.
    """
    of_means, of_parts = _largest(means, anchor)
    error = _rounding(bound, of_parts)
    counts = (error > 1e-4) | (_rounding(bound, of_means) > 5e-5)
    margin = jnp.where(counts, jnp.minimum(2.0 * error, 0.5), 0.0)
    return bound * (1.0 - jax.lax.stop_gradient(margin))


def seen_kl(kl: Scalar, bound: ScalarLike, means: Float[Array, "N A"], anchor: Anchor) -> Scalar:
    """The KL; NaN where actions are so large beside sigma that rounding decides about it: then no
    margin of `less_rounding` helps, and learning has diverged."""
    error = _rounding(bound, _largest(means, anchor)[1])
    return jnp.where(2.0 * error < 0.5, kl, jnp.nan)


def project_gaussian(
    means: Float[Array, "N A"],
    log_std: Float[Array, " A"],
    intermediate: Float[Array, "N A"],
    anchor: Anchor,
    bound: ScalarLike,
    entropy_floor: ScalarLike,
) -> GaussianProjection:
    r"""Algorithm 1: a linear-Gaussian with :math:`KL\le\epsilon` and entropy at least the floor.

    Args:
        means: of the new actions, in each state.
        log_std: the new ones.
        intermediate: means of the anchor's actions under the new memberships; their shift from
            the anchor's means must be within the bound.
        anchor: the policy to stay near.
        bound: of the KL.
        entropy_floor: kept where it is not above the anchor's own entropy.

    Returns:
        The projected means and log standard deviations, the two interpolation steps, the KL.
    """
    bound = less_rounding(bound, means, anchor)
    log_std = raise_entropy(log_std, entropy_floor)
    shift = mean_shift(means, anchor.means, anchor.log_std)
    spread = covariance_shift(log_std, anchor.log_std)
    at_intermediate = mean_shift(intermediate, anchor.means, anchor.log_std)

    # The covariance may use what the smaller of the two mean shifts leaves of the bound.
    reserved = jnp.minimum(shift, at_intermediate)
    outside = shift + spread > bound
    excess = shift + spread - reserved  # none where means and covariance did not change
    covariance_step = _where_safe(
        outside & (excess > 0), jnp.maximum(bound - reserved, 0.0), excess
    )
    growth = jnp.expm1(2.0 * (log_std - anchor.log_std))
    shrunk = anchor.log_std + 0.5 * jnp.log1p(jnp.where(outside, covariance_step, 0.0) * growth)
    log_std = jnp.where(outside, shrunk, log_std)
    spread = covariance_shift(log_std, anchor.log_std)

    still_outside = outside & (shift + spread > bound)
    precision = jnp.exp(-2.0 * anchor.log_std)[None, :]
    change, offset = means - intermediate, intermediate - anchor.means
    mean_step = _mean_step(
        step_shift=0.5 * jnp.mean(jnp.sum(change * precision * change, axis=1)),
        cross=0.5 * jnp.mean(jnp.sum(change * precision * offset, axis=1)),
        budget=bound - at_intermediate - spread,
        outside=still_outside,
    )
    means = jnp.where(still_outside, intermediate + mean_step * change, means)
    kl = mean_shift(means, anchor.means, anchor.log_std) + spread
    return GaussianProjection(means, log_std, mean_step, covariance_step, kl)


class PolicyProjection(eqx.Module):
    """A policy of the trust region, its Gaussians on the states, and the three steps taken."""

    policy: MixturePolicy
    gaussian: GaussianProjection
    weight_step: Scalar


class WeightProjection(NamedTuple):
    """Weights whose mean shift with the anchor's actions is within the bound."""

    weights: Float[Array, " K"]
    membership: Float[Array, "N K"]
    step: Scalar


def project_weights(
    policy: MixturePolicy, activation: Float[Array, "N K"], anchor: Anchor, bound: ScalarLike
) -> WeightProjection:
    """The weights alone. `activation` is that of the policy's prototypes, which are the anchor's,
    on its states."""
    strength = policy.magnitude[None, :] * activation
    with_anchor_actions = membership_of(strength) @ anchor.actions
    within = less_rounding(bound, with_anchor_actions, anchor)
    step = weight_step(strength, with_anchor_actions, anchor, within)
    weights = step * policy.magnitude + (1.0 - step) * anchor.weights
    return WeightProjection(weights, membership_of(weights[None, :] * activation), step)


def project_all(
    policy: MixturePolicy,
    activation: Float[Array, "N K"],
    anchor: Anchor,
    bound: ScalarLike,
    entropy_floor: ScalarLike,
) -> PolicyProjection:
    """Weights first, then actions and covariance given the new memberships (section 5.2.2)."""
    weights, membership, step = project_weights(policy, activation, anchor, bound)
    projection = project_actions(policy, anchor.actions, membership, anchor, bound, entropy_floor)
    projected = eqx.tree_at(lambda p: p.weights, projection.policy, weights)
    return PolicyProjection(projected, projection.gaussian, step)


def project_actions(
    policy: MixturePolicy,
    intermediate_actions: Float[Array, "K A"],
    membership: Float[Array, "N K"],
    anchor: Anchor,
    bound: ScalarLike,
    entropy_floor: ScalarLike,
) -> PolicyProjection:
    """Actions and covariance only, for given memberships: after a swap the weights can not be
    projected. `intermediate_actions` are those of the swapped policy before its update."""
    gaussian_ = project_gaussian(
        membership @ policy.actions,
        policy.log_std,
        membership @ intermediate_actions,
        anchor,
        bound,
        entropy_floor,
    )
    step = gaussian_.mean_step
    actions = intermediate_actions + step * (policy.actions - intermediate_actions)
    # Where nothing was projected the action is kept to the last bit.
    actions = jnp.where(step < 1.0, actions, policy.actions)
    projected = eqx.tree_at(lambda p: (p.actions, p.log_std), policy, (actions, gaussian_.log_std))
    return PolicyProjection(projected, gaussian_, jnp.ones_like(step))


def divergence(policy: MixturePolicy, states: Float[Array, "N d"], anchor: Anchor) -> Scalar:
    """KL of a policy from the anchor, averaged over the states."""
    means = jax.vmap(policy.mean)(states)
    return gaussian.divergence(means, policy.log_std, anchor.means, anchor.log_std)

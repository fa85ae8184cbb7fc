r"""Gaussians with a diagonal covariance, and the two parts of the KL between them.

.. math::
    \text{mean shift} &= \tfrac12 E_s\|\mu(s)-\mu_q(s)\|^2_{\Sigma_q^{-1}} \\
    \text{covariance shift} &= \tfrac12 (tr(\Sigma_q^{-1}\Sigma) - A + \log|\Sigma_q|/|\Sigma|)
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

HALF_LOG_2PI = 0.9189385332046727


def equal_log_std(std: float, n_actions: int) -> Float[Array, " A"]:
    """The same for every action. Its type is explicit: one that may still change would have a
    learner compiled anew in its second iteration."""
    return jnp.full((n_actions,), math.log(std), jnp.zeros(()).dtype)


def log_prob(
    mean: Float[Array, " A"], log_std: Float[Array, " A"], action: Float[Array, " A"]
) -> Float[Array, ""]:
    """Log density of one action."""
    z = (action - mean) * jnp.exp(-log_std)
    return -jnp.sum(0.5 * z * z + log_std + HALF_LOG_2PI)


def entropy(log_std: Float[Array, " A"]) -> Float[Array, ""]:
    """Differential entropy; it does not depend on the state."""
    return jnp.sum(log_std + HALF_LOG_2PI + 0.5)


def weighted_mean_shift(
    means: Float[Array, "N A"],
    anchor_means: Float[Array, "N A"],
    anchor_log_std: Float[Array, " A"],
    state_weights: Float[Array, " N"],
) -> Float[Array, ""]:
    """The mean shift with a factor for each state, as the bounds of `weight_step` need it."""
    z = (means - anchor_means) * jnp.exp(-anchor_log_std)[None, :]
    return 0.5 * jnp.mean(state_weights * jnp.sum(z * z, axis=1))


def mean_shift(
    means: Float[Array, "N A"],
    anchor_means: Float[Array, "N A"],
    anchor_log_std: Float[Array, " A"],
) -> Float[Array, ""]:
    """Half the mean squared distance of the means, in the metric of the anchor's precision."""
    return weighted_mean_shift(means, anchor_means, anchor_log_std, jnp.ones_like(means[:, 0]))


def covariance_shift(
    log_std: Float[Array, " A"], anchor_log_std: Float[Array, " A"]
) -> Float[Array, ""]:
    """Rotation plus entropy part of the KL. `expm1(x) - x` keeps its digits near the anchor,
    where trace and log-determinant would cancel."""
    x = 2.0 * (log_std - anchor_log_std)
    return 0.5 * jnp.sum(jnp.expm1(x) - x)


def divergence(
    means: Float[Array, "N A"],
    log_std: Float[Array, " A"],
    anchor_means: Float[Array, "N A"],
    anchor_log_std: Float[Array, " A"],
) -> Float[Array, ""]:
    """KL of a Gaussian from the anchor, averaged over the states: the sum of both parts."""
    shift = mean_shift(means, anchor_means, anchor_log_std)
    return shift + covariance_shift(log_std, anchor_log_std)

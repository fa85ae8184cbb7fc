"""Generalised advantage estimation over a batch of episodes laid end to end."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from moie.core.batch import Batch


def gae(
    batch: Batch,
    values: Float[Array, " N"],
    next_values: Float[Array, " N"],
    discount: float | Float[Array, ""],
    decay: float | Float[Array, ""],
) -> Float[Array, " N"]:
    """Advantages (Schulman et al. 2016). Only a terminated step loses the value of what follows;
    an episode that is cut or timed out ends its sum, but bootstraps from the next state.

    Args:
        batch: its rewards and ends of episodes count.
        values: of each state.
        next_values: of the state that followed it, also across an episode's end.
        discount: gamma.
        decay: lambda.
    """
    bootstrap = jnp.where(batch.terminated, 0.0, next_values)
    errors = batch.rewards + discount * bootstrap - values
    keep = jnp.where(batch.episode_end, 0.0, discount * decay)

    on_processor = jax.default_backend() == "cpu"
    return (one_by_one if on_processor else at_once)(errors, keep)


def one_by_one(errors: Float[Array, " N"], keep: Float[Array, " N"]) -> Float[Array, " N"]:
    """`advantage = error + keep * later advantage`, from the last step back."""

    def backwards(later, row):
        error, kept = row
        advantage = error + kept * later
        return advantage, advantage

    return jax.lax.scan(backwards, jnp.zeros_like(errors[0]), (errors, keep), reverse=True)[1]


def at_once(errors: Float[Array, " N"], keep: Float[Array, " N"]) -> Float[Array, " N"]:
    """The same in as many rounds as the number of steps has digits: an accelerator waits longer for
    each round than it computes."""

    def joined(later, row):
        (more, further), (error, kept) = later, row
        return error + kept * more, kept * further

    return jax.lax.associative_scan(joined, (errors, keep), reverse=True)[0]


def standardise(advantages: Float[Array, " N"]) -> Float[Array, " N"]:
    """Mean zero, standard deviation one."""
    centred = advantages - jnp.mean(advantages)
    return centred / (jnp.sqrt(jnp.mean(centred * centred)) + 1e-8)

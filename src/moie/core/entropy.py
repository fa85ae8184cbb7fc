"""Lower limits of exploration: the paper's two-phase entropy floor (section 6; design of the
authors' experiments), and a floor that follows from the run's budget."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

NO_FLOOR = -1e4


class EntropyFloor(eqx.Module):
    """No floor until the entropy first falls to `threshold`; from then on the floor starts there
    and falls by a fixed amount an iteration."""

    threshold: Float[Array, ""]
    iterations: Int[Array, ""]  # since the floor appeared; zero before

    @classmethod
    def start(cls, initial_entropy: Float[Array, ""], fraction: float) -> "EntropyFloor":
        """The threshold is a fraction of the initial entropy, but not above it."""
        threshold = jnp.minimum(initial_entropy * fraction, initial_entropy)
        return cls(threshold, jnp.zeros((), dtype=jnp.int32))

    def advance(
        self, entropy: Float[Array, ""], fall: float
    ) -> tuple["EntropyFloor", Float[Array, ""]]:
        """Look at the entropy of this iteration's anchor; the new state and the floor to keep."""
        active = (self.iterations > 0) | (entropy <= self.threshold)
        iterations = self.iterations + active.astype(self.iterations.dtype)
        floor = jnp.where(
            active, self.threshold - fall * iterations.astype(entropy.dtype), NO_FLOOR
        )
        return EntropyFloor(self.threshold, iterations), floor


def falling_log_std(
    first: float, last: float, reached_at: float, progress: Float[Array, ""]
) -> Float[Array, ""]:
    """The floor of every action's log standard deviation, when `progress` of the run is done: the
    standard deviation falls geometrically from `first` to `last`, where it is when
    `reached_at` is done. It does not depend on the number of actions, nor on how long a run is."""
    share = jnp.clip(progress / reached_at, 0.0, 1.0)
    return math.log(first) + share * (math.log(last) - math.log(first))

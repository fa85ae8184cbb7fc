"""The two-phase entropy floor (section 6 of the paper; design of the authors' experiments)."""

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

"""The mixture of interpretable experts, section 4 of the paper, for ONE state (callers `vmap`)."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from moie.core import gaussian


def membership_of(strength: Float[Array, "*N K"]) -> Float[Array, "*N K"]:
    """Strengths to memberships (eq. 1); the default expert adds the one below the line."""
    return strength / (jnp.sum(strength, axis=-1, keepdims=True) + 1.0)


class GaussianPolicy(eqx.Module):
    """A Gaussian whose standard deviation does not depend on the state."""

    log_std: eqx.AbstractVar[Float[Array, " A"]]

    @abc.abstractmethod
    def mean(self, state: Float[Array, " d"]) -> Float[Array, " A"]:
        """The mean action in a state."""

    def log_prob(self, state: Float[Array, " d"], action: Float[Array, " A"]) -> Float[Array, ""]:
        """Log density of an action in a state."""
        return gaussian.log_prob(self.mean(state), self.log_std, action)

    def entropy(self) -> Float[Array, ""]:
        """Entropy of the action distribution, the same in every state."""
        return gaussian.entropy(self.log_std)

    @property
    def learned(self) -> PyTree[bool]:
        """Whether each array is a parameter: a tree of True and False."""
        return jax.tree.map(lambda _: True, self)

    @property
    def n_parameters(self) -> int:
        """Numbers that are learned."""
        return sum(array.size for array in jax.tree.leaves(eqx.filter(self, self.learned)))


class MixturePolicy(GaussianPolicy):
    """`N(M psi(s), diag sigma^2)`: K experts, each a prototype, a weight and an action.

    `weights` may pass below zero during a gradient step; `magnitude` is what counts. `metric` is a
    positive factor for each feature's difference: what counts as close. The paper has none.
    """

    prototypes: Float[Array, "K d"]
    weights: Float[Array, " K"]
    actions: Float[Array, "K A"]
    log_std: Float[Array, " A"]
    temperature: Float[Array, ""]
    metric: Float[Array, " d"] | None

    def __init__(self, prototypes, weights, actions, log_std, temperature, metric=None):
        self.prototypes = jnp.asarray(prototypes)
        self.weights = jnp.asarray(weights)
        self.actions = jnp.asarray(actions)
        self.log_std = jnp.asarray(log_std)
        self.temperature = jnp.asarray(temperature, dtype=self.prototypes.dtype)
        self.metric = None if metric is None else jnp.asarray(metric)

    @property
    def magnitude(self) -> Float[Array, " K"]:
        """|c|, with slope one at zero: experts start at weight 0 and must be able to leave it."""
        return jnp.where(self.weights >= 0, self.weights, -self.weights)

    def measured(self, difference: Float[Array, "N d"]) -> Float[Array, "N d"]:
        """Differences of features, as the metric sees them."""
        return difference if self.metric is None else difference * self.metric[None, :]

    def activation(self, state: Float[Array, " d"]) -> Float[Array, " K"]:
        """phi (eq. 3): closeness to each prototype, one at the prototype itself."""
        difference = self.measured(state[None, :] - self.prototypes)
        return jnp.exp(-self.temperature * jnp.sum(difference * difference, axis=1))

    def strength(self, state: Float[Array, " d"]) -> Float[Array, " K"]:
        """w = c * phi (eq. 2)."""
        return self.magnitude * self.activation(state)

    def membership(self, state: Float[Array, " d"]) -> Float[Array, " K"]:
        """psi (eq. 1): each expert's share of the action."""
        return membership_of(self.strength(state))

    def default_share(self, state: Float[Array, " d"]) -> Float[Array, ""]:
        """The membership that no expert claims; near one on unfamiliar ground."""
        return 1.0 / (jnp.sum(self.strength(state)) + 1.0)

    def mean(self, state: Float[Array, " d"]) -> Float[Array, " A"]:
        """M psi(s): the default action is zero and adds nothing."""
        return self.membership(state) @ self.actions

    @property
    def learned(self) -> PyTree[bool]:
        """All but the temperature: K (d + A + 1) + A parameters, as the paper counts."""
        return eqx.tree_at(lambda p: p.temperature, super().learned, False)

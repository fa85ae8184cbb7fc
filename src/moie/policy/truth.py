"""How literally a mixture's program may be taken: the one place where that is defined.

A state's *parts* are the experts and the default, in order of membership. The policy does the blend
of all of them; a reader looks at the first few. The figures here say how far these two agree:

- *in range*: share of experts whose action lies in the action space;
- *coverage*: one minus the default's mean share;
- *attention*: mean over states of the smallest number of parts whose renormalised blend is within
  `TOLERANCE` of the action range of the policy's action, in every component;
- *near*: share of states in which the first part's action, or the blend of the first two, is within
  `NEAR` of the action range of the policy's action in every component;
- *wrong side*: of the components in which the policy's action is farther than `TOLERANCE` of the
  range from its middle, the share in which the first part's lies on the other side of it;
- *alone* and *pair*: the policy that does what the first part says, or the blend of the first two.
  Their return, beside that of the whole policy on the same seeds, is measured by `runs.truth`.

All compare actions as the environment receives them, clipped to the action space. No jax here.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from moie.errors import require
from moie.policy.base import Array
from moie.policy.mixture import Mixture

TOLERANCE = 0.05
"""Share of the action range within which two actions count as the same."""
NEAR = 0.1
"""Share of the action range within which a part says what the policy does."""
LARGEST = 4_000_000
"""Numbers that are held at once while blends are computed."""


def inside(policy: Mixture, actions: Array) -> NDArray[np.bool_]:
    """Which components of some actions (K, A) lie in the action space, up to single precision."""
    slack = 1e-6 * (policy.action_high - policy.action_low)
    return (actions >= policy.action_low - slack) & (actions <= policy.action_high + slack)


def in_range(policy: Mixture) -> float:
    """Share of experts whose action lies in the action space, up to single precision."""
    return float(inside(policy, policy.actions).all(axis=1).mean())


def largest_action(policy: Mixture) -> float:
    """Farthest that an expert's action lies from the middle of the action space, in halves of its
    range: one is the edge."""
    middle = (policy.action_low + policy.action_high) / 2
    half = (policy.action_high - policy.action_low) / 2
    half = np.where(half > 0, half, 1.0)  # an action of one value
    return float(np.max(np.abs(policy.actions - middle) / half))


def parts(policy: Mixture, states: Array) -> tuple[Array, NDArray[np.intp], Array]:
    """Memberships of all parts (N, K + 1) in falling order, which part each is (K is the default),
    and the actions of the parts (K + 1, A)."""
    memberships = policy.memberships(states)
    default = 1.0 - memberships.sum(axis=1, keepdims=True)
    shares = np.concatenate([memberships, default], axis=1)
    order = np.argsort(-shares, axis=1, kind="stable")
    actions = np.concatenate([policy.actions, policy.default_action[None, :]])
    return np.take_along_axis(shares, order, axis=1), order, actions


def needed_parts(policy: Mixture, states: Array) -> NDArray[np.intp]:
    """(N,): the smallest number of parts that give the policy's action, in each state."""
    some = max(1, LARGEST // ((policy.n_experts + 1) * policy.actions.shape[1]))
    if len(states) > some:
        pieces = [states[i : i + some] for i in range(0, len(states), some)]
        return np.concatenate([needed_parts(policy, piece) for piece in pieces])
    shares, order, actions = parts(policy, states)
    sums = np.cumsum(shares[:, :, None] * actions[order], axis=1)
    blends = sums / np.cumsum(shares, axis=1)[:, :, None]
    low, high = policy.action_low, policy.action_high
    whole = np.clip(blends[:, -1:], low, high)
    near = np.abs(np.clip(blends, low, high) - whole) <= TOLERANCE * (high - low)
    enough = np.asarray(near.all(axis=2))
    # All parts are always enough, whatever rounding says.
    enough[:, -1] = True
    return np.argmax(enough, axis=1) + 1


def attention(policy: Mixture, states: Array) -> float:
    """Mean of `needed_parts`: how many lines of the program one has to look at, at a time."""
    return float(needed_parts(policy, states).mean())


def near(policy: Mixture, states: Array, n_parts: int) -> NDArray[np.bool_]:
    """(N,): in which states the first parts say what the policy does, in every component."""
    span = policy.action_high - policy.action_low
    said, done = (
        policy_.clipped(policy_.means(states)) for policy_ in (led(policy, n_parts), policy)
    )
    return np.asarray((np.abs(said - done) <= NEAR * span).all(axis=1))


def wrong_side(policy: Mixture, states: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(N,) and (N,): components of which the first part says the other side of the middle, and
    components that count."""
    middle = (policy.action_low + policy.action_high) / 2
    span = policy.action_high - policy.action_low
    said, done = (
        policy_.clipped(policy_.means(states)) - middle for policy_ in (led(policy, 1), policy)
    )
    counts = np.abs(done) > TOLERANCE * span
    return (counts & (said * done < 0)).sum(axis=1), counts.sum(axis=1)


def coverage(policy: Mixture, states: Array) -> float:
    """One minus the default's mean share."""
    return float(policy.memberships(states).sum(axis=1).mean())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Led(Mixture):
    """A mixture that acts by its first few parts only: `led(policy, 1)` by the leading one."""

    n_parts: int

    def means(self, states: Array) -> Array:
        shares, order, actions = parts(self, states)
        shares, order = shares[:, : self.n_parts], order[:, : self.n_parts]
        return np.einsum("np,npa->na", shares, actions[order]) / shares.sum(axis=1, keepdims=True)

    def mean_of(self, state: Array) -> Array:
        return self.means(state[None, :])[0]


def led(policy: Mixture, n_parts: int) -> Led:
    """The policy that does what its first `n_parts` parts say."""
    require(n_parts >= 1, "n_parts", n_parts, "at least 1")
    own = {item.name: getattr(policy, item.name) for item in fields(Mixture)}
    return Led(**own, n_parts=n_parts)


def default_only(policy: Mixture) -> Mixture:
    """The policy that takes the default action everywhere: no expert has any weight."""
    return replace(policy, weights=np.zeros_like(policy.weights))

"""The discrete half of the policy update: which visited states are prototypes (section 5.2.1).

Every function says, for each prototype it puts in, the row of the batch it came from; `KEPT` marks
prototypes that stay.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core.gaussian import mean_shift
from moie.core.policy import MixturePolicy, membership_of
from moie.core.search import KEPT, Search, best_rows, rank_log_odds
from moie.core.trust_region import Anchor, Scalar, ScalarLike

HIGHEST_WEIGHT = 10.0
BISECTIONS = 60  # below the last bit of a double on [0, 10]


class Selection(eqx.Module):
    """A policy with other prototypes, and the batch row of each new one (`KEPT` elsewhere)."""

    policy: MixturePolicy
    rows: Int[Array, " K"]


def unchanged(policy: MixturePolicy) -> Selection:
    """The policy with all its prototypes."""
    return Selection(policy, jnp.full_like(policy.weights, KEPT, jnp.int32))


class Swap(eqx.Module):
    """The same after `swap_prototypes`, and the number of swaps to start from next."""

    policy: MixturePolicy
    rows: Int[Array, " K"]
    n_swaps: Scalar


def seed_prototypes(
    policy: MixturePolicy,
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
) -> Selection:
    """addClusters of Algorithm 2: the first expert stands at the first state and keeps its action;
    the others take the states of highest advantage and the actions taken there. As their weights
    and the first expert's action are zero, the policy's distribution does not change."""
    best = _best_rows(advantages, policy.weights.size - 1)
    first = jnp.zeros((1,), best.dtype)
    seeded = put(policy, jnp.concatenate([first + KEPT, best]), states, taken)
    prototypes = seeded.prototypes.at[0].set(states[0])
    seeded = eqx.tree_at(lambda p: p.prototypes, seeded, prototypes)
    return Selection(seeded, jnp.concatenate([first, best]))


def _best_rows(advantages: Float[Array, " N"], n: int) -> Int[Array, " n"]:
    """Rows of the n highest advantages, best first; again from the best if the batch is shorter."""
    best = jax.lax.top_k(advantages, min(n, advantages.size))[1].astype(jnp.int32)
    return best[jnp.arange(n) % best.size]


def put(
    policy: MixturePolicy,
    rows: Int[Array, " K"],
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
) -> MixturePolicy:
    """Prototype and action of each replaced expert from its row of the batch."""
    new = (rows != KEPT)[:, None]
    return eqx.tree_at(
        lambda p: (p.prototypes, p.actions),
        policy,
        (
            jnp.where(new, states[rows], policy.prototypes),
            jnp.where(new, taken[rows], policy.actions),
        ),
    )


def swap_objective(activations: Float[Array, "N K"], runners_up: int = 3) -> Scalar:
    """Top activation minus the mean of the top few, averaged over states (eq. 10). High where
    each state is close to one prototype and to one only."""
    n = min(runners_up, activations.shape[1])
    top = jax.lax.top_k(activations, n)[0]
    return jnp.mean(top[:, 0] - jnp.mean(top, axis=1))


def _measured(
    policy: MixturePolicy, states: Float[Array, "N d"], anchor: Anchor, runners_up: int
) -> tuple[Scalar, Scalar]:
    """Objective of a policy's prototypes, and its mean shift from the anchor."""
    activations = jax.vmap(policy.activation)(states)
    means = membership_of(policy.magnitude[None, :] * activations) @ policy.actions
    shift = mean_shift(means, anchor.means, anchor.log_std)
    return swap_objective(activations, runners_up), shift


def swap_prototypes(
    policy: MixturePolicy,
    states: Float[Array, "N d"],
    anchor: Anchor,
    bound: ScalarLike,
    n_swaps: Scalar,
    *,
    n_candidates: int,
    runners_up: int = 3,
    key: PRNGKeyArray,
) -> Swap:
    """swapClusters: random search for prototypes that spread and cover better (section 5.2.1).

    Candidate lists replace `ceil(n_swaps)` prototypes by states of the batch; experts of low
    membership (h1) and states far from all prototypes (h2) are drawn more often, with probability
    proportional to 1/(1+rank). The best objective among those within the bound wins if it beats
    the present one; if none does, the number of swaps is halved, down to one.

    Args:
        policy: its weights and actions stay.
        states: the batch.
        anchor: `policy` on the batch.
        bound: of the mean shift.
        n_swaps: where to start; a float that the caller keeps between iterations.
        n_candidates: lists to score in each try.
        runners_up: of the objective.
        key: of the random search.
    """
    search = Search.of(policy, states, anchor)
    present = search.kernel[len(states) :]
    membership = jnp.sum(membership_of(anchor.strength), axis=0)
    coverage = jnp.sum(present, axis=0)
    rows, swaps = best_rows(
        search,
        rank_log_odds(jnp.argsort(membership), states.dtype),
        rank_log_odds(jnp.argsort(coverage), states.dtype),
        bound,
        n_swaps,
        n_candidates=n_candidates,
        runners_up=runners_up,
        key=key,
    )
    new = rows != KEPT
    swapped = eqx.tree_at(
        lambda p: p.prototypes,
        policy,
        jnp.where(new[:, None], states[rows], policy.prototypes),
    )
    # The kernel's rows are rounded otherwise than the policy: what counts is checked on the policy.
    objective, shift = _measured(swapped, states, anchor, runners_up)
    before = swap_objective(present.T, runners_up)
    accept = jnp.any(new) & (shift < bound) & (objective > before)
    return Swap(
        jax.tree.map(partial(jnp.where, accept), swapped, policy),
        jnp.where(accept, rows, KEPT),
        jnp.where(accept, jnp.minimum(swaps * 1.8, float(new.size)), swaps),
    )


def compress(
    policy: MixturePolicy,
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
    anchor: Anchor,
    delete_bound: ScalarLike,
    reweight_bound: ScalarLike,
) -> Selection:
    """compressPolicy: delete every expert that the policy can do without, then use its place.

    From the smallest weight up, an expert is deleted if the mean shift from the anchor stays below
    `delete_bound`. The deleted are seeded anew with the highest-advantage states and their actions,
    in the order of deletion, and all get the one weight, found by bisection, that brings the mean
    shift up to `reweight_bound`. Nothing is deleted where a swap has used up the bound.
    """
    n_experts = policy.weights.size
    activations = jax.vmap(policy.activation)(states)

    def shift_of(weights, actions, activations) -> Scalar:
        means = membership_of(weights[None, :] * activations) @ actions
        return mean_shift(means, anchor.means, anchor.log_std)

    def try_delete(carry, expert):
        weights, deleted, n_deleted = carry
        without = weights.at[expert].set(0.0)
        spare = shift_of(without, policy.actions, activations) < delete_bound
        carry = (
            jnp.where(spare, without, weights),
            jnp.where(spare, deleted.at[expert].set(n_deleted), deleted),
            n_deleted + spare.astype(jnp.int32),
        )
        return carry, None

    room = shift_of(policy.magnitude, policy.actions, activations) < delete_bound
    start = (policy.magnitude, jnp.full((n_experts,), KEPT, jnp.int32), jnp.int32(0))
    order = jnp.argsort(policy.magnitude, stable=True)
    (_, place, _), _ = jax.lax.scan(try_delete, start, order)
    place = jnp.where(room, place, KEPT)
    deleted = place != KEPT
    rows = jnp.where(deleted, _best_rows(advantages, n_experts)[place], KEPT)

    seeded = put(policy, rows, states, taken)
    weights = jnp.where(deleted, 0.0, policy.magnitude)
    fresh_activations = jax.vmap(seeded.activation)(states)

    def bisect(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        trial = jnp.where(deleted, middle, weights)
        below = shift_of(trial, seeded.actions, fresh_activations) < reweight_bound
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    bracket = (jnp.zeros_like(weights[0]), jnp.full_like(weights[0], HIGHEST_WEIGHT))
    weight, _ = jax.lax.fori_loop(0, BISECTIONS, bisect, bracket)
    seeded = eqx.tree_at(lambda p: p.weights, seeded, jnp.where(deleted, weight, weights))
    return Selection(seeded, rows)

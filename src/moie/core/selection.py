"""The discrete half of the policy update: which visited states are prototypes (section 5.2.1).

Every function says, for each prototype it puts in, the row of the batch it came from; `KEPT` marks
prototypes that stay.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from moie.core.gaussian import mean_shift
from moie.core.policy import MixturePolicy, membership_of
from moie.core.trust_region import Anchor, Scalar, ScalarLike

KEPT = -1
HIGHEST_WEIGHT = 10.0
BISECTIONS = 60  # below the last bit of a double on [0, 10]


class Selection(eqx.Module):
    """A policy with other prototypes, and the batch row of each new one (`KEPT` elsewhere)."""

    policy: MixturePolicy
    rows: Int[Array, " K"]


class Swap(eqx.Module):
    """Result of `swap_prototypes`: what was kept, and the number of swaps to start from next."""

    policy: MixturePolicy
    rows: Int[Array, " K"]
    n_swaps: Scalar
    objective: Scalar
    mean_shift: Scalar


class Compression(eqx.Module):
    """Result of `compress`."""

    policy: MixturePolicy
    rows: Int[Array, " K"]
    deleted: Bool[Array, " K"]


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
    seeded = _put(policy, jnp.concatenate([first + KEPT, best]), states, taken)
    prototypes = seeded.prototypes.at[0].set(states[0])
    seeded = eqx.tree_at(lambda p: p.prototypes, seeded, prototypes)
    return Selection(seeded, jnp.concatenate([first, best]))


def _best_rows(advantages: Float[Array, " N"], n: int) -> Int[Array, " n"]:
    """Rows of the n highest advantages, best first; again from the best if the batch is shorter."""
    best = jax.lax.top_k(advantages, min(n, advantages.size))[1].astype(jnp.int32)
    return best[jnp.arange(n) % best.size]


def _put(
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


def _running_objective(activations: Float[Array, "K N"], runners_up: int) -> Scalar:
    """`swap_objective`, one expert a row: a running top few beats any sort."""
    n_experts, n_states = activations.shape
    top = [jnp.full((n_states,), -1.0, activations.dtype)] * min(runners_up, n_experts)
    for k in range(n_experts):
        rest = activations[k]
        for i, held in enumerate(top):
            top[i], rest = jnp.maximum(held, rest), jnp.minimum(held, rest)
    return jnp.mean(top[0] - sum(top) / len(top))


def _rank_log_odds(order: Int[Array, " M"], dtype) -> Float[Array, " M"]:
    """log 1/(1+rank), for items listed best first."""
    ranks = jnp.zeros_like(order).at[order].set(jnp.arange(order.size, dtype=order.dtype))
    return -jnp.log1p(ranks.astype(dtype))


def _draw_experts(
    key: PRNGKeyArray, log_odds: Float[Array, " K"], n_candidates: int
) -> Int[Array, "C K"]:
    """Experts in the order drawn without replacement: the Gumbel-top-k trick."""
    noise = jax.random.gumbel(key, (n_candidates, log_odds.size), log_odds.dtype)
    return jnp.argsort(-(log_odds[None, :] + noise), axis=1).astype(jnp.int32)


def _draw_states(
    key: PRNGKeyArray, log_odds: Float[Array, " N"], n_candidates: int, n: int
) -> Int[Array, "C n"]:
    """n distinct states for each candidate list, in the order drawn without replacement.

    Draws with replacement minus repeats are draws without replacement. A list whose draws repeat
    too often ends early and is filled with `KEPT`.
    """
    n_draws = min(4 * n + 32, 16 * n)
    cumulative = jnp.cumsum(jnp.exp(log_odds))
    uniform = jax.random.uniform(key, (n_candidates, n_draws), log_odds.dtype)
    draws = jnp.searchsorted(cumulative, uniform * cumulative[-1]).astype(jnp.int32)
    draws = jnp.minimum(draws, log_odds.size - 1)

    def distinct(drawn: Int[Array, " D"]) -> Int[Array, " n"]:
        seen_before = jnp.tril(drawn[:, None] == drawn[None, :], k=-1).any(axis=1)
        slot = jnp.where(seen_before, n, jnp.cumsum(~seen_before) - 1)
        return jnp.full((n,), KEPT, jnp.int32).at[slot].set(drawn, mode="drop")

    return jax.vmap(distinct)(draws)


class _Search(eqx.Module):
    """What scoring a candidate needs; computed once a swap."""

    kernel: Float[Array, "rows N"]  # activation of each state, then each prototype, on all states
    weights: Float[Array, "K 1"]
    actions: Float[Array, "A K"]
    anchor_means: Float[Array, "A N"]
    inverse_std: Float[Array, "A 1"]

    @classmethod
    def of(cls, policy: MixturePolicy, states: Float[Array, "N d"], anchor: Anchor) -> "_Search":
        centred = states - jnp.mean(states, axis=0, keepdims=True)
        squares = jnp.sum(centred * centred, axis=1)
        distances = squares[:, None] + squares[None, :] - 2.0 * centred @ centred.T
        kernel = jnp.exp(-policy.temperature * jnp.maximum(distances, 0.0))
        return cls(
            jnp.concatenate([kernel, jax.vmap(policy.activation)(states).T]),
            policy.magnitude[:, None],
            policy.actions.T,
            anchor.means.T,
            jnp.exp(-anchor.log_std)[:, None],
        )

    def score(self, rows: Int[Array, " K"], runners_up: int) -> tuple[Scalar, Scalar]:
        """Objective and mean shift of one list of prototypes, given as rows of the kernel."""
        activations = self.kernel[rows]
        strength = self.weights * activations
        means = (self.actions @ strength) / (jnp.sum(strength, axis=0, keepdims=True) + 1.0)
        z = (means - self.anchor_means) * self.inverse_std
        shift = 0.5 * jnp.mean(jnp.sum(z * z, axis=0))
        return _running_objective(activations, runners_up), shift


def swap_prototypes(
    policy: MixturePolicy,
    states: Float[Array, "N d"],
    anchor: Anchor,
    bound: ScalarLike,
    n_swaps: Scalar,
    *,
    n_candidates: int,
    runners_up: int = 3,
    coverage: Float[Array, " N"] | None = None,
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
        coverage: of each state, low ones are put in first; h2, the sum of activations, without.
        key: of the random search.
    """
    n_experts, n_states = policy.weights.size, states.shape[0]
    dtype = states.dtype
    search = _Search.of(policy, states, anchor)
    present = n_states + jnp.arange(n_experts, dtype=jnp.int32)
    nothing = (search.score(present, runners_up)[0], present)
    membership = jnp.sum(membership_of(anchor.strength), axis=0)
    expert_odds = _rank_log_odds(jnp.argsort(membership), dtype)
    if coverage is None:
        coverage = jnp.sum(search.kernel[n_states:], axis=0)
    state_odds = _rank_log_odds(jnp.argsort(coverage), dtype)

    def attempt(swaps: Scalar, key: PRNGKeyArray):
        expert_key, state_key = jax.random.split(key)
        experts = _draw_experts(expert_key, expert_odds, n_candidates)
        chosen = _draw_states(state_key, state_odds, n_candidates, n_experts)
        used = jnp.arange(n_experts, dtype=dtype)[None, :] < jnp.ceil(swaps)
        chosen = jnp.where(used & (chosen != KEPT), chosen, present[experts])

        def keep_best(best, candidate):
            expert, state = candidate
            rows = present.at[expert].set(state)
            objective, shift = search.score(rows, runners_up)
            better = (shift < bound) & (objective > best[0])
            pick = partial(jnp.where, better)
            return jax.tree.map(pick, (objective, rows), best), None

        return jax.lax.scan(keep_best, nothing, (experts, chosen))[0]

    def unsuccessful(carry) -> Bool[Array, ""]:
        _, last, _, (_, rows) = carry
        return ~last & jnp.all(rows == present)

    def try_fewer(carry):
        swaps, _, key, _ = carry
        key, own = jax.random.split(key)
        best = attempt(swaps, own)
        failed = jnp.all(best[1] == present)
        fewer = jnp.where(failed, jnp.maximum(swaps / 2.0, 1.0), swaps)
        return fewer, failed & (jnp.ceil(swaps) <= 1.0), key, best

    start = (n_swaps, jnp.zeros((), bool), key, nothing)
    swaps, _, _, (_, rows) = jax.lax.while_loop(unsuccessful, try_fewer, start)

    new = rows != present
    swapped = eqx.tree_at(
        lambda p: p.prototypes,
        policy,
        jnp.where(new[:, None], states[jnp.where(new, rows, 0)], policy.prototypes),
    )
    # The kernel's rows are rounded otherwise than the policy: what counts is checked on the policy.
    activations = jax.vmap(swapped.activation)(states)
    means = membership_of(swapped.magnitude[None, :] * activations) @ swapped.actions
    shift = mean_shift(means, anchor.means, anchor.log_std)
    objective = swap_objective(activations, runners_up)
    before = swap_objective(search.kernel[n_states:].T, runners_up)
    accept = jnp.any(new) & (shift < bound) & (objective > before)
    return Swap(
        jax.tree.map(lambda a, b: jnp.where(accept, a, b), swapped, policy),
        jnp.where(accept & new, rows, KEPT),
        jnp.where(accept, jnp.minimum(swaps * 1.8, float(n_experts)), swaps),
        jnp.where(accept, objective, before),
        jnp.where(accept, shift, 0.0),
    )


def compress(
    policy: MixturePolicy,
    states: Float[Array, "N d"],
    taken: Float[Array, "N A"],
    advantages: Float[Array, " N"],
    anchor: Anchor,
    delete_bound: ScalarLike,
    reweight_bound: ScalarLike,
) -> Compression:
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

    seeded = _put(policy, rows, states, taken)
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
    return Compression(seeded, rows, deleted)

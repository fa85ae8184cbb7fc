"""The random search behind the swap of prototypes: draws, scores, and ever fewer swaps.

Cost: all candidates need only rows of one N x N kernel matrix, a running top few over the experts
beats any sort, and with a traced number of swaps one compilation serves all. Shifts are computed
from the best candidate down, until one is within the bound: few are needed.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from moie.core.policy import MixturePolicy
from moie.core.trust_region import Anchor, Scalar, ScalarLike

KEPT = -1
"""Marks a prototype that stays, where the batch row of a new one would stand."""
SIDE_BY_SIDE = 500
"""Candidates that an accelerator scores at once. A processor takes one after the other: then the
rows that it reads stay in its cache."""


def running_objective(activations: Sequence[Float[Array, " N"]], runners_up: int) -> Scalar:
    """`swap_objective`, one expert an item: a running top few beats any sort."""
    top = [jnp.full_like(activations[0], -1.0)] * min(runners_up, len(activations))
    for rest in activations:
        for i, held in enumerate(top):
            top[i], rest = jnp.maximum(held, rest), jnp.minimum(held, rest)
    return jnp.mean(top[0] - sum(top) / len(top))


def rank_log_odds(order: Int[Array, " M"], dtype) -> Float[Array, " M"]:
    """log 1/(1+rank), for items listed best first."""
    return -jnp.log1p(jnp.argsort(order).astype(dtype))


def draw_experts(
    key: PRNGKeyArray, log_odds: Float[Array, " K"], n_candidates: int
) -> Int[Array, "C K"]:
    """Experts in the order drawn without replacement: the Gumbel-top-k trick."""
    noise = jax.random.gumbel(key, (n_candidates, log_odds.size), log_odds.dtype)
    return jnp.argsort(-(log_odds[None, :] + noise), axis=1).astype(jnp.int32)


def draw_states(
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
        return _placed(slot, drawn, n)

    return jax.vmap(distinct)(draws)


def _placed(slots: Int[Array, " m"], items: Int[Array, " m"], n: int) -> Int[Array, " n"]:
    """A list with each item at its slot, `KEPT` where none has it; slots from n on are dropped. By
    comparison, which an accelerator does at once, and in one order only."""
    is_here = slots[:, None] == jnp.arange(n)[None, :]
    return jnp.max(jnp.where(is_here, items[:, None], KEPT), axis=0).astype(jnp.int32)


class Search(eqx.Module):
    """The arrays that scoring a candidate needs, computed once per swap."""

    kernel: Float[Array, "rows N"]  # activation of each state, then each prototype, on all states
    weights: Float[Array, "K 1"]
    actions: Float[Array, "A K"]
    anchor_means: Float[Array, "A N"]
    inverse_std: Float[Array, "A 1"]

    @classmethod
    def of(cls, policy: MixturePolicy, states: Float[Array, "N d"], anchor: Anchor) -> "Search":
        centred = policy.measured(states - jnp.mean(states, axis=0, keepdims=True))
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

    def objective(self, rows: Int[Array, " K"], runners_up: int) -> Scalar:
        """The objective of a list of prototypes, given as rows of the kernel. Rows are read one by
        one, in place: indexing with an array would copy them first."""
        activations = [
            jax.lax.dynamic_index_in_dim(self.kernel, rows[k], keepdims=False)
            for k in range(rows.size)
        ]
        return running_objective(activations, runners_up)

    def shift(self, rows: Int[Array, " K"]) -> Scalar:
        """Mean shift from the anchor of the policy with these prototypes."""
        strength = self.weights * self.kernel[rows]
        means = (self.actions @ strength) / (jnp.sum(strength, axis=0, keepdims=True) + 1.0)
        z = (means - self.anchor_means) * self.inverse_std
        return 0.5 * jnp.mean(jnp.sum(z * z, axis=0))


def best_within(
    search: Search,
    lists: Int[Array, "C K"],
    present: tuple[Scalar, Int[Array, " K"]],
    bound: ScalarLike,
    runners_up: int,
    at_once: int,
) -> tuple[Scalar, Int[Array, " K"]]:
    """The best objective of a candidate that beats the present one with a shift within the bound,
    and its list; the present one where there is none. `at_once`: candidates scored side by side."""
    objectives = _each(lambda rows: search.objective(rows, runners_up), lists, at_once)
    best_first = jnp.argsort(-objectives, stable=True)

    def unsure(carry) -> Bool[Array, ""]:
        n_seen, (objective, _) = carry
        next_best = objectives[best_first[jnp.minimum(n_seen, len(lists) - 1)]]
        return (n_seen < len(lists)) & (next_best > objective)

    def look(carry):
        n_seen, best = carry
        some = best_first[jnp.minimum(n_seen + jnp.arange(at_once), len(lists) - 1)]
        within = _each(lambda rows: search.shift(rows) < bound, lists[some], at_once)
        good = within & (objectives[some] > best[0])
        first = some[jnp.argmax(good)]  # the best of them, as they are sorted
        found = (objectives[first], lists[first])
        better = jnp.any(good)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), found, best)
        return n_seen + at_once, best

    return jax.lax.while_loop(unsure, look, (jnp.int32(0), present))[1]


def _each(function: Callable, lists: Int[Array, "C K"], at_once: int) -> Array:
    return jax.lax.map(function, lists, batch_size=at_once if at_once > 1 else None)


def best_rows(
    search: Search,
    expert_odds: Float[Array, " K"],
    state_odds: Float[Array, " N"],
    bound: ScalarLike,
    n_swaps: Scalar,
    *,
    n_candidates: int,
    runners_up: int,
    key: PRNGKeyArray,
) -> tuple[Int[Array, " K"], Scalar]:
    """The best list of prototypes found, and the number of swaps it was found with.

    The list is one of batch rows, `KEPT` for what stays. While no candidate beats the present
    prototypes the number of swaps is halved, down to one.
    """
    n_experts, n_states = expert_odds.size, state_odds.size
    present = n_states + jnp.arange(n_experts, dtype=jnp.int32)
    nothing = (search.objective(present, runners_up), present)
    at_once = 1 if jax.default_backend() == "cpu" else min(SIDE_BY_SIDE, n_candidates)

    def attempt(swaps: Scalar, key: PRNGKeyArray):
        expert_key, state_key = jax.random.split(key)
        experts = draw_experts(expert_key, expert_odds, n_candidates)
        chosen = draw_states(state_key, state_odds, n_candidates, n_experts)
        used = jnp.arange(n_experts, dtype=swaps.dtype)[None, :] < jnp.ceil(swaps)
        chosen = jnp.where(used & (chosen != KEPT), chosen, present[experts])
        lists = jax.vmap(_placed, in_axes=(0, 0, None))(experts, chosen, n_experts)
        return best_within(search, lists, nothing, bound, runners_up, at_once)

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
    return jnp.where(rows != present, rows, KEPT), swaps

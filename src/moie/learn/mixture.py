"""The mixture of interpretable experts: Algorithm 2 of the paper, in the paper's order."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from moie.core import gaussian
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.selection import KEPT, compress, seed_prototypes, swap_prototypes, unchanged
from moie.core.trust_region import (
    Anchor,
    PolicyProjection,
    Scalar,
    ScalarLike,
    divergence,
    less_rounding,
    seen_kl,
)
from moie.learn.algorithm import Keys, Method, Outcome, Sampled, falling_floor
from moie.learn.config import LearnerConfig, PolicyConfig, SelectionConfig
from moie.learn.update import (
    PolicyMoments,
    Problem,
    start_moments,
    update_actions,
    update_all,
    update_either,
)


class Own(eqx.Module):
    """Kept between iterations, here and by crisp: Adam's state, and how many prototypes a swap
    tries first."""

    moments: Any
    n_swaps: Scalar


def start(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> tuple[MixturePolicy, Own]:
    """Section 5.1: one expert of weight one, all actions zero. Where its prototype stands does not
    matter before the first batch, which puts it at its first state."""
    settings = config.policy
    prototypes = jnp.zeros((settings.experts, n_features))
    weights = jnp.zeros(settings.experts).at[0].set(1.0)
    policy = first_policy(settings, n_actions, prototypes, weights)
    n_swaps = jnp.asarray(settings.experts, policy.weights.dtype)
    return policy, Own(start_moments(config.update, policy), n_swaps)


def first_policy(
    settings: PolicyConfig,
    n_actions: int,
    prototypes: Float[Array, "K d"],
    weights: Float[Array, " K"],
    metric: Float[Array, " d"] | None = None,
) -> MixturePolicy:
    """A mixture whose experts all do nothing."""
    actions = jnp.zeros((settings.experts, n_actions))
    log_std = gaussian.equal_log_std(settings.initial_std, n_actions)
    return MixturePolicy(prototypes, weights, actions, log_std, settings.temperature, metric)


class Change(NamedTuple):
    """A policy after a change of its prototypes."""

    policy: MixturePolicy
    n_swaps: Scalar
    """The number of swaps to start from next."""
    rows: Int[Array, " K"]
    """Row of the batch that each new prototype came from; `KEPT` where it stayed."""
    swaps: Int[Array, ""]
    deletions: Int[Array, ""]


def change_prototypes(
    selection: SelectionConfig,
    policy: MixturePolicy,
    n_swaps: Scalar,
    sampled: Sampled,
    anchor: Anchor,
    bound: ScalarLike,
    *,
    key: PRNGKeyArray,
) -> Change:
    """swapClusters and, where it is switched on, compressPolicy, within a bound, in every second
    iteration."""

    def change() -> Change:
        swap = swap_prototypes(
            policy,
            sampled.states,
            anchor,
            bound,
            n_swaps,
            n_candidates=selection.candidates,
            runners_up=selection.runners_up,
            key=key,
        )
        n_swapped = jnp.sum(swap.rows != KEPT, dtype=jnp.int32)
        if not selection.compress:
            return Change(swap.policy, swap.n_swaps, swap.rows, n_swapped, none)
        compressed = compress(
            swap.policy,
            sampled.states,
            sampled.taken,
            sampled.advantages,
            anchor,
            selection.delete_share * bound,
            selection.reweight_share * bound,
        )
        return Change(
            compressed.policy,
            swap.n_swaps,
            jnp.where(compressed.rows != KEPT, compressed.rows, swap.rows),
            n_swapped,
            jnp.sum(compressed.rows != KEPT, dtype=jnp.int32),
        )

    none = jnp.zeros((), jnp.int32)
    same = Change(policy, n_swaps, unchanged(policy).rows, none, none)
    return jax.lax.cond(sampled.iteration % 2 == 1, change, lambda: same)


def _ascend(
    config: LearnerConfig,
    changed: Bool[Array, ""],
    policy: MixturePolicy,
    moments: PolicyMoments,
    problem: Problem,
    *,
    key: PRNGKeyArray,
) -> tuple[PolicyProjection, PolicyMoments]:
    """The partial update where prototypes were changed, else the full one. A condition that differs
    between seeds side by side would cost both: for them the two are one scan."""

    @jax.custom_batching.custom_vmap
    def one(changed, policy, moments, problem, key):
        return jax.lax.cond(
            changed,
            lambda: update_actions(config, policy, moments, problem, key=key),
            lambda: update_all(config, policy, moments, problem, key=key),
        )

    @one.def_vmap
    def many(_, batched, *arguments):
        def either(changed, policy, moments, problem, key):
            return update_either(config, policy, moments, problem, changed, key=key)

        axes = jax.tree.map(lambda is_batched: 0 if is_batched else None, batched)
        found = jax.vmap(either, in_axes=axes)(*arguments)
        return found, jax.tree.map(lambda _: True, found)

    return one(changed, policy, moments, problem, key)


def update(
    config: LearnerConfig,
    policy: GaussianPolicy,
    own: Any,
    sampled: Sampled,
    *,
    key: PRNGKeyArray,
) -> Outcome:
    """One iteration, from the advantages on."""
    assert isinstance(policy, MixturePolicy)
    first: MixturePolicy = policy
    states, keys = sampled.states, Keys.of(key)
    seeded = jax.lax.cond(
        sampled.iteration == 0,
        lambda: seed_prototypes(first, states, sampled.taken, sampled.advantages),
        lambda: unchanged(first),
    )
    present = seeded.policy
    anchor, bound = Anchor.of(present, states, sampled.taken), config.trust_region.bound
    within = less_rounding(bound, anchor.means, anchor)
    change = change_prototypes(
        config.selection, present, own.n_swaps, sampled, anchor, within, key=keys.selection
    )

    changed = jnp.any(change.rows != KEPT)
    floor = sampled.entropy_floor
    problem = Problem(states, sampled.taken, sampled.advantages, anchor, floor)
    projection, moments = _ascend(
        config, changed, change.policy, own.moments, problem, key=keys.ascent
    )
    return Outcome(
        projection.policy,
        Own(moments, change.n_swaps),
        seen_kl(
            divergence(projection.policy, states, anchor), bound, projection.gaussian.means, anchor
        ),
        {
            "weight_step": projection.weight_step,
            "mean_step": projection.gaussian.mean_step,
            "covariance_step": projection.gaussian.covariance_step,
            "swaps": change.swaps,
            "deletions": change.deletions,
            "full_update": 1 - changed.astype(jnp.int32),
        },
        jnp.where(change.rows != KEPT, change.rows, seeded.rows),
        jnp.zeros_like(present.weights),  # they are visited states
    )


MIXTURE = Method(start, update, falling_floor)

"""The mixture of interpretable experts: Algorithm 2 of the paper, in the paper's order."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from moie.core import gaussian
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.selection import KEPT, compress, seed_prototypes, swap_prototypes
from moie.core.trust_region import Anchor, Scalar, ScalarLike, divergence, less_rounding, seen_kl
from moie.learn.algorithm import Keys, Method, Outcome, Sampled, falling_floor
from moie.learn.config import LearnerConfig, SelectionConfig
from moie.learn.update import PolicyMoments, Problem, start_moments, update_actions, update_all


class Own(eqx.Module):
    """Kept between iterations: Adam's states, and how many prototypes a swap tries first."""

    moments: PolicyMoments
    n_swaps: Scalar


def start(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> tuple[MixturePolicy, Own]:
    """Section 5.1: one expert of weight one, all actions zero. Where its prototype stands does not
    matter before the first batch, which puts it at its first state."""
    settings = config.policy
    policy = MixturePolicy(
        jnp.zeros((settings.experts, n_features)),
        jnp.zeros(settings.experts).at[0].set(1.0),
        jnp.zeros((settings.experts, n_actions)),
        gaussian.equal_log_std(settings.initial_std, n_actions),
        settings.temperature,
    )
    n_swaps = jnp.asarray(settings.experts, policy.weights.dtype)
    return policy, Own(start_moments(config.update, policy), n_swaps)


def change_prototypes(
    selection: SelectionConfig,
    policy: MixturePolicy,
    n_swaps: Scalar,
    sampled: Sampled,
    anchor: Anchor,
    bound: ScalarLike,
    *,
    key: PRNGKeyArray,
) -> tuple[MixturePolicy, Scalar, Int[Array, " K"], Int[Array, ""], Int[Array, ""]]:
    """swapClusters and compressPolicy, within a bound: the policy, how many swaps to start from
    next, the rows put in, and how many were swapped and deleted."""
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
    compressed = compress(
        swap.policy,
        sampled.states,
        sampled.taken,
        sampled.advantages,
        anchor,
        selection.delete_share * bound,
        selection.reweight_share * bound,
    )
    rows = jnp.where(compressed.rows != KEPT, compressed.rows, swap.rows)
    n_swapped = jnp.sum(swap.rows != KEPT, dtype=jnp.int32)
    n_deleted = jnp.sum(compressed.deleted, dtype=jnp.int32)
    return compressed.policy, swap.n_swaps, rows, n_swapped, n_deleted


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
    kept = jnp.full((config.policy.experts,), KEPT, jnp.int32)
    states, keys = sampled.states, Keys.of(key)

    def seed():
        seeded = seed_prototypes(first, states, sampled.taken, sampled.advantages)
        return seeded.policy, seeded.rows

    present, seeded_rows = jax.lax.cond(sampled.iteration == 0, seed, lambda: (first, kept))
    anchor, bound = Anchor.of(present, states, sampled.taken), config.trust_region.bound
    none = jnp.zeros((), jnp.int32)
    chosen, n_swaps, rows, swaps, deletions = jax.lax.cond(
        sampled.iteration % 2 == 1,
        lambda: change_prototypes(
            config.selection,
            present,
            own.n_swaps,
            sampled,
            anchor,
            less_rounding(bound, anchor.means, anchor),
            key=keys.selection,
        ),
        lambda: (present, own.n_swaps, kept, none, none),
    )

    changed = jnp.any(rows != KEPT)
    floor = sampled.entropy_floor
    problem = Problem(states, sampled.taken, sampled.advantages, anchor, floor)
    projection, moments = jax.lax.cond(
        changed,
        lambda: update_actions(config, chosen, own.moments, problem, key=keys.ascent),
        lambda: update_all(config, chosen, own.moments, problem, key=keys.ascent),
    )
    return Outcome(
        projection.policy,
        Own(moments, n_swaps),
        seen_kl(
            divergence(projection.policy, states, anchor), bound, projection.gaussian.means, anchor
        ),
        {
            "weight_step": projection.weight_step,
            "mean_step": projection.gaussian.mean_step,
            "covariance_step": projection.gaussian.covariance_step,
            "swaps": swaps,
            "deletions": deletions,
            "full_update": 1 - changed.astype(jnp.int32),
        },
        jnp.where(rows != KEPT, rows, seeded_rows),
        jnp.zeros_like(present.weights),  # they are visited states
    )


MIXTURE = Method(start, update, falling_floor)

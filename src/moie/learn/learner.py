"""Algorithm 2 of the paper, in the paper's order, as one pure function over one state."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core import critic as critics
from moie.core.advantage import gae, standardise
from moie.core.batch import Batch
from moie.core.critic import ValueNetwork
from moie.core.entropy import EntropyFloor
from moie.core.policy import MixturePolicy
from moie.core.selection import KEPT, compress, seed_prototypes, swap_prototypes
from moie.core.trust_region import Anchor, Scalar, divergence
from moie.learn.config import LearnerConfig
from moie.learn.update import (
    PolicyMoments,
    Problem,
    fit_critic,
    start_moments,
    update_actions,
    update_all,
)


class LearnerState(eqx.Module):
    """All that an iteration hands to the next. No random state: keys follow from the iteration."""

    policy: MixturePolicy
    moments: PolicyMoments
    critic: ValueNetwork
    critic_moments: optax.OptState
    floor: EntropyFloor
    n_swaps: Scalar
    iteration: Int[Array, ""]
    key: PRNGKeyArray


class Report(eqx.Module):
    """What happened in an iteration, measured on its batch."""

    kl: Scalar
    entropy: Scalar
    entropy_floor: Scalar
    weight_step: Scalar
    mean_step: Scalar
    covariance_step: Scalar
    swaps: Int[Array, ""]
    deletions: Int[Array, ""]
    full_update: Int[Array, ""]
    default_share: Scalar
    critic_loss: Scalar
    rows: Int[Array, " K"]
    """Row of the batch that each prototype put in came from; `KEPT` where it stayed."""
    share: Float[Array, " K"]
    """Mean membership of each expert over the batch."""
    lead: Float[Array, " K"]
    """Share of the batch's states in which the expert's membership is the largest."""


def start(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> LearnerState:
    """Section 5.1: one expert of weight one, all actions zero. Where its prototype stands does not
    matter before the first batch, which puts it at its first state."""
    settings = config.policy
    critic_key, run_key = jax.random.split(key)
    dtype = jnp.zeros(()).dtype  # explicit ones keep the state's types fixed: one compilation
    policy = MixturePolicy(
        jnp.zeros((settings.experts, n_features)),
        jnp.zeros(settings.experts).at[0].set(1.0),
        jnp.zeros((settings.experts, n_actions)),
        jnp.full((n_actions,), math.log(settings.initial_std), dtype),
        settings.temperature,
    )
    twins = critics.make_twins(n_features, config.critic.hidden, key=critic_key)
    return LearnerState(
        policy=policy,
        moments=start_moments(config.update, policy),
        critic=twins,
        critic_moments=jax.vmap(optax.adam(config.critic.critic_rate).init)(twins),
        floor=EntropyFloor.start(policy.entropy(), config.trust_region.entropy_fraction),
        n_swaps=jnp.asarray(settings.experts, dtype),
        iteration=jnp.zeros((), jnp.int32),
        key=run_key,
    )


def evaluate_policy(
    config: LearnerConfig, twins: ValueNetwork, batch: Batch
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """computeGAE: advantages, and the critic's targets by the critic before its fit."""
    value = jax.vmap(partial(critics.value, twins))
    values = value(batch.states)
    advantages = gae(
        values,
        value(batch.next_states),
        batch.rewards,
        batch.terminated,
        batch.episode_end,
        config.critic.discount,
        config.critic.decay,
    )
    return advantages, advantages + values


def _change_prototypes(
    config: LearnerConfig,
    policy: MixturePolicy,
    n_swaps: Scalar,
    batch: Batch,
    advantages: Float[Array, " N"],
    anchor: Anchor,
    *,
    key: PRNGKeyArray,
):
    """swapClusters and compressPolicy: the policy, the rows put in, and what was done."""
    bound, selection = config.trust_region.bound, config.selection
    swap = swap_prototypes(
        policy,
        batch.states,
        anchor,
        bound,
        n_swaps,
        n_candidates=selection.candidates,
        runners_up=selection.runners_up,
        key=key,
    )
    compressed = compress(
        swap.policy,
        batch.states,
        batch.taken,
        advantages,
        anchor,
        selection.delete_share * bound,
        selection.reweight_share * bound,
    )
    rows = jnp.where(compressed.rows != KEPT, compressed.rows, swap.rows)
    n_swapped = jnp.sum(swap.rows != KEPT, dtype=jnp.int32)
    n_deleted = jnp.sum(compressed.deleted, dtype=jnp.int32)
    return compressed.policy, swap.n_swaps, rows, n_swapped, n_deleted


def learn(config: LearnerConfig, state: LearnerState, batch: Batch) -> tuple[LearnerState, Report]:
    """One iteration of Algorithm 2, from its batch on."""
    key = jax.random.fold_in(state.key, state.iteration)
    critic_key, swap_key, update_key = jax.random.split(key, 3)
    kept = jnp.full((config.policy.experts,), KEPT, jnp.int32)

    advantages, targets = evaluate_policy(config, state.critic, batch)
    advantages = standardise(advantages)
    critic, critic_moments, critic_loss = fit_critic(
        config.critic, state.critic, state.critic_moments, batch.states, targets, key=critic_key
    )

    def seed():
        seeded = seed_prototypes(state.policy, batch.states, batch.taken, advantages)
        return seeded.policy, seeded.rows

    policy, seeded_rows = jax.lax.cond(state.iteration == 0, seed, lambda: (state.policy, kept))

    anchor = Anchor.of(policy, batch.states, batch.taken)
    floor, entropy_floor = state.floor.advance(policy.entropy(), config.trust_region.entropy_fall)
    none = jnp.zeros((), jnp.int32)
    policy, n_swaps, rows, swaps, deletions = jax.lax.cond(
        state.iteration % 2 == 1,
        lambda: _change_prototypes(
            config, policy, state.n_swaps, batch, advantages, anchor, key=swap_key
        ),
        lambda: (policy, state.n_swaps, kept, none, none),
    )

    changed = jnp.any(rows != KEPT)
    problem = Problem(batch.states, batch.taken, advantages, anchor, entropy_floor)
    projection, moments = jax.lax.cond(
        changed,
        lambda: update_actions(config, policy, state.moments, problem, key=update_key),
        lambda: update_all(config, policy, state.moments, problem, key=update_key),
    )

    policy = projection.policy
    membership = jax.vmap(policy.membership)(batch.states)
    leader = jnp.argmax(membership, axis=1)
    report = Report(
        kl=divergence(policy, batch.states, anchor),
        entropy=policy.entropy(),
        entropy_floor=entropy_floor,
        weight_step=projection.weight_step,
        mean_step=projection.gaussian.mean_step,
        covariance_step=projection.gaussian.covariance_step,
        swaps=swaps,
        deletions=deletions,
        full_update=1 - changed.astype(jnp.int32),
        default_share=1.0 - jnp.mean(jnp.sum(membership, axis=1)),
        critic_loss=critic_loss,
        rows=jnp.where(rows != KEPT, rows, seeded_rows),
        share=jnp.mean(membership, axis=0),
        lead=jnp.mean(jax.nn.one_hot(leader, config.policy.experts), axis=0),
    )
    state = LearnerState(
        policy, moments, critic, critic_moments, floor, n_swaps, state.iteration + 1, state.key
    )
    return state, report


start_jit = jax.jit(start, static_argnums=(0, 1, 2))
"""`start`, as one program instead of a hundred small ones that would each be compiled."""

learn_jit = jax.jit(learn, static_argnums=0)
"""`learn`, compiled once for a configuration and the shape of its batches."""


@lru_cache(maxsize=16)
def compiled(
    config: LearnerConfig, n_features: int, n_actions: int, n_steps: int
) -> Callable[[LearnerState, Batch], tuple[LearnerState, Report]]:
    """`learn` for batches of n steps, compiled before there is one."""
    state = jax.eval_shape(lambda: start(config, n_features, n_actions, key=jax.random.key(0)))
    dtype = jnp.zeros(()).dtype

    def column(*shape: int, dtype=dtype) -> Any:
        return jax.ShapeDtypeStruct((n_steps, *shape), dtype)

    batch = Batch(
        states=column(n_features),
        next_states=column(n_features),
        taken=column(n_actions),
        rewards=column(),
        terminated=column(dtype=jnp.bool_),
        episode_end=column(dtype=jnp.bool_),
    )
    return learn_jit.lower(config, state, batch).compile()

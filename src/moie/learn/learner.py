"""One iteration of any learner as one pure function over one state: what all of them share."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from moie.core.advantage import gae, standardise
from moie.core.batch import Batch
from moie.core.entropy import EntropyFloor
from moie.core.network import Perceptron, make_twins, smaller_value
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.trust_region import Scalar, ScalarLike
from moie.learn import registry
from moie.learn.algorithm import Keys, Sampled
from moie.learn.config import LearnerConfig
from moie.learn.update import fit_critic


class LearnerState(eqx.Module):
    """Everything that one iteration hands to the next. Keys follow from the iteration's number."""

    policy: GaussianPolicy
    own: Any
    """State that the algorithm keeps besides the policy."""
    critic: Perceptron
    critic_moments: optax.OptState
    floor: EntropyFloor
    iteration: Int[Array, ""]
    key: PRNGKeyArray


class Report(eqx.Module):
    """Measurements of an iteration, on its batch."""

    kl: Scalar
    entropy: Scalar
    entropy_floor: Scalar
    critic_loss: Scalar
    facts: dict[str, Array]
    """Scalars of the algorithm."""
    rows: Int[Array, " K"] | None  # this and `distances`: see `Outcome`
    share: Float[Array, " K"] | None
    """Mean membership of each expert over the batch."""
    lead: Float[Array, " K"] | None
    """Share of the batch's states in which the expert's membership is the largest."""
    distances: Float[Array, " K"] | None


def key_of(seed: int) -> PRNGKeyArray:
    """The key of a seed; jax alone takes the lower 32 bits only."""
    key = jax.random.key(seed % 2**32)
    return jax.random.fold_in(key, seed >> 32) if seed >> 32 else key


def start(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> LearnerState:
    """The first policy, untrained critics."""
    critic_key, run_key, policy_key = jax.random.split(key, 3)
    method = registry.algorithm(config.algorithm).load()
    policy, own = method.start(config, n_features, n_actions, key=policy_key)
    twins = make_twins(n_features, config.critic.hidden, key=critic_key)
    return LearnerState(
        policy=policy,
        own=own,
        critic=twins,
        critic_moments=jax.vmap(optax.adam(config.critic.critic_rate).init)(twins),
        floor=EntropyFloor.start(policy.entropy(), config.trust_region.entropy_fraction),
        iteration=jnp.zeros((), jnp.int32),
        key=run_key,
    )


def evaluate_policy(
    config: LearnerConfig, twins: Perceptron, batch: Batch
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """computeGAE: advantages, and the critic's targets by the critic before its fit."""
    value = jax.vmap(partial(smaller_value, twins))
    values, next_values = value(batch.states), value(batch.next_states)
    advantages = gae(batch, values, next_values, config.critic.discount, config.critic.decay)
    return advantages, advantages + values


def _memberships(policy: GaussianPolicy, states: Float[Array, "N d"]):
    """Share and lead of each expert, and the default's share; nothing without experts."""
    if not isinstance(policy, MixturePolicy):
        return None, None, {}
    membership = jax.vmap(policy.membership)(states)
    leader = jax.nn.one_hot(jnp.argmax(membership, axis=1), membership.shape[1])
    default_share = 1.0 - jnp.mean(jnp.sum(membership, axis=1))
    facts = {"default_share": default_share}
    return jnp.mean(membership, axis=0), jnp.mean(leader, axis=0), facts


def learn(
    config: LearnerConfig, state: LearnerState, batch: Batch, progress: ScalarLike = 0.0
) -> tuple[LearnerState, Report]:
    """One iteration, from its batch on: what all algorithms share, around the update of one.
    `progress`: the share of the run's iterations that was done before."""
    key = jax.random.fold_in(state.key, state.iteration)
    advantages, targets = evaluate_policy(config, state.critic, batch)
    critic, critic_moments, critic_loss = fit_critic(
        config.critic,
        state.critic,
        state.critic_moments,
        batch.states,
        targets,
        key=Keys.of(key).critic,
    )
    fall = config.trust_region.entropy_fall
    floor, falling = state.floor.advance(state.policy.entropy(), fall)
    progress = jnp.asarray(progress, falling.dtype)
    method = registry.algorithm(config.algorithm).load()
    entropy_floor = method.floor(config, state.policy, progress=progress, falling=falling)
    sampled = Sampled(
        states=batch.states,
        taken=batch.taken,
        advantages=standardise(advantages),
        entropy_floor=entropy_floor,
        iteration=state.iteration,
        progress=progress,
    )
    outcome = method.update(config, state.policy, state.own, sampled, key=key)

    share, lead, facts = _memberships(outcome.policy, batch.states)
    report = Report(
        kl=outcome.kl,
        entropy=outcome.policy.entropy(),
        entropy_floor=entropy_floor,
        critic_loss=critic_loss,
        facts={**outcome.facts, **facts},
        rows=outcome.rows,
        share=share,
        lead=lead,
        distances=outcome.distances,
    )
    state = LearnerState(
        outcome.policy, outcome.own, critic, critic_moments, floor, state.iteration + 1, state.key
    )
    return state, report


start_jit = jax.jit(start, static_argnums=(0, 1, 2))
"""`start`, as one program instead of a hundred small ones that would each be compiled."""

learn_jit = jax.jit(learn, static_argnums=0)
"""`learn`, compiled once for a configuration and the shape of its batches."""


@lru_cache(maxsize=16)
def compiled(
    config: LearnerConfig, n_features: int, n_actions: int, n_steps: int
) -> Callable[[LearnerState, Batch, np.float32], tuple[LearnerState, Report]]:
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
    progress: Any = jax.ShapeDtypeStruct((), dtype)
    return learn_jit.lower(config, state, batch, progress).compile()

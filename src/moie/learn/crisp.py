"""Crisp: a mixture that may be taken at its word. The same policy as the paper's, prototypes are
visited states, and the same trust region; `docs/crisp.md` says what differs and why.

Its parts can each be switched off (`CrispConfig`): actions that stay in the action range, a learned
metric, a standard deviation that falls with the budget, a price on blends.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from moie.core import gaussian
from moie.core.entropy import NO_FLOOR, falling_log_std
from moie.core.policy import GaussianPolicy, MixturePolicy
from moie.core.selection import KEPT, Selection, put, swap_prototypes, unchanged
from moie.core.trust_region import Anchor, Scalar, less_rounding, seen_kl
from moie.learn.algorithm import Keys, Method, Outcome, Sampled
from moie.learn.ascent import Box, Parameters, climb, start_moments
from moie.learn.config import CrispConfig, LearnerConfig
from moie.learn.mixture import Own, change_prototypes, first_policy
from moie.learn.update import Problem

SETTLED = 0.1
"""Share of the bound that is left at the end of a run."""
LARGEST_WEIGHT = 1000.0
"""Largest weight of an expert, and the inverse of the smallest."""


def start(
    config: LearnerConfig, n_features: int, n_actions: int, *, key: PRNGKeyArray
) -> tuple[MixturePolicy, Own]:
    """All weights one, all actions zero. Where the prototypes stand does not matter before the
    first batch, which gives each a visited state."""
    settings = config.policy
    prototypes, weights = jnp.zeros((settings.experts, n_features)), jnp.ones(settings.experts)
    metric = jnp.ones(n_features) if config.crisp.learn_metric else None
    policy = first_policy(settings, n_actions, prototypes, weights, metric)
    n_swaps = jnp.asarray(settings.experts, policy.weights.dtype)
    return policy, Own(start_moments(policy), n_swaps)


def log_std_floor(config: LearnerConfig, policy: GaussianPolicy, progress: Scalar) -> Array:
    """Each action's floor: where the budget puts it, but not above the policy's own value."""
    settings = config.crisp
    if not settings.std_by_budget:
        return jnp.full_like(policy.log_std, NO_FLOOR)
    first, last = config.policy.initial_std, settings.final_std
    floor = falling_log_std(first, last, settings.final_std_at, progress)
    return jnp.minimum(floor, policy.log_std)


def entropy_floor(
    config: LearnerConfig, policy: GaussianPolicy, *, progress: Scalar, falling: Scalar
) -> Scalar:
    """The entropy that the floors of all actions make up, instead of the paper's."""
    if not config.crisp.std_by_budget:
        return jnp.full_like(falling, NO_FLOOR)
    return gaussian.entropy(log_std_floor(config, policy, progress))


def price_of_blends(config: CrispConfig, progress: Scalar) -> Scalar:
    """Nothing in the first part of the run, then rising to its full height."""
    share = (progress - config.price_from) / (config.price_to - config.price_from)
    return config.price * jnp.clip(share, 0.0, 1.0)


def bound_at(config: LearnerConfig, progress: Scalar) -> Scalar:
    """The whole bound at first; towards the end less and less of it, so that the policy settles. A
    task that is solved has no advantages but noise, which would push it about for ever."""
    left = (1.0 - progress) / max(1.0 - config.crisp.settle_from, 1e-6)
    return config.trust_region.bound * jnp.clip(left, SETTLED, 1.0)


def box_of(config: LearnerConfig, policy: MixturePolicy, floor: Float[Array, " A"]) -> Box:
    """Limits of the parameters. The learner's action range is [-1, 1]."""
    settings = config.crisp
    weights = jnp.full_like(policy.weights, math.log(LARGEST_WEIGHT))
    actions = jnp.full_like(policy.actions, 1.0 if settings.in_range else jnp.inf)
    highest = jnp.full_like(policy.log_std, max(0.0, math.log(config.policy.initial_std)))
    metric = None
    if policy.metric is not None:
        metric = jnp.full_like(policy.metric, math.log(settings.metric_limit))
    return Box(
        Parameters(-weights, -actions, floor, None if metric is None else -metric),
        Parameters(weights, actions, jnp.maximum(highest, policy.log_std), metric),
    )


def _seed(
    config: LearnerConfig,
    policy: MixturePolicy,
    n_swaps: Scalar,
    sampled: Sampled,
    keys: Keys,
) -> Selection:
    """Prototypes for the first policy: random states of the batch, then a swap for ones that
    spread. All actions are zero, so nothing changes about what the policy does."""
    n_experts, states = policy.weights.size, sampled.states
    order = jax.random.permutation(jax.random.fold_in(keys.ascent, 1), len(states))
    rows = order[:n_experts].astype(jnp.int32)
    policy = put(policy, rows, states, jnp.zeros_like(sampled.taken))
    swap = swap_prototypes(
        policy,
        states,
        Anchor.of(policy, states, sampled.taken),
        config.trust_region.bound,
        n_swaps,
        n_candidates=config.selection.candidates,
        runners_up=config.selection.runners_up,
        key=keys.selection,
    )
    return Selection(swap.policy, jnp.where(swap.rows != KEPT, swap.rows, rows))


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
    first, keys = policy, Keys.of(key)
    seeded = jax.lax.cond(
        sampled.iteration == 0,
        lambda: _seed(config, first, own.n_swaps, sampled, keys),
        lambda: unchanged(first),
    )
    states, present = sampled.states, seeded.policy
    anchor, bound = Anchor.of(present, states, sampled.taken), bound_at(config, sampled.progress)
    # Experts that are seeded anew take the actions that were taken: those, within the range.
    limit = 1.0 if config.crisp.in_range else jnp.inf
    seeds = eqx.tree_at(lambda s: s.taken, sampled, jnp.clip(sampled.taken, -limit, limit))
    share = config.crisp.swap_share * bound
    change = change_prototypes(
        config.selection, present, own.n_swaps, seeds, anchor, share, key=keys.selection
    )

    box = box_of(config, present, log_std_floor(config, present, sampled.progress))
    price = price_of_blends(config.crisp, sampled.progress)
    within = less_rounding(bound, anchor.means, anchor)
    problem = Problem(states, sampled.taken, sampled.advantages, anchor, sampled.entropy_floor)
    ascent = climb(
        config.crisp, change.policy, own.moments, problem, box, within, price, key=keys.ascent
    )
    # A swap is checked before, on its own; should rounding have carried it outside the bound, the
    # policy stays as it was.
    holds = ascent.kl <= within
    after = jax.tree.map(lambda new, old: jnp.where(holds, new, old), ascent.policy, present)
    facts = {
        "segment_share": jnp.where(holds, ascent.share, 0.0),
        "swaps": jnp.where(holds, change.swaps, 0),
        "deletions": jnp.where(holds, change.deletions, 0),
        "price": price,
    }
    if after.metric is not None:
        facts |= {"metric_min": jnp.min(after.metric), "metric_max": jnp.max(after.metric)}
    return Outcome(
        after,
        Own(ascent.moments, change.n_swaps),
        # A KL that is not a number must not be hidden.
        seen_kl(
            jnp.where(holds | jnp.isnan(ascent.kl), ascent.kl, 0.0), bound, anchor.means, anchor
        ),
        facts,
        jnp.where(holds & (change.rows != KEPT), change.rows, seeded.rows),
        jnp.zeros_like(present.weights),  # they are visited states
    )


CRISP = Method(start, update, entropy_floor)

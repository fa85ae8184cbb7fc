"""What the program of a swarm hands on: to the next step or iteration, and to the host."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from moie.accelerated.tasks import World
from moie.core.policy import GaussianPolicy
from moie.learn.learner import LearnerState, Report


class Running(NamedTuple):
    """Episodes under way, one in each environment."""

    steps: Int[Array, "*N"]
    total: Float[Array, "*N"]
    """The return so far."""
    discounted: Float[Array, "*N"]


class Seeds(eqx.Module):
    """All that an iteration hands to the next; S seeds with E environments each."""

    learner: LearnerState
    feature_mean: Float[Array, "S d"]
    feature_scale: Float[Array, "S d"]
    worlds: World
    running: Running
    key: PRNGKeyArray
    batches: Int[Array, " S"]
    """Sampled so far: the key of a batch follows from it."""
    is_sound: Bool[Array, " S"]
    """Whether learning has given finite numbers so far; a seed that has not stays where it was."""


class Plan(NamedTuple):
    """What an iteration is to do."""

    goes: Bool[Array, ""]
    """Whether there is one; the program has a fixed number of places."""
    learns: Bool[Array, ""]
    progress: Float[Array, ""]
    hold: Int[Array, ""]
    """Steps for which each random action is held."""


class Ended(NamedTuple):
    """Sums over the episodes that came to their end in a batch."""

    episodes: Float[Array, " S"]
    total: Float[Array, " S"]
    discounted: Float[Array, " S"]
    length: Float[Array, " S"]
    distance: Float[Array, " S"]
    lost: Float[Array, " S"]
    """Episodes that the simulator broke off with numbers that are not finite."""


class Visited(NamedTuple):
    """States that became prototypes, K of each seed; where none did, anything."""

    state: Float[Array, "S K d"]
    qpos: Float[Array, "S K q"]
    qvel: Float[Array, "S K v"]
    environment: Int[Array, "S K"]
    step: Int[Array, "S K"]


class Record(NamedTuple):
    """What an iteration leaves on the host."""

    report: Report
    policy: GaussianPolicy
    visited: Visited | None
    states: Float[Array, "S n d"]
    """Some states of the batch, in the task's units."""
    mean: Float[Array, "S d"]
    variance: Float[Array, "S d"]
    """Of all states of the batch."""
    ended: Ended
    is_sound: Bool[Array, " S"]


class Moment(NamedTuple):
    """One step of every environment."""

    state: Float[Array, "S E d"]
    next_state: Float[Array, "S E d"]
    taken: Float[Array, "S E A"]
    reward: Float[Array, "S E"]
    terminated: Bool[Array, "S E"]
    ends: Bool[Array, "S E"]
    qpos: Float[Array, "S E q"]
    qvel: Float[Array, "S E v"]
    step: Int[Array, "S E"]


def ended_of(ends: Array, running: Running, distance: Array, is_lost: Array) -> Ended:
    """The sums of one step."""

    def total(x: Array) -> Array:
        return jnp.sum(jnp.where(ends, x, 0), axis=1, dtype=jnp.float32)

    return Ended(
        total(jnp.ones_like(distance)),
        total(running.total),
        total(running.discounted),
        total(running.steps),
        total(distance),
        total(is_lost),
    )


def visited_of(report: Report, rows: Moment, n_moments: int) -> Visited | None:
    """The rows that became prototypes."""
    if report.rows is None:
        return None
    chosen = jnp.maximum(report.rows, 0)

    def pick(x: Array) -> Array:
        return jax.vmap(lambda some, at: some[at])(x, chosen)

    return Visited(
        pick(rows.state), pick(rows.qpos), pick(rows.qvel), chosen // n_moments, pick(rows.step)
    )


def chosen_where(condition: Array, one: Array, other: Array) -> Array:
    """`one` where the condition holds, which has fewer axes. Keys do not change."""
    if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        return one
    shaped = condition.reshape(*condition.shape, *(1,) * (one.ndim - condition.ndim))
    return jnp.where(shaped, one, other)


def finite_seeds(tree: Any) -> Bool[Array, " S"]:
    """Whether all numbers of a seed are finite."""
    leaves = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    good = [jnp.isfinite(x).all(axis=tuple(range(1, x.ndim))) for x in leaves]
    return jnp.stack(good).all(axis=0)

"""Sampling and learning of all seeds as one compiled program, several iterations a call.

Seeds and their environments are one batch for the simulator; `learn.learner` learns, as it does on
a processor, one seed beside the other. Nothing leaves the accelerator but what is written down.
"""

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from moie.accelerated.records import (
    Ended,
    Moment,
    Plan,
    Record,
    Running,
    Seeds,
    chosen_where,
    ended_of,
    finite_seeds,
    visited_of,
)
from moie.accelerated.tasks import Step, Task, World
from moie.core.batch import Batch
from moie.core.trust_region import ScalarLike
from moie.learn import learner
from moie.learn.learner import LearnerState, Report
from moie.runs.config import RunConfig

SHOWN = 100
"""States of a batch that go to the host, to measure how literally a policy may be read."""


class Program:
    """The compiled iterations of a swarm."""

    def __init__(self, task: Task, config: RunConfig, n_environments: int, places: int):
        """`places`: iterations of a call, at most."""
        self.task, self.config, self.places = task, config, places
        self.n_environments = n_environments
        self.n_moments = config.batch_steps // n_environments
        low, high = task.action_low, task.action_high
        self._centre, self._range = jnp.zeros_like(low), jnp.ones_like(low)
        if config.scales_actions:
            self._centre, self._range = jnp.asarray((low + high) / 2), jnp.asarray((high - low) / 2)
        self._compiled: dict[int, Any] = {}
        # As functions of jax they are traced once, however often they are named.
        self._iterate, self._learn = jax.jit(self._iterate_once), jax.jit(self.learn)
        self._measured, self._start = jax.jit(self.measured), jax.jit(jax.vmap(self._start_one))

    def start(self, seeds: list[int]) -> Seeds:
        """Untrained policies, robots at the beginning of an episode."""
        return self._start(jnp.stack([learner.key_of(seed) for seed in seeds]))

    def _start_one(self, key: PRNGKeyArray) -> Seeds:
        task = self.task
        shape = (task.n_features, len(task.action_low))
        state = learner.start(self.config.learner, *shape, key=key)
        begin, later = jax.random.split(jax.random.fold_in(key, 0x5EED))
        worlds = jax.vmap(task.reset)(jax.random.split(begin, self.n_environments))
        none = jnp.zeros(self.n_environments)
        return Seeds(
            learner=state,
            feature_mean=jnp.zeros(task.n_features),
            feature_scale=jnp.ones(task.n_features),
            worlds=worlds,
            running=Running(none.astype(jnp.int32), none, none),
            key=later,
            batches=jnp.zeros((), jnp.int32),
            is_sound=jnp.asarray(True),
        )

    def compile(self, seeds: Seeds) -> None:
        """For so many seeds, ahead of the first call; calls take no more than the time of their
        iterations."""
        if len(seeds.is_sound) in self._compiled:
            return
        types: tuple[Any, ...] = (jnp.bool_, jnp.bool_, jnp.float32, jnp.int32)
        columns: Any = [jax.ShapeDtypeStruct((self.places,), one) for one in types]
        plans = Plan(*columns)
        # Single precision is single: no product of matrices in TF32.
        with jax.default_matmul_precision("highest"):
            compiled = jax.jit(self.iterations).lower(seeds, plans).compile()
        self._compiled[len(seeds.is_sound)] = compiled

    def run(self, seeds: Seeds, plans: Plan) -> tuple[Seeds, Record]:
        """`iterations`, compiled."""
        return self._compiled[len(seeds.is_sound)](seeds, plans)

    def measure(self, seeds: Seeds) -> dict[str, Float[np.ndarray, " S"]]:
        """Returns of the policies where they were learned, by kind of action."""
        with jax.default_matmul_precision("highest"):
            return {
                kind: np.asarray(self._measured(seeds, jnp.float32(noise)))
                for kind, noise in (("sampled", 1.0), ("mean", 0.0))
            }

    def iterations(self, seeds: Seeds, plans: Plan) -> tuple[Seeds, Record]:
        """As many as there are places, those that the plan leaves out passed over."""

        def one(seeds: Seeds, plan: Plan) -> tuple[Seeds, Record]:
            blank = jax.tree.map(
                lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(self._iterate, seeds, plan)[1]
            )
            return jax.lax.cond(
                plan.goes, self._iterate, lambda seeds, _: (seeds, blank), seeds, plan
            )

        return jax.lax.scan(one, seeds, plans)

    def _iterate_once(self, seeds: Seeds, plan: Plan) -> tuple[Seeds, Record]:
        seeds, moments, ended = self.sample(seeds, plan)
        rows = jax.tree.map(self.by_environment, moments)
        batch = self.batch(seeds, rows)
        blank = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype),
            jax.eval_shape(self._learn, seeds.learner, batch, plan.progress)[1],
        )
        learned, report = jax.lax.cond(
            plan.learns,
            self._learn,
            lambda state, *_: (state, blank),
            seeds.learner,
            batch,
            plan.progress,
        )
        is_sound = seeds.is_sound & finite_seeds(report) & finite_seeds(learned)
        kept = jax.tree.map(partial(chosen_where, is_sound), learned, seeds.learner)
        seeds = eqx.tree_at(lambda s: (s.learner, s.is_sound), seeds, (kept, is_sound))
        record = Record(
            report=report,
            policy=kept.policy,
            visited=visited_of(report, rows, self.n_moments),
            states=rows.state[:, :: -(-rows.state.shape[1] // SHOWN)],
            mean=jnp.mean(rows.state, axis=1),
            variance=jnp.var(rows.state, axis=1),
            ended=ended,
            is_sound=is_sound,
        )
        return seeds, record

    def learn(
        self, state: LearnerState, batch: Batch, progress: ScalarLike
    ) -> tuple[LearnerState, Report]:
        """One iteration of every seed. All that learn are in the same one, and its number is one
        number: where it decides what is done, the rest is not computed."""
        iteration = jnp.max(state.iteration)

        def one(state: LearnerState, batch: Batch) -> tuple[LearnerState, Report]:
            state = eqx.tree_at(lambda s: s.iteration, state, iteration)
            return learner.learn(self.config.learner, state, batch, progress)

        return jax.vmap(one)(state, batch)

    @staticmethod
    def by_environment(x: Array) -> Array:
        """(T, S, E, ...) to (S, E T, ...): the steps of an environment end to end."""
        x = jnp.moveaxis(x, 0, 2)
        return x.reshape(x.shape[0], -1, *x.shape[3:])

    def batch(self, seeds: Seeds, rows: Moment) -> Batch:
        """In the learner's units. An environment's last step is an end, but no termination: the
        episode goes on in the next batch."""
        mean, scale = seeds.feature_mean[:, None], seeds.feature_scale[:, None]
        is_cut = jnp.arange(rows.ends.shape[1]) % self.n_moments == self.n_moments - 1
        return Batch(
            (rows.state - mean) / scale,
            (rows.next_state - mean) / scale,
            rows.taken,
            rows.reward,
            rows.terminated,
            rows.ends | is_cut,
        )

    def sample(self, seeds: Seeds, plan: Plan) -> tuple[Seeds, Moment, Ended]:
        """A batch of every seed; episodes go on where the last batch left them."""
        task = self.task
        keys = jax.vmap(jax.random.fold_in)(seeds.key, seeds.batches)

        def begun(key: PRNGKeyArray, moment: Array) -> World:
            key = jax.random.fold_in(jax.random.fold_in(key, 0x2E5E7), moment)
            return jax.vmap(task.reset)(jax.random.split(key, self.n_environments))

        def step(carry: tuple[World, Running], moment: Array):
            worlds, running = carry
            number = moment // plan.hold
            state, taken, answer, is_lost = self._stepped(seeds, worlds, keys, number, 1.0)
            reward, terminated = answer.reward, answer.terminated
            running = self._counted(running, reward)
            ends = terminated | (running.steps >= task.longest)
            row = Moment(
                state,
                jnp.where(is_lost[..., None], state, answer.observation),
                taken,
                reward,
                terminated,
                ends,
                _together(task.qpos, worlds),
                worlds.body.qvel,
                running.steps - 1,
            )
            before, after = (_together(task.distance, some) for some in (worlds, answer.world))
            ended = ended_of(ends, running, jnp.where(is_lost, before, after), is_lost)
            fresh = jax.vmap(begun, in_axes=(0, None))(keys, moment)
            started, went_on = (fresh, _none(running)), (answer.world, running)
            return jax.tree.map(partial(chosen_where, ends), started, went_on), (row, ended)

        (worlds, running), (moments, ended) = jax.lax.scan(
            step, (seeds.worlds, seeds.running), jnp.arange(self.n_moments)
        )
        seeds = eqx.tree_at(
            lambda s: (s.worlds, s.running, s.batches),
            seeds,
            (worlds, running, seeds.batches + 1),
        )
        return seeds, moments, jax.tree.map(lambda x: jnp.sum(x, axis=0), ended)

    def measured(self, seeds: Seeds, noise: ScalarLike) -> Float[Array, " S"]:
        """Mean return of as many episodes as an evaluation in Gymnasium has, with the policies as
        they are. `noise`: factor of their standard deviation; zero for mean actions."""
        task, n = self.task, self.config.evaluation.evaluation_episodes

        def started(key: PRNGKeyArray) -> tuple[World, PRNGKeyArray]:
            begin, later = jax.random.split(jax.random.fold_in(key, 0xE7A1))
            return jax.vmap(task.reset)(jax.random.split(begin, n)), later

        worlds, keys = jax.vmap(started)(jax.vmap(jax.random.fold_in)(seeds.key, seeds.batches))
        total = jnp.zeros((len(keys), n))

        def goes_on(carry: tuple[World, Array, Array, Array]) -> Array:
            _, _, is_over, number = carry
            return (number < task.longest) & ~is_over.all()

        def step(carry: tuple[World, Array, Array, Array]) -> tuple[World, Array, Array, Array]:
            worlds, total, is_over, number = carry
            _, _, answer, _ = self._stepped(seeds, worlds, keys, number, noise)
            total = total + jnp.where(is_over, 0.0, answer.reward)
            return answer.world, total, is_over | answer.terminated, number + 1

        carry = (worlds, total, jnp.zeros_like(total, bool), jnp.int32(0))
        return jnp.mean(jax.lax.while_loop(goes_on, step, carry)[1], axis=1)

    def _stepped(
        self, seeds: Seeds, worlds: World, keys: PRNGKeyArray, number: Array, noise: ScalarLike
    ) -> tuple[Float[Array, "S E d"], Float[Array, "S E A"], Step, Bool[Array, "S E"]]:
        """One step of every robot: the states before it, the actions in the learner's units, the
        answers, and which robots were lost: those end, without reward. `number`: of the noise."""
        task, policy = self.task, seeds.learner.policy
        state = _together(task.observe, worlds)

        def drawn(key: PRNGKeyArray) -> Array:
            shape = (state.shape[1], len(task.action_low))
            return jax.random.normal(jax.random.fold_in(key, number), shape)

        features = (state - seeds.feature_mean[:, None]) / seeds.feature_scale[:, None]
        mean = jax.vmap(lambda one, some: jax.vmap(one.mean)(some))(policy, features)
        taken = mean + jnp.exp(policy.log_std)[:, None] * noise * jax.vmap(drawn)(keys)
        given = self._centre + self._range * taken
        if self.config.actions == "clipped":
            given = jnp.clip(given, task.action_low, task.action_high)
        answer: Step = _together(task.step, worlds, given)
        is_lost = ~(jnp.isfinite(answer.observation).all(axis=-1) & jnp.isfinite(answer.reward))
        answer = answer._replace(
            reward=jnp.where(is_lost, 0.0, answer.reward), terminated=answer.terminated | is_lost
        )
        return state, taken, answer, is_lost

    def _counted(self, running: Running, reward: Array) -> Running:
        """Episodes under way, with one more step."""
        discount = self.config.learner.critic.discount ** running.steps.astype(jnp.float32)
        return Running(
            running.steps + 1, running.total + reward, running.discounted + reward * discount
        )


def program_of(config: RunConfig, places: int) -> Program:
    """The program of a swarm; groups of seeds that follow one another share it."""
    return _program_of(replace(config, seed=0, iterations=1, schedule=1), places)


@lru_cache(maxsize=1)
def _program_of(config: RunConfig, places: int) -> Program:
    return Program(Task(config.task), config, config.environments, places)


def _together(function: Any, *arguments: Any) -> Any:
    """Apply a function of one environment, with seeds and environments as one axis."""
    n_seeds, n_environments = jax.tree.leaves(arguments)[0].shape[:2]
    size = n_seeds * n_environments
    flat = jax.tree.map(lambda x: x.reshape(size, *x.shape[2:]), arguments)
    answer = jax.vmap(function)(*flat)
    return jax.tree.map(lambda x: x.reshape(n_seeds, n_environments, *x.shape[1:]), answer)


def _none(running: Running) -> Running:
    return jax.tree.map(jnp.zeros_like, running)

"""THE training loop: it joins the rollout and the learner, and records what happens."""

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass

import jax
import numpy as np

from moie.core.batch import Batch
from moie.environments import spaces, specs, tasks
from moie.environments.consent import resume_command
from moie.errors import EnvironmentFault, Stopped
from moie.files import as_json, remove_leftovers, write_bytes
from moie.learn import learner
from moie.learn.learner import LearnerState, Report
from moie.policy.base import Policy
from moie.rollout.episode import Episode, Job, Purpose, Steps, lay_end_to_end
from moie.rollout.pool import Pool, ignored_seed
from moie.rollout.scaling import Scaling
from moie.runs.config import RunConfig
from moie.runs.deployment import deploy, first_policy, scaling_of, visits
from moie.runs.disk import checkpoint, metrics
from moie.runs.disk.checkpoint import Checkpoint, Counters
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import Records, Row
from moie.runs.evaluation import longest_episode
from moie.runs.machinery import Machinery
from moie.runs.rows import Backlog, episode_numbers, finished, learning_numbers, truth_numbers
from moie.stopping import BEFORE_THE_FIRST

BACKLOG = 1  # evaluations that may still be under way when the next batch is begun


@dataclass(frozen=True)
class Session:
    """Files, processes and threads that are open while a run goes on."""

    records: Records
    pool: Pool
    backlog: Backlog
    aside: Executor
    """A thread for compiling, saving and learning, while the main one looks after the workers."""
    learn: "Future[Callable[[LearnerState, Batch, np.float32], tuple[LearnerState, Report]]]"


class Training:
    """A run in progress. All that must survive is in `state`, `policy`, `counters` and `waiting`,
    the rows of the metrics whose evaluation is under way."""

    def __init__(
        self, run: RunDirectory, config: RunConfig, machinery: Machinery, is_new: bool = False
    ):
        """`is_new`: the run is kept only if it completes an iteration."""
        self.run, self.config, self.machinery = run, config, machinery
        self._is_new = is_new
        with tasks.opened(config.task, packaged=machinery.packaged_env) as env:
            spaces.check(env)
            self._shape = tuple(
                math.prod(space.shape or ()) for space in (env.observation_space, env.action_space)
            )
            key = learner.key_of(config.seed)
            self.state = learner.start_jit(config.learner, *self._shape, key=key)
            self.policy = first_policy(config, env, self.state.policy)
            self._longest = longest_episode(env)
        self.counters = Counters()
        self.waiting: tuple[tuple[Row, Policy | None], ...] = ()
        self._saved = self.counters

    def restore(self, last: Checkpoint) -> None:
        """Go on from a checkpoint."""
        self.state = checkpoint.from_arrays(self.state, last.learner)
        self.policy, self.waiting = last.policy, last.waiting
        self.counters = self._saved = last.counters

    def is_complete(self) -> bool:
        """Whether all iterations are learned and the result is measured."""
        rows = metrics.read(self.run.metrics_file).rows
        done = self.counters.iteration >= self.config.iterations
        done &= self.run.policy_file.exists()
        return done and bool(rows) and rows[-1]["iteration"] >= self.config.iterations

    def go(self) -> None:
        """Learn until the last iteration, then measure the final policy."""
        run, config, machinery = self.run, self.config, self.machinery
        first = self.counters.iteration
        written = self.waiting[0][0]["iteration"] if self.waiting else first
        remove_leftovers(run.path)
        remove_leftovers(run.checkpoints)
        run.fault_file.unlink(missing_ok=True)
        if first:
            run.bring_policy(self.policy)  # an earlier process may have ended just before it did
        spec, limits = specs.pack(config.task), (machinery.workers, machinery.worker_timeout)
        try:
            with (
                closing(Records(run.metrics_file, run.tensorboard, written)) as records,
                Pool(spec, *limits, machinery.check, packaged=machinery.packaged_env) as pool,
                ThreadPoolExecutor(1) as aside,
                machinery.progress.of(config, first),
            ):
                learn = aside.submit(
                    learner.compiled, config.learner, *self._shape, config.batch_steps
                )
                backlog = Backlog(config, self._longest, pool)
                self._go(Session(records, pool, backlog, aside, learn))
        except EnvironmentFault as error:
            news = "no iteration was complete, so nothing is kept: the same command repeats it"
            if not self._is_for_nothing:
                write_bytes(run.fault_file, as_json(error.record))
                news = (
                    f"what repeats it is in {run.fault_file}; the run stopped after iteration "
                    f"{self.counters.iteration}, {resume_command(run.path, config.task)} goes on "
                    "there"
                )
            raise EnvironmentFault(f"{error}; {news}", error.record) from error
        except Stopped as stop:
            if self._is_for_nothing:
                raise Stopped(BEFORE_THE_FIRST) from stop
            raise type(stop)(
                f"stopped after iteration {self.counters.iteration} of {config.iterations}; "
                f"go on with: {resume_command(run.path, config.task)}"
            ) from stop

    @property
    def _is_for_nothing(self) -> bool:
        return self._is_new and self.counters.iteration == 0

    def _go(self, session: Session) -> None:
        backlog, show = session.backlog, self.machinery.progress.show
        if self.counters.iteration == 0:
            warning = ignored_seed(session.pool, self.policy, self.config.seed)
            if warning is not None:
                self.machinery.progress.note(warning)
        for row, policy in self.waiting:
            backlog.begin(row["iteration"], policy, row)
        try:
            while self.counters.iteration < self.config.iterations:
                row = self.iterate(session)
                show(row)
                self.machinery.tell(row)
            self._save_aside(session).result()
            row = {"iteration": self.counters.iteration, "steps": self.counters.steps}
            final = backlog.begin(self.counters.iteration, self.policy, row, is_final=True)
            backlog.wait()
            if final.measured is not None:
                self.run.write_policy(final.measured)
        except Exception:  # Stopped, a fault, or a mistake in a callback
            self._save_aside(session).result()
            for row, _ in self.waiting:  # not complete, but better than none; a resume mends them
                if row["iteration"] < self.counters.iteration:
                    session.records.write(row)
            raise
        rows = backlog.complete()
        for row in rows:
            session.records.write(row)
            show(row)
        with suppress(Stopped):  # it is complete
            self.machinery.tell(rows[-1])

    def _start(self, pool: Pool, purpose: Purpose, iteration: int) -> None:
        """Begin a batch; the workers go on with it by themselves for a while."""
        hold = self.config.scaling_hold if purpose is Purpose.SCALING else 1
        is_raw = self.config.actions == "raw"

        def job_of(number: int, max_steps: int) -> Job:
            return Job(self.config.seed, purpose, iteration, number, max_steps, hold, is_raw)

        pool.start(self.policy, job_of, self.config.batch_steps)

    def _finish(self, pool: Pool) -> tuple[list[Episode], Steps]:
        episodes = pool.finish()
        return episodes, lay_end_to_end(episodes, self.config.batch_steps)

    def iterate(self, session: Session) -> Row:
        """One iteration: sample, learn, deploy. Returns its row of the metrics, as far as known."""
        config, iteration, pool = self.config, self.counters.iteration, session.pool
        began, idle = time.perf_counter(), pool.idle_seconds
        every = config.evaluation.evaluation_every
        is_measured = bool(every) and iteration % every == 0
        entry = session.backlog.begin(iteration, self.policy if is_measured else None)

        scaling = scaling_of(self.policy, config)
        visited, n_new = [], config.batch_steps
        if iteration == 0 and config.standardise:
            for batch in range(1, config.scaling_batches):
                self._start(pool, Purpose.SCALING, batch)
                visited.append(self._finish(pool)[1].states)
                n_new += config.batch_steps
        self._start(pool, Purpose.TRAINING, iteration)
        saving = self._save_aside(session) if self.counters != self._saved else None
        try:
            episodes, steps = self._finish(pool)
        finally:
            if saving is not None:
                saving.result()
        if iteration == 0 and config.standardise:
            scaling = scaling.with_features(np.concatenate([*visited, steps.states]))
        sampled = time.perf_counter()

        learning = session.aside.submit(self._learn, session, scaling, steps)
        pool.tend(learning)
        state, report = learning.result()
        learned = time.perf_counter()
        learning_row = learning_numbers(report, iteration)
        session.backlog.wait(0 if self.machinery.callbacks else BACKLOG)

        n_steps = self.counters.steps + n_new
        visit = visits(self.policy, steps, episodes)
        trained = {"iterations": iteration + 1, "steps": n_steps}
        self.policy = deploy(self.policy, state.policy, report, scaling, visit, trained)
        self.state = state
        seconds = time.perf_counter() - began
        self.counters = Counters(iteration + 1, n_steps, self.counters.seconds + seconds)
        entry.row = {
            "iteration": iteration,
            "steps": n_steps,
            **episode_numbers(
                finished(episodes, config.batch_steps), config.learner.critic.discount, "batch"
            ),
            **learning_row,
            **truth_numbers(self.policy, steps.states),
            "seconds_sampling": sampled - began,
            "seconds_learning": learned - sampled,
            "seconds_simulating": sum(episode.seconds for episode in episodes),
            "seconds_learner_idle": seconds - (learned - sampled),
            "seconds_workers_idle": (pool.idle_seconds - idle) / self.machinery.workers,
            "seconds_total": self.counters.seconds,
        }
        return entry.full_row

    def _learn(
        self, session: Session, scaling: Scaling, steps: Steps
    ) -> tuple[LearnerState, Report]:
        learn = session.learn.result()
        progress = np.float32(self.config.progress(self.counters.iteration))
        return jax.block_until_ready(learn(self.state, scaling.to_learner(steps), progress))

    def _save_aside(self, session: Session) -> "Future[None]":
        """Write the complete rows, then a checkpoint with the others, then the policy file."""
        rows = session.backlog.complete()
        self.waiting = session.backlog.waiting()
        arrays = checkpoint.to_arrays(self.state)
        made = Checkpoint(arrays, self.policy, self.counters, self.waiting, self.config)
        for row in rows:
            self.machinery.progress.measured(row)
        is_new, self._saved = self.counters != self._saved, self.counters

        def save() -> None:
            for row in rows:
                session.records.write(row)
            if is_new:
                checkpoint.save(self.run.checkpoints, made)
                self.run.write_policy(made.policy)

        return session.aside.submit(save)

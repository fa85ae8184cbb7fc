"""THE training loop: it joins the rollout and the learner, and writes down what happens."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from moie.core.entropy import NO_FLOOR
from moie.errors import EnvironmentFault, InputError, Stopped
from moie.learn import learner
from moie.learn.learner import Report
from moie.rollout import tasks
from moie.rollout.episode import Episode, Job, Purpose, Steps, lay_end_to_end
from moie.rollout.pool import Pool
from moie.runs import checkpoint, policy_file
from moie.runs.checkpoint import Checkpoint, Counters
from moie.runs.config import RunConfig
from moie.runs.deployment import deploy, first_policy, scaling_of
from moie.runs.directory import RunDirectory
from moie.runs.evaluation import evaluation_jobs, longest_episode
from moie.runs.files import as_json, remove_leftovers, write_bytes
from moie.runs.progress import Progress
from moie.runs.records import Records, read, summary


@dataclass(frozen=True)
class Machinery:
    """What a run uses but does not depend on."""

    workers: int
    worker_timeout: float
    progress: Progress
    check: Callable[[], None]
    """Called often; raises `Stopped` when the user wants to stop."""


class Training:
    """A run in progress. All that must survive is in `state`, `policy` and `counters`."""

    def __init__(self, run: RunDirectory, config: RunConfig, machinery: Machinery):
        self.run, self.config, self.machinery = run, config, machinery
        env = tasks.make(config.task)
        try:
            tasks.check_spaces(env)
            self.policy = first_policy(config, env)
            self._longest = longest_episode(env)
        finally:
            env.close()
        self.counters = Counters()
        self.state = learner.start(
            config.learner,
            len(self.policy.feature_names),
            len(self.policy.action_names),
            key=jax.random.key(config.seed),
        )

    def restore(self) -> None:
        """Go on from the last whole checkpoint, if there is one."""
        found, wrong = checkpoint.load_latest(self.run.checkpoints)
        for line in wrong:
            self.machinery.progress.note(f"{line}; going back to the checkpoint before")
        if found is not None:
            self.state = checkpoint.from_arrays(self.state, found.learner)
            self.policy, self.counters = found.policy, found.counters
            self._write_policy()  # the process may have been killed between the two

    def is_complete(self) -> bool:
        """Learned all its iterations, and measured the result."""
        rows = read(self.run.metrics_file)
        done = self.counters.iteration >= self.config.iterations
        return done and bool(rows) and rows[-1]["iteration"] >= self.config.iterations

    def go(self) -> None:
        """Learn until the last iteration, then measure the final policy."""
        run, machinery, first = self.run, self.machinery, self.counters.iteration
        remove_leftovers(run.path)
        remove_leftovers(run.checkpoints)
        run.fault_file.unlink(missing_ok=True)
        spec = tasks.spec_json(self.config.task)
        try:
            with (
                closing(Records(run.metrics_file, run.tensorboard, first)) as records,
                Pool(spec, machinery.workers, machinery.worker_timeout, machinery.check) as pool,
                machinery.progress.of(self.config, first),
            ):
                while self.counters.iteration < self.config.iterations:
                    row = self.iterate(pool)
                    records.write(row)
                    self.save()
                    machinery.progress.show(row)
                row = {"iteration": self.counters.iteration, "steps": self.counters.steps}
                row |= self._measured(pool, self._queue_evaluation(pool))
                records.write(row)
                machinery.progress.show(row)
        except EnvironmentFault as error:
            write_bytes(run.fault_file, as_json(error.record))
            raise EnvironmentFault(
                f"{error}; what repeats it is in {run.fault_file}; the run stopped after "
                f"iteration {self.counters.iteration}, 'moie resume {run.path}' goes on there"
            ) from error
        except Stopped as stop:
            raise Stopped(
                f"stopped after iteration {self.counters.iteration} of {self.config.iterations}; "
                f"go on with: moie resume {run.path}"
            ) from stop

    def _job(self, purpose: Purpose, number: int, max_steps: int, iteration: int) -> Job:
        return Job(self.config.seed, purpose, iteration, number, max_steps)

    def _sample(self, pool: Pool, purpose: Purpose, iteration: int) -> tuple[list[Episode], Steps]:
        job_of = partial(self._job, purpose, iteration=iteration)
        episodes = pool.sample(self.policy, job_of, self.config.batch_steps)
        return episodes, lay_end_to_end(episodes, self.config.batch_steps)

    def _queue_evaluation(self, pool: Pool) -> dict[str, list[Job]]:
        """Episodes that measure the present policy, to be run when there is time."""
        count = self.config.evaluation.evaluation_episodes
        jobs = evaluation_jobs(self.config.seed, self.counters.iteration, count, self._longest)
        pool.queue(self.policy, [job for some in jobs.values() for job in some])
        return jobs

    def _measured(self, pool: Pool, jobs: dict[str, list[Job]]) -> dict[str, float]:
        """What the queued episodes gave, for a row of the metrics."""
        discount = self.config.learner.critic.discount
        found: dict[str, float] = {}
        for kind, some in jobs.items():
            found |= summary(pool.collect(some), discount, kind)
        return found

    def iterate(self, pool: Pool) -> dict[str, Any]:
        """One iteration: sample, learn, deploy; its row of the metrics."""
        config, iteration = self.config, self.counters.iteration
        began = time.perf_counter()
        every = config.evaluation.evaluation_every
        evaluation = self._queue_evaluation(pool) if every and iteration % every == 0 else {}

        scaling = scaling_of(self.policy, config)
        visited, n_new = [], config.batch_steps
        if iteration == 0 and config.standardise:
            for batch in range(1, config.scaling_batches):
                visited.append(self._sample(pool, Purpose.SCALING, batch)[1].states)
                n_new += config.batch_steps
        episodes, steps = self._sample(pool, Purpose.TRAINING, iteration)
        if iteration == 0 and config.standardise:
            scaling = scaling.with_features(np.concatenate([*visited, steps.states]))
        sampled = time.perf_counter()

        state, report = learner.learn_jit(config.learner, self.state, scaling.to_learner(steps))
        state, report = jax.block_until_ready((state, report))
        learned = time.perf_counter()
        _check_finite(report, iteration)

        measured = self._measured(pool, evaluation)
        n_steps = self.counters.steps + n_new
        self.policy = deploy(self.policy, state, report, scaling, steps, episodes, n_steps)
        self.state = state
        seconds = self.counters.seconds + time.perf_counter() - began
        self.counters = Counters(iteration + 1, n_steps, seconds)
        return {
            "iteration": iteration,
            "steps": n_steps,
            **summary(_whole(episodes, config), config.learner.critic.discount, "batch"),
            **measured,
            **_numbers(report),
            "seconds_sampling": sampled - began,
            "seconds_learning": learned - sampled,
            "seconds_simulating": sum(episode.seconds for episode in episodes),
            "seconds_total": seconds,
        }

    def save(self) -> None:
        """Checkpoint first: the policy file is the one of the last checkpoint."""
        made = Checkpoint(checkpoint.to_arrays(self.state), self.policy, self.counters)
        checkpoint.save(self.run.checkpoints, made)
        self._write_policy()

    def _write_policy(self) -> None:
        file, content = self.run.policy_file, policy_file.to_bytes(self.policy)
        if not file.is_file() or file.read_bytes() != content:
            write_bytes(file, content)


def _whole(episodes: list[Episode], config: RunConfig) -> list[Episode]:
    """Those that came to their own end within the batch. The last one may have been run beyond it,
    with several workers; what is recorded must not depend on that."""
    ends = np.cumsum([episode.length for episode in episodes])
    return [
        e for e, end in zip(episodes, ends, strict=True) if e.finished and end <= config.batch_steps
    ]


def _check_finite(report: Report, iteration: int) -> None:
    for name, value in _numbers(report).items():
        if isinstance(value, float) and not np.isfinite(value):
            raise InputError(
                f"learning diverged in iteration {iteration}: {name} is {value}; the last "
                "checkpoint is intact; smaller rates or rewards may help"
            )


def _numbers(report: Report) -> dict[str, float | int | None]:
    """A report's scalars as plain numbers, with what follows from them."""
    floor = float(report.entropy_floor)
    share = np.asarray(report.share)
    return {
        "kl": float(report.kl),
        "entropy": float(report.entropy),
        "entropy_floor": floor if floor > NO_FLOOR else None,
        "weight_step": float(report.weight_step),
        "mean_step": float(report.mean_step),
        "covariance_step": float(report.covariance_step),
        "swaps": int(report.swaps),
        "deletions": int(report.deletions),
        "full_update": int(report.full_update),
        "default_share": float(report.default_share),
        "coverage": 1.0 - float(report.default_share),
        "experts_in_use": int(np.sum(share > 0.01)),
        "critic_loss": float(report.critic_loss),
    }


def train(path: Path, config: RunConfig, machinery: Machinery) -> RunDirectory:
    """Start a run and learn to its end. Nothing is written before the input is known to be good."""
    RunDirectory.check_free(path)
    training = Training(RunDirectory(path), config, machinery)
    run = RunDirectory.create(path, config)
    with run.lock():
        training.go()
    return run


def resume(path: Path, machinery: Machinery, iterations: int | None = None) -> RunDirectory:
    """Go on with a run, to its end or to another number of iterations."""
    run = RunDirectory.open(path)
    with run.lock():
        config = before = run.read_config()
        if iterations is not None:
            config = replace(config, iterations=iterations)
        training = Training(run, config, machinery)
        training.restore()
        if training.counters.iteration > config.iterations:
            raise InputError(
                f"iterations is {config.iterations}, expected at least the "
                f"{training.counters.iteration} that {path} has done"
            )
        if config != before:
            run.change_config(config)
        if training.is_complete():
            machinery.progress.note(
                f"{path} is complete: {config.iterations} iterations; "
                "--iterations with a larger number goes on"
            )
            return run
        if changed := run.changed_versions():
            machinery.progress.note(
                f"other versions than {path} was started with, results may differ in their last "
                f"digits: {', '.join(changed)}"
            )
        training.go()
    return run

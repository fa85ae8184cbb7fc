"""THE training loop: it joins the rollout and the learner, and writes down what happens."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np

from moie.core.entropy import NO_FLOOR
from moie.core.selection import KEPT
from moie.errors import EnvironmentFault, InputError, Stopped
from moie.learn import learner
from moie.learn.learner import LearnerState, Report
from moie.rollout import tasks
from moie.rollout.episode import Episode, Job, Purpose, Steps, lay_end_to_end
from moie.rollout.policy import Origin, Policy
from moie.rollout.pool import Pool
from moie.rollout.scaling import Scaling
from moie.runs import checkpoint, policy_file
from moie.runs.checkpoint import Checkpoint, Counters
from moie.runs.config import RunConfig
from moie.runs.directory import RunDirectory
from moie.runs.files import as_json, remove_leftovers, write_bytes
from moie.runs.progress import Progress
from moie.runs.records import Records, read, summary

LONGEST_EVALUATION = 10_000  # steps, for environments without a time limit


@dataclass(frozen=True)
class Machinery:
    """What a run uses but does not depend on."""

    workers: int
    worker_timeout: float
    progress: Progress
    check: Callable[[], None]
    """Called often; raises `Stopped` when the user wants to stop."""


def first_policy(config: RunConfig, env: gymnasium.Env) -> Policy:
    """The policy before anything was learned: the default action, whatever the state."""
    low, high = (np.asarray(b, dtype=np.float64).reshape(-1) for b in _bounds(env))
    n_features = int(np.prod(env.observation_space.shape or ()))
    scaling = Scaling.identity(n_features, len(low))
    if config.standardise:
        scaling = Scaling.of_range(n_features, low, high)
    experts = config.learner.policy.experts
    return Policy(
        task=config.task,
        prototypes=np.zeros((experts, n_features)),
        weights=np.zeros(experts),
        actions=np.tile(scaling.action_centre, (experts, 1)),
        default_action=scaling.action_centre,
        log_std=np.log(config.learner.policy.initial_std * scaling.action_scale),
        temperature=config.learner.policy.temperature,
        feature_mean=scaling.feature_mean,
        feature_scale=scaling.feature_scale,
        action_low=low,
        action_high=high,
        feature_names=tasks.feature_names(config.task, n_features),
        action_names=tasks.joint_names(config.task, len(low)),
        origins=(None,) * experts,
        observation_shape=tuple(env.observation_space.shape or ()),
        action_shape=tuple(env.action_space.shape or ()),
        share=np.zeros(experts),
        lead=np.zeros(experts),
        trained={"seed": config.seed, "iterations": 0, "steps": 0},
    )


def _bounds(env: gymnasium.Env) -> tuple[Any, Any]:
    space = env.action_space
    assert isinstance(space, gymnasium.spaces.Box)  # check_spaces has seen to it
    return space.low, space.high


def scaling_of(policy: Policy, config: RunConfig) -> Scaling:
    """Of a policy in the task's units; its action scale follows from the bounds."""
    scale = np.ones_like(policy.default_action)
    if config.standardise:
        scale = (policy.action_high - policy.action_low) / 2
    return Scaling(policy.feature_mean, policy.feature_scale, policy.default_action, scale)


def _origin(steps: Steps, episodes: list[Episode], row: int, policy: Policy) -> Origin:
    episode, step = episodes[steps.episode[row]], int(steps.step[row])
    job = episode.job
    actions = policy.clipped(episode.taken[:step])
    return Origin(job.iteration, job.number, step, job.seed, actions)


def deploy(
    before: Policy,
    state: LearnerState,
    report: Report,
    scaling: Scaling,
    steps: Steps,
    episodes: list[Episode],
    n_steps: int,
) -> Policy:
    """The learned policy in the task's own units, with the origin of every prototype."""
    prototypes, origins = before.prototypes.copy(), list(before.origins)
    for k, row in enumerate(np.asarray(report.rows)):
        if row != KEPT:
            prototypes[k] = steps.states[row]
            origins[k] = _origin(steps, episodes, row, before)
    learned = jax.tree.map(lambda x: np.asarray(x, dtype=np.float64), state.policy)
    return replace(
        before,
        prototypes=prototypes,
        weights=learned.weights,
        actions=scaling.action_centre + scaling.action_scale * learned.actions,
        log_std=learned.log_std + np.log(scaling.action_scale),
        feature_mean=scaling.feature_mean,
        feature_scale=scaling.feature_scale,
        origins=tuple(origins),
        share=np.asarray(report.share, dtype=np.float64),
        lead=np.asarray(report.lead, dtype=np.float64),
        trained={**before.trained, "iterations": int(state.iteration), "steps": n_steps},
    )


class Training:
    """A run in progress. All that must survive is in `state`, `policy` and `counters`."""

    def __init__(self, run: RunDirectory, config: RunConfig, machinery: Machinery):
        self.run, self.config, self.machinery = run, config, machinery
        env = tasks.make(config.task)
        try:
            tasks.check_spaces(env)
            self.policy = first_policy(config, env)
            limit = env.spec.max_episode_steps if env.spec else None
        finally:
            env.close()
        self._longest = limit or LONGEST_EVALUATION
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
                row = self._evaluate(pool)
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

    def _evaluation_jobs(self) -> dict[str, list[Job]]:
        purposes = {"sampled": Purpose.EVALUATION_SAMPLED, "mean": Purpose.EVALUATION_MEAN}
        count = self.config.evaluation.evaluation_episodes
        return {
            name: [
                self._job(purpose, number, self._longest, self.counters.iteration)
                for number in range(count)
            ]
            for name, purpose in purposes.items()
        }

    def _evaluate(self, pool: Pool, jobs: dict[str, list[Job]] | None = None) -> dict[str, Any]:
        """Measure the present policy; the jobs may have been queued before."""
        if jobs is None:
            jobs = self._evaluation_jobs()
            pool.queue(self.policy, [job for some in jobs.values() for job in some])
        row: dict[str, Any] = {"iteration": self.counters.iteration, "steps": self.counters.steps}
        for name, some in jobs.items():
            row |= summary(pool.collect(some), self.config.learner.critic.discount, name)
        return row

    def iterate(self, pool: Pool) -> dict[str, Any]:
        """One iteration: sample, learn, deploy; its row of the metrics."""
        config, iteration = self.config, self.counters.iteration
        began = time.perf_counter()
        every = config.evaluation.evaluation_every
        evaluation = self._evaluation_jobs() if every and iteration % every == 0 else {}
        pool.queue(self.policy, [job for some in evaluation.values() for job in some])

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

        measured = self._evaluate(pool, evaluation) if evaluation else {}
        n_steps = self.counters.steps + n_new
        self.policy = deploy(self.policy, state, report, scaling, steps, episodes, n_steps)
        self.state = state
        seconds = self.counters.seconds + time.perf_counter() - began
        self.counters = Counters(iteration + 1, n_steps, seconds)
        return {
            "iteration": iteration,
            "steps": n_steps,
            **summary(_whole(episodes, config), config.learner.critic.discount, "batch"),
            **{name: value for name, value in measured.items() if "_" in name},
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

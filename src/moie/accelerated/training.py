"""The training loop of a swarm: iterations on the accelerator, evaluations and files beside it."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from moie.accelerated.folder import member_path
from moie.accelerated.members import Member
from moie.accelerated.program import program_of
from moie.accelerated.progress import SwarmProgress
from moie.accelerated.records import Plan, Record, Seeds
from moie.accelerated.standing import FIRST, Checkpoints, checked_checkpoints
from moie.environments import specs, tasks
from moie.errors import Stopped
from moie.files import typed
from moie.rollout.pool import Pool
from moie.runs.config import RunConfig, with_seed
from moie.runs.deployment import first_policy
from moie.runs.disk import checkpoint, metrics
from moie.runs.disk.directory import RunDirectory
from moie.runs.evaluation import longest_episode
from moie.runs.machinery import Machinery
from moie.stopping import BEFORE_THE_FIRST

PLACES = 10
"""Iterations of one call, at most."""
SPREAD = 1e-5
"""Of a feature, relative to its size, below which it is constant but for rounding."""
CALL = 10.0
"""Seconds that a call should take, so that progress is seen and Ctrl-C heard."""


@dataclass(frozen=True, eq=False)
class _Call:
    """Iterations on the accelerator."""

    seeds: Seeds
    record: Record
    n: int
    seconds: float


class Group:
    """Seeds that learn side by side."""

    def __init__(
        self,
        path: Path,
        config: RunConfig,
        seeds: tuple[int, ...],
        machinery: Machinery,
        is_new: bool = False,
    ):
        """`config`: of any of them. `is_new`: it is kept only if an iteration is complete."""
        self.path, self.config, self.machinery, self._is_new = path, config, machinery, is_new
        self.program = program_of(config, PLACES)
        self.state = self.program.start(list(seeds))
        with tasks.opened(config.task) as env:
            self._longest = longest_episode(env)
            policies = [
                first_policy(with_seed(config, seed), env, _of(self.state.learner.policy, s))
                for s, seed in enumerate(seeds)
            ]
        walks = self.program.task.rules.n_travelled > 0
        self.members = [
            Member(RunDirectory(member_path(path, seed)), with_seed(config, seed), policy, walks)
            for seed, policy in zip(seeds, policies, strict=True)
        ]
        self._pace = 0.0

    # --- where it stands -------------------------------------------------------------------------

    @property
    def learning(self) -> list[Member]:
        """Those that have not diverged."""
        return [member for member in self.members if member.divergence is None]

    @property
    def lost(self) -> list[str]:
        """Why the others have."""
        return [member.divergence for member in self.members if member.divergence is not None]

    @property
    def iteration(self) -> int:
        """Iterations done by those that learn; the number wanted where none does."""
        return min((m.counters.iteration for m in self.learning), default=self.config.iterations)

    def is_complete(self) -> bool:
        """Learned all iterations, and measured the results."""
        done = self.config.iterations
        return self.iteration >= done and all(
            member.run.policy_file.exists()
            and (rows := metrics.read_last(member.run.metrics_file))
            and rows[-1]["iteration"] >= member.counters.iteration
            for member in self.learning
        )

    def restore(self) -> None:
        """Continue from the newest checkpoints that are of the same moment."""
        last, self.state = self.checked(self.machinery.progress.note)
        for member, one in zip(self.members, last, strict=True):
            if member.divergence is None:
                done = 0 if one is None else one.counters.iteration
                checkpoint.forget_newer(member.run.checkpoints, done)
            else:
                self._say_lost(member)
            if one is not None:
                member.restore(one)

    def checked(self, note: Callable[[str], None]) -> tuple[Checkpoints, Seeds]:
        """The checkpoints to continue from, and the state of all seeds there; FileError where they
        do not fit. Nothing is written."""
        for member in self.members:
            member.divergence = member.read_divergence()
        last = checked_checkpoints(self.path, self.members, note)
        done = [
            one.counters.iteration
            for member, one in zip(self.members, last, strict=True)
            if one is not None and member.divergence is None
        ]
        rows = []
        for s, (member, one) in enumerate(zip(self.members, last, strict=True)):
            row = _of(self.state, s)
            if one is not None:
                row = checkpoint.from_arrays(row, one.learner)
            if member.divergence is not None:  # it may have come further than the others are now
                same = jnp.full_like(row.learner.iteration, max(done, default=0))
                where = (same, jnp.asarray(False))
                row = eqx.tree_at(lambda r: (r.learner.iteration, r.is_sound), row, where)
            rows.append(row)
        return last, jax.tree.map(lambda *x: jnp.stack(x), *rows)

    def _say_lost(self, member: Member) -> None:
        others = "; the other seeds continue" if self.learning else ""
        self.machinery.progress.note(f"seed {member.config.seed}: {member.divergence}{others}")

    # --- learning --------------------------------------------------------------------------------

    def go(self) -> None:
        """Learn until the last iteration, then measure the final policies."""
        machinery, config = self.machinery, self.config
        spec = specs.pack(config.task)
        shown = SwarmProgress(machinery.progress, config, len(self.members))
        with (
            Pool(spec, machinery.workers, machinery.worker_timeout, machinery.check) as pool,
            ThreadPoolExecutor(1) as aside,
            ExitStack() as stack,
        ):
            for member in self.members:
                stack.enter_context(member.run.lock())
                member.open(stack, pool, self._longest)
                if member.counters.iteration:  # an earlier process may have ended just before
                    member.run.bring_policy(member.policy)
            try:
                pool.tend(compiling := aside.submit(self.program.compile, self.state))
                compiling.result()
                stack.enter_context(shown.of(self.iteration))
                n_before = 0
                if self.iteration == 0 and config.standardise:
                    n_before = self._scale(pool, aside)
                for call in self._calls(pool, aside):
                    self._take(call, shown, n_before)
                self._measure(pool, aside, shown)
            except Stopped as stop:
                saved = min((m.run.iterations_saved() for m in self.learning), default=0)
                if self._is_new and not saved:
                    raise Stopped(BEFORE_THE_FIRST) from stop
                raise Stopped(
                    f"stopped after iteration {saved} of {config.iterations}; continue with: "
                    f"{typed('resume', self.path)}"
                ) from stop

    def _measure(self, pool: Pool, aside: ThreadPoolExecutor, shown: SwarmProgress) -> None:
        """Returns of the final policies, in Gymnasium and where they were learned."""
        if not self.learning:
            return
        for member in self.learning:
            member.measure()
        pool.tend(here := aside.submit(self.program.measure, self.state))
        rows = []
        for s, member in enumerate(self.members):
            if member.divergence is None:
                learned = {kind: float(returns[s]) for kind, returns in here.result().items()}
                rows.append(member.measured(learned))
        shown.final(rows)

    def _calls(self, pool: Pool, aside: ThreadPoolExecutor) -> Iterator[_Call]:
        """Iterations as they come. The next ones begin before the last are written down."""
        first, last = self.iteration, self.config.iterations
        state, running = self.state, None
        while first < last or running is not None:
            last = last if self.learning else first  # all have diverged
            following: Future[_Call] | None = None
            if running is not None:
                pool.tend(running)
                call = running.result()
                state = call.seeds
            if first < last:
                n = self._number(last - first)
                progress = [self.config.progress(first + i) for i in range(n)]
                plan = _plan(n, progress, learns=True)
                following = aside.submit(self._run, state, plan, n)
                first += n
            if running is not None:
                yield call
            running = following

    def _number(self, left: int) -> int:
        """Iterations of the next call; what is learned does not depend on it."""
        wanted = CALL / self._pace if self._pace else FIRST
        return int(min(max(wanted, 1), PLACES, left))

    def _run(self, state: Seeds, plan: Plan, n: int) -> _Call:
        began = time.perf_counter()
        state, record = jax.block_until_ready(self.program.run(state, plan))
        seconds = time.perf_counter() - began
        self._pace = seconds / n
        return _Call(state, jax.tree.map(np.asarray, record), n, seconds)

    def _scale(self, pool: Pool, aside: ThreadPoolExecutor) -> int:
        """The scale of the features from batches that nothing is learned from; their steps."""
        config, means, variances = self.config, [], []
        for _ in range(config.scaling_batches):
            plan = _plan(1, [0.0], learns=False, hold=config.scaling_hold)
            pool.tend(running := aside.submit(self._run, self.state, plan, 1))
            self.state = running.result().seeds
            record = running.result().record
            means.append(record.mean[0].astype(np.float64))
            variances.append(record.variance[0].astype(np.float64))
        self._pace = 0.0
        std = np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0)).astype(np.float32)
        mean = np.mean(means, axis=0).astype(np.float32)
        scalings = [
            member.scaling.with_moments(mean[s], std[s], SPREAD)
            for s, member in enumerate(self.members)
        ]
        for member, scaling in zip(self.members, scalings, strict=True):
            member.scaling = scaling
        self.state = eqx.tree_at(
            lambda s: (s.feature_mean, s.feature_scale),
            self.state,
            (
                jnp.asarray(np.stack([one.feature_mean for one in scalings]), jnp.float32),
                jnp.asarray(np.stack([one.feature_scale for one in scalings]), jnp.float32),
            ),
        )
        return config.scaling_batches * config.batch_steps

    def _take(self, call: _Call, shown: SwarmProgress, n_before: int) -> None:
        """Write down what a call gave, and save."""
        for i in range(call.n):
            rows = [
                member.take(_of(_of(call.record, i), s), call.seconds / call.n, n_before)
                for s, member in enumerate(self.members)
                if member.divergence is None
            ]
            if not self.learning:
                break
            shown.show(rows, self.iteration)
        for member in self.members:
            member.wait(0 if member.divergence else 1)
        self.state = call.seeds
        arrays = checkpoint.to_arrays(self.state)
        for s, member in enumerate(self.members):
            if not member.has_ended:
                shown.measured(member.save({name: np.asarray(x[s]) for name, x in arrays.items()}))
        for member in self.members:
            if member.divergence is not None and not member.has_ended:
                member.end(member.divergence)
                self._say_lost(member)
        self.machinery.check()


def _plan(n: int, progress: list[float], *, learns: bool, hold: int = 1) -> Plan:
    empty = [0.0] * (PLACES - n)
    columns: Any = (
        np.arange(PLACES) < n,
        np.full(PLACES, learns),
        np.asarray([*progress, *empty], np.float32),
        np.full(PLACES, hold, np.int32),
    )
    return Plan(*columns)


def _of(tree: Any, place: int) -> Any:
    """One seed, or one iteration, of all that a tree holds."""
    return jax.tree.map(lambda x: x[place], tree)

"""The runs of a swarm: each seed is an ordinary run directory, with its own metrics, checkpoints
and policy."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from moie.accelerated.records import Ended, Record
from moie.errors import DivergenceError
from moie.files import as_json, parse_json, read_bytes, reading, remove_leftovers, write_bytes
from moie.policy.base import Origin, Policy
from moie.rollout.pool import Pool
from moie.runs.config import RunConfig
from moie.runs.deployment import deploy, scaling_of
from moie.runs.disk import checkpoint
from moie.runs.disk.checkpoint import Checkpoint, Counters
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import Records, Row
from moie.runs.rows import Backlog, Entry, learning_numbers, truth_numbers


class Member:
    """One seed of a swarm, on the host."""

    def __init__(self, run: RunDirectory, config: RunConfig, policy: Policy, walks: bool):
        """`walks`: whether the robot covers a distance."""
        self._walks = walks
        self.run, self.config, self.policy = run, config, policy
        self.counters = self._saved = Counters()
        self.waiting: tuple[tuple[Row, Policy | None], ...] = ()
        self.scaling = scaling_of(policy, config)
        self.divergence: str | None = None
        """Why it learns no more."""
        self.has_ended = False
        """Whether that is written down, with the last state that was sound."""
        self._records: Records
        self._backlog: Backlog
        self._final: Entry

    def read_divergence(self) -> str | None:
        """Why it learns no more, if an earlier process wrote that down."""
        if not self.run.fault_file.exists():
            return None
        self.has_ended = True
        with reading(f"{self.run.fault_file} cannot be read"):
            content = parse_json(read_bytes(self.run.fault_file))
            said = content.get("diverged") if isinstance(content, dict) else None
            return said if isinstance(said, str) else "diverged"

    def restore(self, last: Checkpoint) -> None:
        """Continue from a checkpoint."""
        self.policy, self.counters, self.waiting = last.policy, last.counters, last.waiting
        self._saved = last.counters
        self.scaling = scaling_of(last.policy, self.config)

    def open(self, stack: ExitStack, pool: Pool, longest: int) -> None:
        """Begin to write, for as long as the stack is open."""
        remove_leftovers(self.run.path)
        remove_leftovers(self.run.checkpoints)
        first = self.waiting[0][0]["iteration"] if self.waiting else self.counters.iteration
        records = Records(self.run.metrics_file, self.run.tensorboard, first)
        self._records = stack.enter_context(closing(records))
        self._backlog = Backlog(self.config, longest, pool)
        for row, policy in self.waiting:
            self._backlog.begin(row["iteration"], policy, row)

    def take(self, record: Record, seconds: float, n_before: int) -> Row:
        """What an iteration gave; its row of the metrics, as far as it is known. `n_before`: steps
        that only estimated the scale of the features, before the first one."""
        config, iteration = self.config, self.counters.iteration
        report = record.report
        try:
            learned = learning_numbers(report, iteration)
            if not record.is_sound:
                raise DivergenceError(f"learning diverged in iteration {iteration}")
        except DivergenceError as error:
            self.divergence = str(error)
            return {}
        every = config.evaluation.evaluation_every
        is_measured = bool(every) and iteration % every == 0
        entry = self._backlog.begin(iteration, self.policy if is_measured else None)
        n_steps = self.counters.steps + config.batch_steps + (0 if iteration else n_before)
        trained = {"iterations": iteration + 1, "steps": n_steps}
        visit = self._visited(record)
        self.policy = deploy(self.policy, record.policy, report, self.scaling, visit, trained)
        self.counters = Counters(iteration + 1, n_steps, self.counters.seconds + seconds)
        entry.row = {
            "iteration": iteration,
            "steps": n_steps,
            **_summary(record.ended, self._walks),
            **learned,
            **truth_numbers(self.policy, np.asarray(record.states, np.float64)),
            "seconds_total": self.counters.seconds,
        }
        return entry.full_row

    def _visited(self, record: Record) -> Callable[[int, int], tuple[Any, Origin]]:
        visited: Any = record.visited
        iteration = self.counters.iteration
        none = np.zeros((0, len(self.policy.action_names)), np.float32)

        def at(k: int, row: int) -> tuple[Any, Origin]:
            origin = Origin(
                iteration,
                int(visited.environment[k]),
                int(visited.step[k]),
                self.config.seed,
                none,
                visited.qpos[k].astype(np.float64),
                visited.qvel[k].astype(np.float64),
            )
            return visited.state[k].astype(np.float64), origin

        return at

    def end(self, why: str) -> None:
        """Write down that learning went wrong: the last policy stays, and the other seeds go on."""
        write_bytes(self.run.fault_file, as_json({"diverged": why}))
        self.has_ended = True

    def measure(self) -> None:
        """Begin with the evaluation of the final policy."""
        self._final = self._backlog.begin(self.counters.iteration, self.policy, is_final=True)

    def measured(self, returns: dict[str, float]) -> Row:
        """Write the last row: the evaluation, and these returns of the same policy in MJX, by kind
        of action."""
        self._final.row = {
            "iteration": self.counters.iteration,
            "steps": self.counters.steps,
            **{f"return_{kind}_mjx": value for kind, value in returns.items()},
        }
        self.wait()
        if self._final.measured is not None:
            self.run.write_policy(self._final.measured)
        return self.write()[-1]

    def wait(self, limit: int = 0) -> None:
        """Until at most so many evaluations are under way."""
        self._backlog.wait(limit)

    def save(self, learner: dict[str, np.ndarray]) -> list[Row]:
        """Write the rows that are complete, then a checkpoint, then the policy; the rows. Where
        nothing was learned since the last checkpoint, that one stays."""
        rows = self.write()
        if self.counters == self._saved:
            return rows
        self._saved = self.counters
        self.waiting = self._backlog.waiting()
        made = Checkpoint(learner, self.policy, self.counters, self.waiting, self.config)
        checkpoint.save(self.run.checkpoints, made)
        self.run.write_policy(self.policy)
        return rows

    def write(self) -> list[Row]:
        """Write the rows that are complete."""
        rows = self._backlog.complete()
        for row in rows:
            self._records.write(row)
        return rows


def _summary(ended: Ended, walks: bool) -> dict[str, float]:
    """Means over the episodes that ended; named as those of a batch on a processor are."""
    count = float(ended.episodes)
    if not count:
        return {}
    sums = ended._asdict()
    names = {"total": "return", "discounted": "discounted", "length": "length"}
    names |= {"distance": "distance"} if walks else {}
    means = {f"{name}_batch": float(sums[of]) / count for of, name in names.items()}
    return means | ({"episodes_lost": float(ended.lost)} if ended.lost else {})

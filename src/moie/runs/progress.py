"""Progress that a person can see: a live line in a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from moie.environments.catalogue import clipping_matters
from moie.learn import registry
from moie.present.stages import console
from moie.runs.config import RunConfig
from moie.runs.disk.metrics import Row
from moie.terminal import printable_lines


def clock(seconds: float) -> str:
    """Hours (if any), minutes and seconds."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class Bar(RichProgress):
    """How far a run is and how fast, and below it what is known: both fit into a narrow window."""

    def __init__(self, console: Console, done: int, total: int):
        self._facts = ""
        super().__init__(
            TextColumn("iteration {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[pace]}"),
            console=console,
        )
        self._only = self.add_task("", total=total, completed=done, pace="first batch, compiling")

    def show(self, done: int, facts: str, pace: str) -> None:
        """So many iterations are done."""
        self._facts = facts
        self.update(self._only, completed=done, pace=pace)

    def get_renderables(self) -> Iterator[RenderableType]:
        """The lines, from top to bottom."""
        yield from super().get_renderables()
        if self._facts:
            yield Text(self._facts, no_wrap=True, overflow="ellipsis")


class Progress:
    """Shows rows of the metrics as they come."""

    def __init__(self, quiet: bool = False, every: float = 2.0):
        """`every`: least number of seconds between two plain lines."""
        self._console, self._every = console(quiet), every
        self._bar: Bar | None = None
        self._last_line = -1e9
        self._evaluation: float | None = None

    def note(self, text: str) -> None:
        """Print a line beside the progress."""
        self._console.print(Text(printable_lines(text)), soft_wrap=True)

    @contextlib.contextmanager
    def of(self, config: RunConfig, iteration: int, seeds: str = "") -> Iterator[None]:
        """Show the progress of a run that starts at an iteration, or of all `seeds` of a swarm."""
        self._iterations, self._batch_steps = config.iterations, config.batch_steps
        self._times = deque([(iteration, time.monotonic())], maxlen=20)
        self.note(
            f"{config.task}: {self._who(config)}, {seeds or f'seed {config.seed}'}, "
            f"{config.iterations} iterations of {config.batch_steps} steps"
            + (f", from iteration {iteration}" if iteration else "")
        )
        if not self._console.is_terminal:
            yield
            return
        with Bar(self._console, iteration, config.iterations) as self._bar:
            yield
        self._bar = None

    @staticmethod
    def _who(config: RunConfig) -> str:
        """Number of experts, the algorithm where it is not the usual one, and how actions are given
        to a simulator that charges for them."""
        learner = config.learner
        who = [] if learner.algorithm == registry.DEFAULT else [learner.algorithm]
        who += [f"{learner.policy.experts} experts"] if learner.has_experts else []
        if clipping_matters(config.task, config.actions):
            who += [f"{config.actions} actions"]
        return ", ".join(who)

    def _pace(self, done: int) -> float:
        """Seconds per iteration over the last few: the first one, which compiles, drops out."""
        self._times.append((done, time.monotonic()))
        (first, began), (last, now) = self._times[0], self._times[-1]
        return (now - began) / max(last - first, 1)

    def measured(self, row: Row) -> None:
        """Remember the evaluation of a row, if it has one."""
        self._evaluation = row.get("return_sampled", self._evaluation)

    def show(self, row: Row) -> None:
        """Show the newest row."""
        self.measured(row)
        done = min(row["iteration"] + 1, self._iterations)
        per_iteration = self._pace(done)
        left = clock(per_iteration * (self._iterations - done))
        returns = {"return": row.get("return_batch"), "evaluation": self._evaluation}
        facts = "  ".join(f"{name} {v:.1f}" for name, v in returns.items() if v is not None)
        if "kl" in row:
            facts += f"  KL {row['kl']:.4f}"
            facts += f"  experts {row['experts_in_use']}" if "experts_in_use" in row else ""
        self.advance(done, facts, f"{self._batch_steps / per_iteration:.0f} steps/s  {left} left")

    def advance(self, done: int, facts: str, pace: str) -> None:
        """So many iterations are done; what is known about them, and how fast they come."""
        if self._bar is not None:
            self._bar.show(done, facts, pace)
        elif time.monotonic() - self._last_line > self._every or done == self._iterations:
            self._last_line = time.monotonic()
            line = f"iteration {done}/{self._iterations}  {facts}  {pace}"
            self._console.print(line, soft_wrap=True)
            sys.stderr.flush()

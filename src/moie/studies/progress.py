"""Progress of a whole study: a live table in a terminal, plain lines elsewhere."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from moie.present.stages import console
from moie.runs.progress import clock
from moie.studies.status import RunStatus, State, seconds_left
from moie.terminal import printable, printable_lines

MOST_SHOWN = 20
"""Number of running runs in the table."""


def headline(statuses: Sequence[RunStatus], slots: int) -> str:
    """Counts of all states, and the time left."""
    counts = Counter(status.state for status in statuses)
    parts = [f"{counts['done']} of {len(statuses)} done"]
    others: tuple[State, ...] = ("running", "waiting", "stopped", "failed")
    parts += [f"{counts[state]} {state}" for state in others if counts[state]]
    left = seconds_left(statuses, slots)
    if left:
        parts.append(f"about {clock(left)} left")
    return ", ".join(parts)


def line(status: RunStatus) -> tuple[str, str, str, str]:
    """Name, iterations, return and time left of a run."""
    left = status.seconds_left
    return (
        status.name,
        f"{status.iteration}/{status.wanted}",
        "" if status.value is None else f"return {status.value:.1f}",
        "" if left is None else f"{clock(left)} left",
    )


def table(statuses: Sequence[RunStatus], most: int = MOST_SHOWN) -> Table:
    """The runs that are being worked on."""
    grid = Table.grid(padding=(0, 2))
    running = [status for status in statuses if status.state == "running"]
    for status in running[:most]:
        grid.add_row(*(Text(printable(part)) for part in line(status)))
    if len(running) > most:
        grid.add_row(Text(f"and {len(running) - most} more"))
    return grid


def report(name: str, statuses: Sequence[RunStatus]) -> str:
    """The same as text, for a study that runs elsewhere; it goes on with as many runs at a time."""
    running = [status for status in statuses if status.state == "running"]
    failed = [status for status in statuses if status.state == "failed"]
    lines = [f"{name}: {headline(statuses, len(running) or 1)}"]
    lines += ["  running  " + "  ".join(part for part in line(s) if part) for s in running]
    lines += [f"  failed   {status.name}: {status.error}" for status in failed]
    return "\n".join(lines)


class StudyProgress:
    """Shows how the runs are doing."""

    def __init__(self, name: str, quiet: bool = False, every: float = 10.0):
        """`every`: least number of seconds between two plain lines."""
        self.quiet, self._console = quiet, console(quiet)
        self._name, self._every, self._last = name, every, -1e9
        self._live: Live | None = None

    def note(self, text: str) -> None:
        """Print a line beside the progress."""
        self._console.print(Text(printable_lines(text)), soft_wrap=True)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Keep the table on the screen while the study goes on."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=4, transient=True) as self._live:
            yield
        self._live = None

    @property
    def is_due(self) -> bool:
        """Whether to show the state now: reading that of many runs takes time."""
        return self._live is not None or time.monotonic() - self._last > self._every

    def show(self, statuses: Sequence[RunStatus], slots: int) -> None:
        """Show the present state."""
        text = f"{self._name}: {headline(statuses, slots)}"
        if self._live is not None:
            self._live.update(Group(Text(printable(text)), table(statuses)))
        elif self.is_due:
            self._last = time.monotonic()
            self.note(text)

"""Stages of a longer job, as a person sees them: a bar in a terminal, plain lines elsewhere."""

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from moie.terminal import printable_lines


def console(quiet: bool) -> Console:
    """Texts are shown as they are: [brackets] of a file's name or content are no markup."""
    return Console(stderr=True, quiet=quiet, highlight=False, markup=False, emoji=False)


class Stages:
    """One line for each part of a longer job: a bar in a terminal, plain lines elsewhere."""

    def __init__(self, quiet: bool = False, every: float = 2.0):
        """`every`: seconds between two plain lines of one stage, at the least."""
        self._console = console(quiet)
        self._every = every

    def note(self, text: str) -> None:
        """A line between the parts."""
        self._console.print(Text(printable_lines(text)), soft_wrap=True)

    @contextlib.contextmanager
    def stage(self, text: str, total: int) -> Iterator[Callable[[str], None]]:
        """While it lasts: the function it gives is called after each part, with a fact or none."""
        began = time.monotonic()
        if self._console.is_terminal:
            with self._bar(text, total) as advance:
                yield advance
            return
        self._console.print(f"{text} ...", soft_wrap=True)
        count, last = 0, began

        def done(fact: str) -> None:
            nonlocal count, last
            count = min(count + 1, total)
            if time.monotonic() - last > self._every:
                last = time.monotonic()
                self._console.print(f"  {count}/{total}  {fact}".rstrip(), soft_wrap=True)

        yield done
        self._console.print(f"  done in {time.monotonic() - began:.1f} s", soft_wrap=True)

    @contextlib.contextmanager
    def _bar(self, text: str, total: int) -> Iterator[Callable[[str], None]]:
        columns = (
            TextColumn("{task.description:<34}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[fact]}"),
        )
        with Bar(*columns, console=self._console) as bar:
            task = bar.add_task(text, total=total, fact="")
            yield lambda fact: bar.update(task, advance=1, fact=fact)
            bar.update(task, completed=total, fact="done")

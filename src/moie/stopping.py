"""Ctrl-C and SIGTERM, at a good moment."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moie.errors import Stopped

BEFORE_THE_FIRST = "stopped before the first iteration was complete; nothing is kept"


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Ctrl-C and SIGTERM ask to stop at the next good moment; a second one stops at once.

    Gives the function that raises `Stopped` when it was asked for.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        os.write(2, b"\nstopping; once more to stop at once\n")

    def check() -> None:
        if asked.is_set():
            raise Stopped("stopped")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

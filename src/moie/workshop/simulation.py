"""The server's end of a process that simulates: started, watched, ended, whatever it does."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from moie import system

START_LIMIT = 120.0
"""Seconds for a process to import its simulator."""
SILENCE = 10.0
"""Seconds without a sign of life after which a process is given up."""

Hear = Callable[[bytes], None]
"""Called with what the process says, in a thread of its own."""
Gone = Callable[[str], None]
"""Called once when the process has ended without being told to, with the reason."""


class Simulation:
    """A process of ours that talks over a socket. What it says is passed on as bytes."""

    def __init__(self, module: str, first: Any, hear: Hear, gone: Gone, silence: float = SILENCE):
        environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.process, ours = system.start(module, environment)
        self._connection = Connection(ours.detach())
        self._hear, self._gone, self._silence = hear, gone, silence
        self._heard, self._is_ready, self._is_closed = time.monotonic(), False, False
        self._sending = threading.Lock()
        self._connection.send(first)
        for target in (self._read, self._watch):
            threading.Thread(target=target, daemon=True).start()

    def tell(self, *message: Any) -> None:
        """Send a message; one to a process that is gone is lost."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(message)

    def close(self) -> None:
        """End the process."""
        self._is_closed = True
        self._kill()
        with contextlib.suppress(OSError):
            self.process.wait(timeout=10)

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, 9)

    def _read(self) -> None:
        """Pass on what it says until it ends."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                content = self._connection.recv_bytes()
                self._heard, self._is_ready = time.monotonic(), True
                if content:
                    self._hear(content)
        self._kill()
        code = self.process.wait()
        with self._sending:
            self._connection.close()
        if not self._is_closed:
            self._is_closed = True
            is_silent = time.monotonic() - self._heard > self._silence
            reason = "did not respond" if is_silent else f"ended with exit code {code}"
            self._gone(reason)

    def _watch(self) -> None:
        """End a process that gives no sign of life."""
        while self.process.poll() is None:
            limit = self._silence if self._is_ready else START_LIMIT
            if time.monotonic() - self._heard > limit:
                self._kill()
                return
            time.sleep(0.1)


def first_message(spec: bytes, content: Any) -> tuple[bytes, list[str], Any]:
    """What a process needs to begin."""
    return spec, sys.path, content

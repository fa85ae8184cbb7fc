"""Which run is next: runs that are done are skipped, others go on, failures are repeated."""

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from moie.errors import InputError, Stopped
from moie.files import writing
from moie.studies.cluster.job import Outcome
from moie.studies.cluster.ray_cluster import Cluster
from moie.studies.declaration import Planned
from moie.studies.status import RunStatus, look, write_failure

RETRIES = 3
PAUSE = 5.0
"""Seconds before a run is tried again, or checked again while another process works on it."""
POLL = 1.0
PATIENCE = 120.0
"""Seconds that runs have to end when the user stops the study."""


def log(folder: Path, status: RunStatus, outcome: Outcome) -> None:
    """Append a line about an attempt to the study's log."""
    event = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "run": status.name,
        "iteration": status.iteration,
        **asdict(outcome),
    }
    file = folder / "log.jsonl"
    with writing(file), open(file, "a") as lines:
        lines.write(json.dumps(event) + "\n")


@dataclass
class Attempt:
    """A run, and how often it failed since its last complete iteration."""

    planned: Planned
    failures: int = 0
    iteration: int = 0
    not_before: float = 0.0


class Execution:
    """A study that is being executed."""

    def __init__(
        self,
        folder: Path,
        planned: list[Planned],
        cluster: Cluster,
        note: Callable[[str], None],
        beat: Callable[[int], None],
    ):
        """`note` takes a line for the user; `beat` is called often with the number of runs that
        there is room for, and raises `Stopped` when the user wants to stop."""
        self._folder, self._cluster, self._note, self._beat = folder, cluster, note, beat
        self._waiting: deque[Attempt] = deque()
        self._running: dict[Any, Attempt] = {}
        for one in planned:
            status = look(folder, one)
            if status.state not in ("done", "failed"):
                self._waiting.append(Attempt(one, iteration=status.iteration))

    def go(self) -> None:
        """Go on until every run is done or given up."""
        try:
            while self._waiting or self._running:
                self._beat(self._cluster.slots)
                self._submit()
                self._collect()
        except (Stopped, InputError):  # e.g. no space left
            self._stop()
            raise

    def _submit(self) -> None:
        """Submit more runs than there is room for, so that a cluster that can grow does."""
        now, room = time.monotonic(), 2 * max(1, self._cluster.slots)
        for _ in range(len(self._waiting)):
            if len(self._running) >= room:
                break
            attempt = self._waiting.popleft()
            if attempt.not_before > now:
                self._waiting.append(attempt)
            elif look(self._folder, attempt.planned).state in ("running", "done"):
                self._later(attempt)  # another process works on it, or did
            else:
                self._running[self._cluster.submit(self._folder, attempt.planned)] = attempt

    def _later(self, attempt: Attempt) -> None:
        attempt.not_before = time.monotonic() + PAUSE
        if look(self._folder, attempt.planned).state != "done":
            self._waiting.append(attempt)

    def _collect(self) -> None:
        if not self._running:
            time.sleep(POLL)
            return
        for handle, outcome in self._cluster.ended(self._running, POLL):
            self._ended(self._running.pop(handle), outcome)

    def _ended(self, attempt: Attempt, outcome: Outcome) -> None:
        status = look(self._folder, attempt.planned)
        if outcome.end == "done" and status.state != "done":
            time.sleep(POLL)  # a file system that many machines share may be late
            status = look(self._folder, attempt.planned)
            if status.state != "done":
                error = f"it ended elsewhere: does its machine see {self._folder}?"
                outcome = replace(outcome, end="failed", error=error)
        log(self._folder, status, outcome)
        if outcome.end == "done":
            value = "" if status.value is None else f", return {status.value:.1f}"
            self._note(f"done: {status.name}{value}")
        elif outcome.end in ("failed", "died"):
            self._failed(attempt, status, outcome)
        else:
            self._later(attempt)

    def _failed(self, attempt: Attempt, status: RunStatus, outcome: Outcome) -> None:
        """Try again, unless it failed too often without getting any further."""
        attempt.failures = 1 if status.iteration > attempt.iteration else attempt.failures + 1
        attempt.iteration = max(attempt.iteration, status.iteration)
        said = f"{outcome.end}: {status.name} after iteration {status.iteration}: {outcome.error}"
        if attempt.failures <= RETRIES:
            self._note(f"{said}; try {attempt.failures} of {RETRIES + 1}, another one follows")
            self._later(attempt)
            return
        self._note(f"{said}; given up")
        content = {"run": status.name, "attempts": attempt.failures, **asdict(outcome)}
        write_failure(self._folder, status.name, content)

    def _stop(self) -> None:
        """Let the runs save their state; one that takes too long loses an iteration at most."""
        self._cluster.stop(self._running)
        deadline = time.monotonic() + PATIENCE
        while self._running and time.monotonic() < deadline:
            for handle, outcome in self._cluster.ended(self._running, POLL):
                status = look(self._folder, self._running.pop(handle).planned)
                log(self._folder, status, outcome)

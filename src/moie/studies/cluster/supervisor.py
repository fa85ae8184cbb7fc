"""The user's end of a running study: progress, Ctrl-C, and a new driver where one died."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from moie import system
from moie.environments import specs
from moie.errors import ClusterError, Stopped
from moie.files import writing
from moie.studies.cluster.driver import STOP
from moie.studies.cluster.ray_cluster import Resources
from moie.studies.cluster.scheduler import PATIENCE
from moie.studies.declaration import Planned
from moie.studies.progress import StudyProgress
from moie.studies.status import RunStatus, look

PAUSES = (1.0, 15.0, 60.0)
"""Seconds before each next driver, as long as none completes an iteration."""
POLL = 1.0
JOIN, START = 60.0, 300.0
"""Seconds for a cluster to answer, and for one to start here."""


class Supervision:
    """Watches a study's driver, or several in turn."""

    def __init__(
        self,
        folder: Path,
        planned: list[Planned],
        resources: Resources,
        progress: StudyProgress,
        check: Callable[[], None],
    ):
        self._folder, self._planned, self._resources = folder, planned, resources
        self._progress, self._check = progress, check
        self._log_file = folder / "ray.log"
        self._is_ours = resources.address is None
        """Whether Ray is started for this study."""
        self._slots, self._fault = 1, ""
        self._is_connected = self._was_connected = False
        """Whether the present driver, or any, has a cluster."""
        self._done: dict[str, RunStatus] = {}

    def statuses(self) -> list[RunStatus]:
        """The states of all runs; those that are done stay so."""
        statuses = [self._done.get(one.name) or look(self._folder, one) for one in self._planned]
        self._done |= {status.name: status for status in statuses if status.state == "done"}
        return statuses

    def go(self) -> None:
        """Go on until every run is done or given up, with as many drivers as that takes."""
        failures, before = 0, -1
        with self._progress.shown():
            while not self._one_driver():
                iterations = sum(status.iteration for status in self.statuses())
                failures = 1 if iterations > before else failures + 1
                before = iterations
                if failures > len(PAUSES):
                    raise ClusterError(
                        f"Ray ended {failures} times without getting any further{self._fault}; "
                        f"what it said is in {self._log_file}; the same command goes on when that "
                        "is mended"
                    )
                self._progress.note(
                    f"Ray ended unexpectedly{self._fault}, see {self._log_file}; starting again"
                )
                self._pause(PAUSES[failures - 1])

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._check()
            time.sleep(0.1)

    def _one_driver(self) -> bool:
        """Whether a driver came to its end. An error before there was a cluster is for the user to
        mend; a later one (a cluster that is not back yet) may mend itself."""
        process, connection = self._start()
        is_first, self._is_connected = not self._was_connected, False
        limit = START if self._is_ours else JOIN
        deadline = time.monotonic() + limit
        try:
            self._brief(connection, is_first)
            while True:
                self._check()
                kind, content = self._heard(connection)
                if not kind and not self._is_connected and time.monotonic() > deadline:
                    kind, content = "wrong", self._silence(limit)
                if kind == "end":
                    return True
                if kind == "wrong" and is_first:
                    raise ClusterError(content)
                if kind in ("gone", "wrong"):
                    self._fault = f" ({content})" if content else ""
                    return False
                if self._progress.is_due:
                    self._progress.show(self.statuses(), self._slots)
        except Stopped:
            if self._is_connected:
                self._progress.note("stopping the runs")
            self._wait_for_end(connection)
            raise Stopped("stopped; the same command goes on") from None
        finally:
            connection.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10 if self._is_connected or self._is_ours else 0)
            process.kill()
            process.wait()

    def _silence(self, seconds: float) -> str:
        """The error when nothing was heard in that time."""
        if self._is_ours:
            return f"Ray did not start on this machine within {seconds:.0f} s"
        return f"no Ray cluster at {self._resources.address}: no answer within {seconds:.0f} s"

    def _brief(self, connection: Connection, is_first: bool) -> None:
        """Send the study. `is_first`: no driver before this one had a cluster."""
        packed = {task: specs.pack(task) for task in {p.config.task for p in self._planned}}
        study = (self._folder.absolute(), self._planned, packed, self._resources, is_first)
        with contextlib.suppress(OSError):  # gone already: that is heard next
            connection.send(study)

    def _start(self) -> tuple[subprocess.Popen, Connection]:
        with writing(self._log_file), open(self._log_file, "ab") as log:
            process, ours = system.start(
                "moie.studies.cluster.driver", dict(os.environ), stdout=log, stderr=log
            )
        return process, Connection(ours.detach())

    def _heard(self, connection: Connection) -> tuple[str, Any]:
        """How the driver ended, if it says so within a second; "gone" if it is dead."""
        deadline = time.monotonic() + POLL
        try:
            while connection.poll(max(0.0, deadline - time.monotonic())):
                kind, content = connection.recv()
                if kind == "connected":
                    self._is_connected = self._was_connected = True
                elif kind == "slots":
                    self._slots = content
                elif kind == "note":
                    self._progress.note(content)
                else:
                    return kind, content
        except (EOFError, OSError):
            return "gone", None
        return "", None

    def _wait_for_end(self, connection: Connection) -> None:
        """Wait for the driver after Ctrl-C; it limits how long it waits for the runs."""
        patience = PATIENCE + 30 if self._is_connected else PAUSES[1] if self._is_ours else 0
        deadline = time.monotonic() + patience
        with contextlib.suppress(OSError):
            connection.send(STOP)
        while time.monotonic() < deadline and not self._heard(connection)[0]:
            pass

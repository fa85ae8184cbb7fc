"""The user's end of a study that is going on: progress, Ctrl-C, and a new driver where one died."""

import contextlib
import dataclasses
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
from moie.runs.config import to_json
from moie.studies.cluster.driver import STOP, Brief
from moie.studies.cluster.ray_cluster import Resources
from moie.studies.cluster.scheduler import PATIENCE
from moie.studies.declaration import Planned
from moie.studies.progress import StudyProgress
from moie.studies.status import RunStatus, look

PAUSES = (1.0, 15.0, 60.0)
"""Seconds before another driver follows one that ended, without any iteration in between."""
POLL = 1.0
JOIN, START = 60.0, 300.0
"""Seconds for a cluster to let us in, and for one to start here."""


class Supervision:
    """Of one study's driver, or of several in turn."""

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
        self._slots, self._fault = 1, ""
        self._is_connected = self._was_connected = False
        """The present driver, any."""
        self._done: dict[str, RunStatus] = {}

    @property
    def log_file(self) -> Path:
        return self._folder / "ray.log"

    def statuses(self) -> list[RunStatus]:
        """Of all runs; those that are done stay so."""
        found = [self._done.get(one.name) or look(self._folder, one) for one in self._planned]
        self._done |= {status.name: status for status in found if status.state == "done"}
        return found

    def go(self) -> None:
        """Until every run is done or given up, with as many drivers as that takes."""
        failures, before = 0, -1
        with self._progress.shown():
            while not self._one_driver():
                iterations = sum(status.iteration for status in self.statuses())
                failures = 1 if iterations > before else failures + 1
                before = iterations
                if failures > len(PAUSES):
                    raise ClusterError(
                        f"Ray ended {failures} times without getting any further{self._fault}; "
                        f"what it said is in {self.log_file}; the same command goes on when that "
                        "is mended"
                    )
                self._progress.note(
                    f"Ray ended unexpectedly{self._fault}, see {self.log_file}; starting again"
                )
                self._pause(PAUSES[failures - 1])

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._check()
            time.sleep(0.1)

    def _one_driver(self) -> bool:
        """Whether it came to its end. What is wrong before there was a cluster is for the user to
        mend; what is wrong later (a cluster that is not back yet) may mend itself."""
        process, connection = self._start()
        is_first, self._is_connected, began = not self._was_connected, False, time.monotonic()
        try:
            self._brief(connection, is_first)
            while True:
                self._check()
                kind, content = self._heard(connection)
                if not kind and not self._is_connected and time.monotonic() - began > self._limit:
                    kind, content = "wrong", self._silence
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

    @property
    def _is_ours(self) -> bool:
        """Whether Ray is started for this study."""
        return self._resources.address is None

    @property
    def _limit(self) -> float:
        return START if self._is_ours else JOIN

    @property
    def _silence(self) -> str:
        """What is wrong when nothing was heard in that time."""
        if self._is_ours:
            return f"Ray did not start on this machine within {self._limit:.0f} s"
        where = self._resources.address
        return f"no Ray cluster at {where}: no answer within {self._limit:.0f} s"

    def _brief(self, connection: Connection, is_first: bool) -> None:
        brief = Brief(
            folder=str(self._folder.absolute()),
            runs=[(one.name, to_json(one.config)) for one in self._planned],
            specs={task: specs.pack(task) for task in {p.config.task for p in self._planned}},
            resources=dataclasses.asdict(self._resources),
            is_first=is_first,
        )
        with contextlib.suppress(OSError):  # gone already: that is heard next
            connection.send(brief)

    def _start(self) -> tuple[subprocess.Popen, Connection]:
        with writing(self.log_file), open(self.log_file, "ab") as log:
            process, ours = system.start(
                "moie.studies.cluster.driver", dict(os.environ), stdout=log, stderr=log
            )
        return process, Connection(ours.detach())

    def _heard(self, connection: Connection) -> tuple[str, Any]:
        """What the driver says within a second, if it is how it ended; "gone" if it is dead."""
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
        """After Ctrl-C; the driver itself limits how long it waits for the runs. One that still
        waits for a cluster has none."""
        patience = PATIENCE + 30 if self._is_connected else PAUSES[1] if self._is_ours else 0
        deadline = time.monotonic() + patience
        with contextlib.suppress(OSError):
            connection.send(STOP)
        while time.monotonic() < deadline and not self._heard(connection)[0]:
            pass

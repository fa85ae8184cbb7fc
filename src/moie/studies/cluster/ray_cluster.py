"""The only module that knows Ray: machines, processes that work on runs, and how these end."""

import contextlib
import os
import secrets
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moie.errors import ClusterError, InputError, require
from moie.runs.machinery import check_timeout
from moie.studies.cluster.job import Outcome, work
from moie.studies.declaration import Planned
from moie.system import n_cores

REACH = 10.0
"""Seconds for a cluster to answer."""
TOKEN = (".ray", "auth_token")
"""Where Ray keeps the user's token, below the home directory."""
OBJECT_STORE = 100 * 2**20
"""Bytes: only names and errors pass through it."""


@dataclass(frozen=True)
class Resources:
    """The machines that a study may use. They do not change the result."""

    address: str | None = None
    """The cluster to join; default: one is started here, and stopped at the end."""
    cpus: int | None = None  # CPUs of the cluster that is started here; default: number of cores
    cpus_per_run: int = 1
    """Also the number of processes that simulate for a run; its learner keeps to one thread."""
    worker_timeout: float = 300.0

    def __post_init__(self) -> None:
        require(self.cpus is None or self.cpus >= 1, "cpus", self.cpus, "at least 1")
        require(self.cpus_per_run >= 1, "cpus_per_run", self.cpus_per_run, "at least 1")
        check_timeout(self.worker_timeout)
        if self.address is not None and self.cpus is not None:
            raise InputError("cpus is for a cluster started here; leave it out with address")


class Cluster:
    """A Ray cluster that we are connected to."""

    def __init__(self, ray: Any, resources: Resources, specs: dict[str, bytes]):
        """`specs`: for each task, what a process that has not registered it needs."""
        self._ray, self._resources, self._specs = ray, resources, specs
        self._work = ray.remote(
            num_cpus=resources.cpus_per_run, max_retries=0, scheduling_strategy="SPREAD"
        )(work)
        most = max(self._cpus(), default=0)
        if most > 0:  # machines may be still to come where there are none
            expected = f"at most the {most} of the largest machine of the cluster"
            fits = resources.cpus_per_run <= most
            require(fits, "cpus_per_run", resources.cpus_per_run, expected)

    def _cpus(self) -> list[int]:
        """CPUs of each machine."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if not nodes and self._resources.address is None:
            raise RuntimeError("the cluster that was started here is gone")
        return [int(node.get("CPU", 0)) for node in nodes]

    @property
    def slots(self) -> int:
        """The number of runs that can go on at the same time."""
        return sum(cpus // self._resources.cpus_per_run for cpus in self._cpus())

    def submit(self, folder: Path, planned: Planned) -> Any:
        """Have a run worked on as soon as there is room. Returns a handle."""
        here = os.getcwd()
        return self._work.remote(
            path=(folder / planned.name).absolute(),
            config=planned.config,
            spec=self._specs[planned.config.task],
            workers=self._resources.cpus_per_run,
            timeout=self._resources.worker_timeout,
            foreign=() if here in sys.path else (here,),
        )

    def ended(self, handles: Iterable[Any], timeout: float) -> list[tuple[Any, Outcome]]:
        """Runs that ended; waits for the first of them, so many seconds at most."""
        handles = list(handles)
        ready, _ = self._ray.wait(handles, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(handles, num_returns=len(handles), timeout=0)
        return [(handle, self._outcome(handle)) for handle in ready]

    def _outcome(self, handle: Any) -> Outcome:
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.TaskCancelledError:
            return Outcome("stopped")
        except errors.RayTaskError as error:  # e.g. moie is not installed on that machine
            return Outcome("failed", str(error).strip().splitlines()[-1], details=str(error))
        except errors.RayError as error:
            return Outcome("died", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")

    def stop(self, handles: Iterable[Any]) -> None:
        """Ask runs to stop at the next good moment."""
        for handle in handles:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(handle, force=False, recursive=False)


def check(resources: Resources) -> None:
    """InputError if it is clear from the start that there is no such cluster."""
    if resources.address is not None:
        _check_reachable(resources.address)
        return
    most = resources.cpus or n_cores()
    expected = f"at most the {most} of this machine"
    require(resources.cpus_per_run <= most, "cpus_per_run", resources.cpus_per_run, expected)


def _check_reachable(address: str) -> None:
    """ClusterError at once where Ray would keep trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # "auto", or something that Ray may know
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClusterError(
            f"no Ray cluster at {address}: {reason}; start one with 'ray start --head'"
        ) from error


def _use_token() -> None:
    """Use the user's token, which a cluster may ask for; Ray does so only if told before it is
    imported. Make its file private, too: Ray leaves it readable to everyone, and whoever has the
    token can run code on the cluster."""
    places, file = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"), Path.home().joinpath(*TOKEN)
    if any(os.environ.get(place) for place in places) or file.exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    with contextlib.suppress(OSError):  # there is none, or it is somebody else's
        file.chmod(0o600)


def _keep_private() -> None:
    """Close a Ray of our own to everybody else, by variables that it reads when it is imported. It
    listens on the loopback interface only, as it does on macOS and Windows unless told otherwise,
    and asks for a token that is made for it and written to no file."""
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if not os.environ.get("RAY_AUTH_TOKEN"):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


@contextlib.contextmanager
def connected(resources: Resources, specs: dict[str, bytes]) -> Iterator[Cluster]:
    """Join a cluster, or start one of our own; leave or stop it at the end."""
    check(resources)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if resources.address is None:
        _keep_private()
        os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
        options |= {"address": "local", "num_cpus": resources.cpus or n_cores()}
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    else:
        _use_token()
        options["address"] = resources.address
    import ray

    try:
        ray.init(**options)
    except (ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split())
        if resources.address is None:
            raise ClusterError(f"Ray does not start on this machine: {reason}") from error
        raise ClusterError(
            f"no Ray cluster at {resources.address}: {reason}; start one with 'ray start --head', "
            "and give RAY_AUTH_MODE and the token here as there"
        ) from error
    try:
        yield Cluster(ray, resources, specs)
    finally:
        ray.shutdown()

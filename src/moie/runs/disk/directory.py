"""A run on disk: configuration, versions, metrics, checkpoints and the policy file."""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moie import system
from moie.errors import Busy, FileError, InputError, shortened
from moie.files import (
    as_json,
    parse_json,
    read_bytes,
    reading,
    remove_leftovers,
    typed,
    write_bytes,
    write_folder,
    writing,
)
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.runs.config import RunConfig, from_json, to_json
from moie.zoo import catalogue as zoo

FORMAT = "moie-run"
LARGEST = 2**24
"""Bytes of a run.json: far more than any has."""
PACKAGES = "moie jax jaxlib equinox optax numpy gymnasium "
PACKAGES += "pybullet pybullet-envs-gymnasium box2d mujoco"


def versions() -> dict[str, str]:
    """Versions of Python and of every package that can change a result."""
    known = {"python": platform.python_version()}
    for package in PACKAGES.split():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            known[package] = importlib.metadata.version(package)
    return known


def host() -> dict[str, str | int]:
    """The kind of machine this is; nothing that identifies it."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": system.processor(),
        "cores": os.cpu_count() or 1,
    }


def _run_json(
    config: RunConfig, started_with: dict[str, str], started_on: dict[str, str | int]
) -> bytes:
    facts = {"versions": started_with, "host": started_on}
    return as_json({"format": FORMAT, "config": to_json(config), **facts})


def new_run(config: RunConfig) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Files and empty folders of a run that has learned nothing yet."""
    return {"run.json": _run_json(config, versions(), host())}, ("checkpoints",)


def present(checkpoints: Path) -> list[Path]:
    """Checkpoints in their folder, oldest first. Other names are not ours."""
    ours = re.compile("[0-9]{6}|[1-9][0-9]{6,17}")
    folders = (p for p in checkpoints.glob("[0-9]*") if p.is_dir() and ours.fullmatch(p.name))
    return sorted(folders, key=lambda path: int(path.name))


class _Part:
    """A file or folder in a run directory."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, run: "RunDirectory", kind: object) -> Path:
        return run.path / self._name


@dataclass(frozen=True)
class RunDirectory:
    """The paths of a run's parts, and its configuration file."""

    path: Path

    config_file = _Part("run.json")
    metrics_file = _Part("metrics.jsonl")
    checkpoints = _Part("checkpoints")
    policy_file = _Part("policy.safetensors")
    tensorboard = _Part("tensorboard")
    fault_file = _Part("fault.json")
    lock_file = _Part("run.lock")

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> "RunDirectory":
        """Make a new run, which appears as a whole; an existing one is never overwritten."""
        cls.check_free(path)
        try:
            write_folder(path, *new_run(config))
        except InputError:
            cls.check_free(path)  # another process may have been faster
            raise
        return cls(path)

    @staticmethod
    def check_free(path: Path) -> None:
        """FileError if something is there already."""
        if (path / "run.json").exists():
            raise FileError(
                f"{path} is a run already; go on with: {typed('resume', path)}, or choose another "
                "--out"
            )
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileError(f"{path} exists and is not empty; choose another --out")

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """Open an existing run."""
        run = cls(path)
        if not run.config_file.is_file():
            said = f"{path} is not a run: there is no {run.config_file.name} in it"
            raise FileError(said + _runs_below(path))
        return run

    def change_config(self, config: RunConfig) -> None:
        """Write another configuration; versions and host stay those of the start."""
        write_bytes(self.config_file, _run_json(config, self.started_with(), self.started_on()))

    def read_config(self) -> RunConfig:
        """The configuration of the run."""
        with self._content() as content:
            return from_json(content["config"])

    def started_with(self) -> dict[str, str]:
        """Versions of the packages that the run was started with."""
        return self._facts("versions")

    def started_on(self) -> dict[str, str | int]:
        """The kind of machine that the run was started on."""
        return self._facts("host")

    @contextlib.contextmanager
    def _content(self) -> Iterator[dict[str, Any]]:
        """The content of run.json; FileError where it, or what is read from it, is damaged."""
        with reading(f"{self.config_file} cannot be read"):
            content = parse_json(read_bytes(self.config_file, LARGEST))
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise ValueError("it was not written by moie")
            yield content

    def _facts(self, name: str) -> dict[str, Any]:
        """Texts and whole numbers by name; none in older runs."""
        with self._content() as content:
            facts = content.get(name, {})
            if not isinstance(facts, dict) or not all(
                isinstance(value, str | int) for value in facts.values()
            ):
                raise ValueError(f"{name} is {shortened(facts)}, expected texts and whole numbers")
            return facts

    def write_policy(self, policy: Policy) -> None:
        """The policy file, unless it holds this policy already."""
        content = policy_file.to_bytes(policy)
        if not self.policy_file.is_file() or self.policy_file.read_bytes() != content:
            write_bytes(self.policy_file, content)

    def bring_policy(self, policy: Policy) -> None:
        """Write the policy of a checkpoint, unless the policy file holds it, be it with the states
        that it visited afterwards."""
        with contextlib.suppress(InputError):
            there = policy_file.load_file(self.policy_file)
            if isinstance(there, Mixture):
                there = replace(there, visited=None)
            if policy_file.to_bytes(there) == policy_file.to_bytes(policy):
                return
        self.write_policy(policy)

    def changed_versions(self) -> list[str]:
        """Packages that have another version now, or are gone: bits may differ from here on."""
        before, now = self.started_with(), versions()
        return [
            f"{name} {old} is now {now.get(name, 'gone')}"
            for name, old in before.items()
            if now.get(name) != old
        ]

    def iterations_saved(self) -> int:
        """Iterations of the newest checkpoint."""
        return max((int(path.name) for path in present(self.checkpoints)), default=0)

    def remove(self) -> None:
        """Remove all that moie has written; the folder too, unless it holds something else."""
        for folder in (self.tensorboard, self.checkpoints):
            shutil.rmtree(folder, ignore_errors=True)
        remove_leftovers(self.path)
        files = (self.metrics_file, self.policy_file, self.fault_file, self.config_file)
        for file in (*files, self.lock_file):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from working on the run; the lock ends with the process."""
        with writing(self.lock_file):
            file = open(self.lock_file, "w")  # noqa: SIM115  closed below, with the lock
        with file:
            for wait in (0.05, 0.2, None):  # `is_busy` of another process may hold it for a moment
                try:
                    system.lock(file)
                    break
                except BlockingIOError as error:
                    if wait is None:
                        raise Busy(f"another process is working on {self.path}") from error
                    time.sleep(wait)
            yield

    def is_busy(self) -> bool:
        """Whether a process is working on the run now."""
        try:
            with open(self.lock_file) as file:
                system.lock(file, shared=True)
        except OSError as error:  # or there is no lock yet
            return isinstance(error, BlockingIOError)
        return False


def _runs_below(path: Path) -> str:
    """A hint where a folder has runs in it, as that of a swarm has."""
    runs = sorted((p.parent for p in path.glob("*/run.json")), key=lambda p: (len(p.name), p.name))
    return f"; it has runs in it, name one of them: {runs[0]}" if runs else ""


def policy_path(path: str | os.PathLike[str]) -> Path:
    """The policy file of a run directory or of a name such as "zoo:hopper", or the file itself."""
    if zoo.is_named(path):
        # The shell's ./zoo:hopper comes without its first two characters: it must not be taken
        # for the zoo's.
        if os.path.lexists(path):
            raise FileError(
                f"{os.fspath(path)!r} is a file in the current folder, and how policies of the zoo "
                "are named: give the file's full path, or rename it"
            )
        return zoo.find(path).file
    path = Path(path)
    if not path.exists():
        raise FileError(f"there is no run or policy file at {path}")
    if path.is_dir():
        run = RunDirectory.open(path)
        if not run.policy_file.exists():
            raise FileError(
                f"{path} has no policy yet: no iteration is complete; go on with: "
                f"{typed('resume', path)}"
            )
        path = run.policy_file
    return path


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """A policy from a run directory, from a policy file or from the zoo."""
    return policy_file.load_file(policy_path(path))


def target_beside(path: Path, name: str, out: Path | None) -> Path:
    """The user's choice, or that name in a run directory or beside a policy file; what is about a
    policy of the zoo goes into the current folder."""
    if out is None:
        file = zoo.local(path)
        out = path / name if path.is_dir() else file.with_name(f"{file.stem}-{name}")
    # Of a link that leads to itself, `resolve` makes an error that is not the user's.
    return Path(os.path.realpath(out)) if out.is_symlink() else out

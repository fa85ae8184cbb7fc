"""How a swarm begins, and how it goes on."""

from dataclasses import replace
from pathlib import Path

import jax

from moie.accelerated import folder
from moie.accelerated.catalogue import check_environments
from moie.accelerated.folder import Swarm, member_path
from moie.accelerated.training import Group
from moie.errors import DivergenceError
from moie.runs.config import RunConfig, with_schedule
from moie.runs.disk.directory import RunDirectory
from moie.runs.lifecycle import note_versions, starting
from moie.runs.machinery import Machinery


def machine() -> str:
    """The kind of machine that jax computes on."""
    return jax.devices()[0].device_kind


def start(
    path: Path,
    config: RunConfig,
    seeds: tuple[int, ...],
    at_once: int | None,
    machinery: Machinery,
) -> None:
    """Train all seeds. Nothing is written before the input is known to be good."""
    check_environments(config.environments, config.batch_steps)
    folder.check_free(path)
    config = with_schedule(config)
    swarm = Swarm(seeds, at_once or len(seeds), machine())
    group = Group(path, config, swarm.groups[0], machinery, is_new=True)
    with starting(path, lambda: folder.create(path, swarm, config), folder.NAME):
        _warn(machinery)
        while not _fits(group):
            del group  # its memory is needed
            swarm = replace(swarm, at_once=-(-swarm.at_once // 2))
            folder.write(path, swarm)
            machinery.progress.note(
                f"memory does not hold so many seeds side by side: {swarm.at_once} at a time"
            )
            group = Group(path, config, swarm.groups[0], machinery, is_new=True)
        lost = group.lost
        del group
        for some in swarm.groups[1:]:
            group = Group(path, config, some, machinery)
            group.go()
            lost += group.lost
            del group
        _check_lost(lost, swarm)


def _check_lost(lost: list[str], swarm: Swarm) -> None:
    """DivergenceError where no seed is left."""
    if len(lost) == len(swarm.seeds):
        raise DivergenceError(f"all seeds diverged; seed {swarm.seeds[0]}: {lost[0]}")


def _fits(group: Group) -> bool:
    """Train a group; False where memory does not hold it, and fewer seeds may."""
    try:
        group.go()
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) or len(group.members) == 1 or group.iteration:
            raise
        return False
    return True


def _warn(machinery: Machinery) -> None:
    if jax.default_backend() == "cpu":
        machinery.progress.note(
            "there is no accelerator that jax can use: this runs on the processor, and is slow; "
            "pip install 'moie[gpu]' on a machine with an NVIDIA GPU"
        )


def resume(path: Path, machinery: Machinery, iterations: int | None = None) -> None:
    """Continue a swarm, to its end or to another number of iterations."""
    folder.read(path)  # before there is a lock in it
    with RunDirectory(path).lock():
        _continue(path, machinery, iterations)


def _continue(path: Path, machinery: Machinery, iterations: int | None) -> None:
    swarm = folder.read(path)
    first, *_ = [RunDirectory.open(member_path(path, seed)) for seed in swarm.seeds]
    config = first.read_config()
    if iterations is not None:
        config = replace(config, iterations=iterations)
    if machine() != swarm.machine:
        machinery.progress.note(
            f"another kind of machine than {path} was started on ({swarm.machine}): results may "
            "differ in their last digits"
        )
    note_versions(first, path, machinery.progress.note)
    for some in swarm.groups[1:]:  # before anything is written; the first one's turn is next
        Group(path, config, some, machinery).checked(lambda said: None)
    _warn(machinery)
    n_learned, lost = 0, []
    for some in swarm.groups:
        group = Group(path, config, some, machinery)
        group.restore()
        if not group.is_complete():
            n_learned += len(some)
            for member in group.members:
                if member.run.read_config() != member.config:
                    member.run.change_config(member.config)
            group.go()
        lost += group.lost
    _check_lost(lost, swarm)
    if not n_learned:
        machinery.progress.note(
            f"{path} is complete; --iterations with a larger number continues it"
        )

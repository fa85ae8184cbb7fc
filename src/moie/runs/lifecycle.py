"""How a run begins, and how it goes on."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from moie.errors import InputError
from moie.runs.config import RunConfig, with_schedule
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.standing import check_config, last_checkpoint
from moie.runs.machinery import Machinery
from moie.runs.training import Training


@contextlib.contextmanager
def starting(path: Path, config: RunConfig) -> Iterator[RunDirectory]:
    """A new run while it is worked on. One that ends without any iteration leaves nothing behind:
    the place is as it was before."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    run: RunDirectory | None = None
    try:
        run = RunDirectory.create(path, config)
        with run.lock():
            yield run
    except BaseException:
        if run is not None and not run.iterations_saved():
            run.remove()
            if path not in missing:
                path.mkdir(exist_ok=True)
        for folder in missing:
            with contextlib.suppress(OSError):  # not empty, or gone already
                folder.rmdir()
        raise


def train(path: Path, config: RunConfig, machinery: Machinery) -> RunDirectory:
    """Start a run and learn to its end. Nothing is written before the input is known to be good."""
    RunDirectory.check_free(path)
    config = with_schedule(config)
    training = Training(RunDirectory(path), config, machinery, is_new=True)
    with starting(path, config) as run:
        training.go()
    return run


def resume(path: Path, machinery: Machinery, iterations: int | None = None) -> RunDirectory:
    """Go on with a run, to its end or to another number of iterations."""
    run = RunDirectory.open(path)
    with run.lock():
        config = before = run.read_config()
        found = last_checkpoint(run, machinery.progress.note)
        if iterations is not None:
            config = replace(config, iterations=iterations)
        if found is not None:
            check_config(run, config, found)
            if found.counters.iteration > config.iterations:
                raise InputError(
                    f"iterations is {config.iterations}, expected at least the "
                    f"{found.counters.iteration} that {path} has done"
                )
        training = Training(run, config, machinery)
        if found is not None:
            training.restore(found)
        if config != before:
            run.change_config(config)
        if training.is_complete():
            machinery.progress.note(
                f"{path} is complete: {config.iterations} iterations; "
                "--iterations with a larger number goes on"
            )
            return run
        if changed := run.changed_versions():
            machinery.progress.note(
                f"other versions than {path} was started with, results may differ in their last "
                f"digits: {', '.join(changed)}"
            )
        training.go()
    return run

"""How a run begins, and how it goes on."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from moie.learn.config import require
from moie.runs.config import RunConfig, with_schedule
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.standing import check_config, last_checkpoint
from moie.runs.machinery import Machinery
from moie.runs.training import Training


@contextlib.contextmanager
def starting(path: Path, config: RunConfig) -> Iterator[RunDirectory]:
    """A new run, locked. One that ends without any iteration leaves nothing behind."""
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
    """Start a run and learn to its end. Nothing is written before the input is checked."""
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
        last = last_checkpoint(run, machinery.progress.note)
        if iterations is not None:
            config = replace(config, iterations=iterations)
        if last is not None:
            check_config(run, config, last)
            done = last.counters.iteration
            expected = f"at least the {done} that {path} has done"
            require(done <= config.iterations, "iterations", config.iterations, expected)
        training = Training(run, config, machinery)
        if last is not None:
            training.restore(last)
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

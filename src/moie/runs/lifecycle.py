"""How a run begins, and how it goes on from its last checkpoint."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from moie.errors import FileError, require
from moie.policy.mixture import Mixture
from moie.runs.config import RunConfig, flat, to_json, with_schedule
from moie.runs.disk import checkpoint, metrics
from moie.runs.disk.checkpoint import Checkpoint
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import Metrics
from moie.runs.machinery import Machinery
from moie.runs.training import Training


@contextlib.contextmanager
def starting(path: Path, create: Callable[[], list[RunDirectory]], *files: str) -> Iterator[None]:
    """A new run, or a folder with several and with files of those names, locked. What ends without
    any iteration leaves nothing behind."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    runs: list[RunDirectory] = []
    try:
        runs = create()
        with RunDirectory(path).lock():
            yield
    except BaseException:
        if runs and not any(run.iterations_saved() for run in runs):
            for run in runs:
                run.remove()
            for name in files:
                (path / name).unlink(missing_ok=True)
            RunDirectory(path).remove()
            if path not in missing:
                path.mkdir(exist_ok=True)
        for folder in missing:
            with contextlib.suppress(OSError):  # not empty, or gone already
                folder.rmdir()
        raise


def train(path: Path, config: RunConfig, machinery: Machinery) -> RunDirectory:
    """Start a run and learn to its end. Nothing is written before the input is checked."""
    RunDirectory.check_free(path)
    require(not config.environments, "environments", config.environments, "0: it is for swarms")
    config = with_schedule(config)
    run = RunDirectory(path)
    training = Training(run, config, machinery, is_new=True)
    with starting(path, lambda: [RunDirectory.create(path, config)]):
        training.go()
    return run


def resume(path: Path, machinery: Machinery, iterations: int | None = None) -> RunDirectory:
    """Go on with a run, to its end or to another number of iterations."""
    run = RunDirectory.open(path)
    with run.lock():
        config = before = run.read_config()
        if config.environments:
            raise FileError(
                f"{path} is one of the runs of a swarm, which continue together; swarm.json, which "
                "names them, is not in the folder above: bring it back from a copy"
            )
        last = last_checkpoint(run, machinery.progress.note)
        if iterations is not None:
            config = replace(config, iterations=iterations)
        if last is not None:
            check_config(run, config, last)
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
        note_versions(run, path, machinery.progress.note)
        training.go()
    return run


def note_versions(run: RunDirectory, path: Path, note: Callable[[str], None]) -> None:
    """Tell `note` where packages have other versions now; `path`: what the user resumes."""
    if changed := run.changed_versions():
        note(
            f"other versions than {path} was started with, results may differ in their last "
            f"digits: {', '.join(changed)}"
        )


def last_checkpoint(run: RunDirectory, note: Callable[[str], None]) -> Checkpoint | None:
    """The checkpoint to go on from; None where the run has no iteration yet. `note` is told about
    damage that does not matter. FileError where going on would lose or mix up something."""
    last, wrong = checkpoint.load_latest(run.checkpoints)
    check_files(run, last, note)
    for line in wrong:
        note(f"{line}; going back to the checkpoint before")
    return last


def check_files(run: RunDirectory, last: Checkpoint | None, note: Callable[[str], None]) -> None:
    """FileError where going on from a checkpoint, or from the beginning where there is none, would
    lose or mix up something. `note` is told about damage that does not matter."""
    recorded = metrics.read(run.metrics_file)
    if last is None:
        _check_untouched(run, recorded)
        return
    _check_steps(run, last, recorded)
    for problem in recorded.problems:
        note(f"{run.metrics_file}: {problem}; it stays as it is")


def _check_untouched(run: RunDirectory, recorded: Metrics) -> None:
    """FileError where a run without a checkpoint, which starts again, has something to lose. The
    row of the first iteration may be written just before the first checkpoint."""
    has_rows = any(row["iteration"] > 0 for row in recorded.rows) or recorded.damaged
    there = [run.policy_file.name] if run.policy_file.exists() else []
    there += [run.metrics_file.name] if has_rows else []
    if there:
        raise FileError(
            f"{run.path} has {' and '.join(there)}, but no checkpoint to go on from, and starting "
            f"again would overwrite what was learned; bring {run.checkpoints} back from a copy, or "
            "train another run elsewhere ('moie show', 'evaluate' and 'explain' work as before)"
        )


def _check_steps(run: RunDirectory, last: Checkpoint, recorded: Metrics) -> None:
    """FileError unless the last row before the checkpoint is of the same moment."""
    done, steps = last.counters.iteration, last.counters.steps
    for row in recorded.rows:
        if row["iteration"] == done - 1 and row["steps"] != steps:
            raise FileError(
                f"{run.metrics_file} has {row['steps']} steps after iteration {done - 1}, the "
                f"checkpoint {done:06d} has {steps}: one of them was changed or is another run's"
            )


def check_config(run: RunDirectory, config: RunConfig, last: Checkpoint) -> None:
    """FileError unless the configuration is that of the start, but for the number of iterations;
    InputError where more of them are done."""
    before, now = _started_with(last), flat(to_json(config))
    for name, value in before.items():
        if name != "iterations" and now[name] != value:
            raise FileError(
                f"{run.config_file} has {name} = {now[name]!r}, the run was started with {value!r}:"
                " put that back, or start another run with the new value"
            )
    done = last.counters.iteration
    expected = f"at least the {done} that {run.path} has done"
    require(done <= config.iterations, "iterations", config.iterations, expected)


def _started_with(last: Checkpoint) -> dict[str, Any]:
    """The settings in a checkpoint; from an older one, those that its policy tells."""
    if last.config is not None:
        return flat(to_json(last.config))
    policy, trained = last.policy, last.policy.trained
    settings: dict[str, Any] = {"task": policy.task}
    known = (name for name in ("algorithm", "seed") if trained.get(name) is not None)
    settings |= {name: trained[name] for name in known}
    if isinstance(policy, Mixture):
        settings |= {"experts": policy.n_experts, "temperature": policy.temperature}
    return settings

"""Where a run stands, before it goes on: its last checkpoint, and whether all that it left belongs
together. Nothing is changed here."""

from collections.abc import Callable
from typing import Any

from moie.errors import FileError
from moie.policy.mixture import Mixture
from moie.runs.config import RunConfig, flat, to_json
from moie.runs.disk import checkpoint, metrics
from moie.runs.disk.checkpoint import Checkpoint
from moie.runs.disk.directory import RunDirectory
from moie.runs.disk.metrics import Metrics


def last_checkpoint(run: RunDirectory, note: Callable[[str], None]) -> Checkpoint | None:
    """What the run goes on from; None where it has no iteration yet. `note` gets what is damaged
    but does not stop it. FileError where going on would lose or mix up something."""
    found, wrong = checkpoint.load_latest(run.checkpoints)
    recorded = metrics.read(run.metrics_file)
    if found is None:
        _check_untouched(run, recorded)
        return None
    for line in wrong:
        note(f"{line}; going back to the checkpoint before")
    _check_steps(run, found, recorded)
    for problem in recorded.problems:
        note(f"{run.metrics_file}: {problem}; it stays as it is")
    return found


def _check_untouched(run: RunDirectory, recorded: Metrics) -> None:
    """Without a checkpoint a run starts again: it must have nothing to lose. The row of the first
    iteration may be written just before the first checkpoint."""
    later = [row["iteration"] for row in recorded.rows if row["iteration"] > 0]
    there = [run.policy_file.name] if run.policy_file.exists() else []
    there += [run.metrics_file.name] if later or recorded.damaged else []
    if there:
        raise FileError(
            f"{run.path} has {' and '.join(there)}, but no checkpoint to go on from, and starting "
            f"again would overwrite what was learned; bring {run.checkpoints} back from a copy, or "
            "train another run elsewhere ('moie show', 'evaluate' and 'explain' work as before)"
        )


def _check_steps(run: RunDirectory, found: Checkpoint, recorded: Metrics) -> None:
    """The last row before the checkpoint is of the same moment."""
    done, steps = found.counters.iteration, found.counters.steps
    for row in recorded.rows:
        if row["iteration"] == done - 1 and row["steps"] != steps:
            raise FileError(
                f"{run.metrics_file} has {row['steps']} steps after iteration {done - 1}, the "
                f"checkpoint {done:06d} has {steps}: one of them was changed or is another run's"
            )


def check_config(run: RunDirectory, config: RunConfig, found: Checkpoint) -> None:
    """A run goes on with the configuration that it was started with, but for the number of
    iterations."""
    before, now = _started_with(config, found), flat(to_json(config))
    for name, value in before.items():
        if name != "iterations" and now[name] != value:
            raise FileError(
                f"{run.config_file} has {name} = {now[name]!r}, the run was started with {value!r}:"
                " put that back, or start another run with the new value"
            )


def _started_with(config: RunConfig, found: Checkpoint) -> dict[str, Any]:
    """As the checkpoint has it; of an older one, what its policy tells."""
    if found.config is not None:
        return flat(to_json(found.config))
    policy = found.policy
    known = {name: policy.trained.get(name) for name in ("algorithm", "seed")}
    settings = {name: value for name, value in known.items() if value is not None}
    if isinstance(policy, Mixture):
        settings |= {"experts": policy.n_experts, "temperature": policy.temperature}
    return {"task": policy.task} | settings

"""Functions that load, show, evaluate, explain, prune and edit a policy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from moie.errors import InputError, require
from moie.stopping import stoppable
from moie.terminal import printable

if TYPE_CHECKING:
    from moie.explanation.facts.schema import Pruning
    from moie.policy.base import Policy
    from moie.policy.mixture import Mixture
    from moie.runs.truth import Measured
    from moie.surgery.edit import Edited
    from moie.surgery.price import Price


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy of a run directory, of a policy file or, as "zoo:hopper", of the zoo. Loading
    executes nothing."""
    from moie.runs.disk.directory import load_policy

    return load_policy(path)


def show(
    policy: str | os.PathLike[str] | Policy,
    *,
    format: Literal["text", "toml"] = "text",
    everything: bool = False,
) -> str:
    """A policy, or that of a run directory, a policy file or the zoo, to be read.

    Args:
        policy: a run directory, a policy file, a name such as "zoo:hopper", or a policy.
        format: "text", a program of IF blocks, or "toml", a file that a person can change and
            `moie.edit` reads back.
        everything: of the program, print the features and experts that hardly count, too.
    """
    require(format in ("text", "toml"), "format", format, "text or toml")
    if format == "toml":
        from moie.surgery.to_toml import mixture, to_toml

        return to_toml(mixture(_policy(policy)))
    from moie.explanation.program import program

    return program(_policy(policy), everything=everything)


def _policy(given: str | os.PathLike[str] | Policy) -> Policy:
    from moie.policy.base import Policy

    return given if isinstance(given, Policy) else load(given)


def find_task(name: str, given: str | None, trust_task: bool, path: str | os.PathLike[str]) -> None:
    """Make the task of a run or a policy file known here. One that a script or a notebook of the
    user's registered is not, in another process: then `given`, "MODULE:ID", says which module
    registers it. A module that only the file names is imported with the user's consent,
    `trust_task`, unless it is one of ours or loaded already."""
    from moie.environments import consent, tasks

    bare = tasks.bare(name)
    if given is not None:
        module, env_id = given.rpartition(":")[0], tasks.bare(given)
        require(bool(module) and env_id == bare, "task", given, f"MODULE:{bare}")
        tasks.resolve(given)
    consent.check_consent(name, trust_task, path)
    if given is None and name == bare:
        try:
            tasks.resolve(name)
        except tasks.Unknown as error:
            named = f"MODULE:{printable(bare)}"
            raise InputError(
                f"{path} was trained on {name!r}, which is not registered here; name the module "
                f"that registers it: --task {named}, in Python task={named!r} (a module that "
                "trains should do so under if __name__ == '__main__' only)"
            ) from error


def evaluate(
    policy: str | os.PathLike[str] | Policy,
    *,
    episodes: int = 20,
    seed: int = 1_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
) -> Measured:
    """Measure a policy on seeded episodes. `print` the result, or use its numbers.

    Args:
        policy: a run directory, a policy file, a name such as "zoo:hopper", or a policy.
        episodes: episodes with sampled actions, and as many with mean actions.
        seed: seed of the episodes.
        task: "MODULE:ID", if a module of yours registers the policy's task.
        trust_task: import the module of a task "module:Id" that the file names. It may run any
            code.
        workers: simulation processes; default: number of cores. Does not change the result.
    """
    from moie.policy.base import Policy
    from moie.runs.config import whole
    from moie.runs.machinery import n_workers
    from moie.runs.truth import evaluate as measure

    episodes, seed = whole("episodes", episodes), whole("seed", seed, 0)
    count = n_workers(workers)
    where = "the policy" if isinstance(policy, Policy) else policy
    policy = _policy(policy)
    find_task(policy.task, task, trust_task, where)
    with stoppable() as check:
        return measure(policy, episodes, seed, count, check=check)


def _settings(
    episodes: int, most: int, seed: int, loss: float, workers: int | None, **options: Any
) -> Any:
    from moie.explanation.write import Settings
    from moie.runs.config import whole
    from moie.runs.machinery import n_workers

    episodes, seed = whole("episodes", episodes, 2), whole("seed", seed, 0)
    require(0 <= loss < 1, "loss", loss, "zero or more, below 1")
    most = whole("most_episodes", most)
    require(most >= episodes, "most_episodes", most, f"at least {episodes}, as many as episodes")
    return Settings(episodes, most, seed, loss, n_workers(workers), **options)


def explain(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    episodes: int = 10,
    most_episodes: int = 2000,
    seed: int = 2_000_000,
    loss: float = 0.05,
    actions: Literal["mean", "sampled"] = "mean",
    pruning: bool = True,
    pictures: bool = True,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    quiet: bool = False,
) -> Path:
    """Write a report about a policy and return its path.

    Args:
        path: a run directory, a policy file or a name such as "zoo:hopper".
        out: the folder to write; default: RUN/explanation, for a policy of the zoo
            NAME-explanation in the current folder. An older explanation is replaced.
        episodes: episodes with sampled actions, and as many with mean actions.
        seed: seed of the episodes.
        loss: fraction of the return that pruning may cost.
        most_episodes: pruning gives up on a comparison after so many episodes of each kind.
        actions: which of the episodes the report looks into, those with "mean" or with "sampled"
            actions.
        pruning: look for the smallest policy that is good enough.
        pictures: draw the prototypes and a video.
        task, trust_task, workers: see `moie.evaluate`.
        quiet: show no progress.
    """
    from moie.explanation.write import explain_run
    from moie.present.stages import Stages
    from moie.sheet.sheet import datasheet

    require(actions in ("mean", "sampled"), "actions", actions, "mean or sampled")
    options = {"actions": actions, "with_pruning": pruning, "with_pictures": pictures}
    settings = _settings(episodes, most_episodes, seed, loss, workers, **options)
    folder = None if out is None else Path(out)

    def proved(policy: Policy) -> str:
        try:
            return datasheet(policy, 0, seed, workers=1).repeatable()
        except InputError as error:  # it has too many features
            return f"{error}."

    find_task(load(path).task, task, trust_task, path)
    with stoppable() as check:
        return explain_run(*(Path(path), folder, settings, Stages(quiet), check), sheet=proved)


def prune(
    path: str | os.PathLike[str],
    *,
    loss: float = 0.05,
    out: str | os.PathLike[str] | None = None,
    episodes: int = 10,
    most_episodes: int = 2000,
    seed: int = 2_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
    quiet: bool = False,
) -> tuple[Pruning, Path]:
    """Remove the experts that a policy does not need. Returns what was measured, and the path of
    the smaller policy's file.

    Args:
        path: a run directory, a policy file or a name such as "zoo:hopper".
        loss: fraction of the return that may be lost; less than 0.01 counts as 0.01.
        out: the policy file to write; default: RUN/pruned.safetensors, for a policy of the zoo
            NAME-pruned.safetensors in the current folder.
        episodes: episodes of each kind that show which states the policy visits, and as many
            others that each comparison begins with.
        most_episodes: most episodes of each kind in a comparison; without a verdict by then it is
            undecided, and the search ends.
        seed: seed of the episodes.
        task, trust_task, workers: see `moie.evaluate`.
        quiet: show no progress.
    """
    from moie.explanation.write import prune_run
    from moie.present.stages import Stages

    settings = _settings(episodes, most_episodes, seed, loss, workers)
    file = None if out is None else Path(out)
    find_task(load(path).task, task, trust_task, path)
    with stoppable() as check:
        return prune_run(Path(path), file, settings, Stages(quiet), check)


def edit(
    path: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    episodes: int = 20,
    seed: int = 1_000_000,
    task: str | None = None,
    trust_task: bool = False,
    workers: int | None = None,
) -> Edited:
    """Change a policy by hand, and measure what that costs. `print` the result, or use its parts.

    Args:
        path: a run directory, a policy file or a name such as "zoo:hopper".
        file: the policy as `moie.show(path, format="toml")` gives it, with your changes.
        out: the policy file to write; default: RUN/edited.safetensors, for a policy of the zoo
            NAME-edited.safetensors in the current folder.
        episodes: episodes of each kind before and after, on the same seeds; 0 measures nothing.
        seed: seed of the episodes.
        task, trust_task, workers: see `moie.evaluate`.
    """
    from moie.runs.config import whole
    from moie.runs.disk.directory import policy_path, target_beside
    from moie.runs.machinery import n_workers
    from moie.surgery.edit import edit_run
    from moie.surgery.price import measure

    episodes, seed = whole("episodes", episodes, 0), whole("seed", seed, 0)
    count = n_workers(workers)

    def price_of(before: Mixture, after: Mixture) -> Price:
        find_task(before.task, task, trust_task, path)
        with stoppable() as check:
            return measure(before, after, episodes, seed, count, check)

    target = target_beside(Path(path), "edited.safetensors", None if out is None else Path(out))
    return edit_run(policy_path(path), Path(file), target, price_of if episodes else None)

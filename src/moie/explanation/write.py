"""`moie explain` and `moie prune`: episodes, facts, pruning, scenes, figures, report."""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from moie.errors import InputError
from moie.explanation import figures
from moie.explanation.facts.behaviour import behaviour, raw_facts
from moie.explanation.facts.schema import Facts, Kind, Pruning, Record
from moie.explanation.pictures import Pictures, draw
from moie.explanation.program import program
from moie.explanation.prune import prune, with_use
from moie.explanation.report import page
from moie.files import (
    as_json,
    check_replaceable,
    check_writable,
    finite,
    make_place,
    replace_folder,
)
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.present.stages import Stages
from moie.present.style import draw_all, saved
from moie.rollout.episode import Episode
from moie.runs.config import to_json
from moie.runs.deployment import visited_by
from moie.runs.disk.directory import (
    RunDirectory,
    load_policy,
    policy_path,
    target_beside,
    versions,
)
from moie.runs.disk.metrics import learned_steps, read
from moie.runs.evaluation import Evaluator
from moie.runs.truth import measure_raw, measure_truth
from moie.terminal import printable

LEARNING = ("steps", "return_sampled", "return_mean", "entropy", "entropy_floor")
"""Fields of metrics.jsonl that the facts keep."""


@dataclass(frozen=True)
class Settings:
    """The user's choices for an explanation."""

    episodes: int = 10
    most_episodes: int = 2000
    seed: int = 2_000_000
    loss: float = 0.05
    workers: int = 1
    actions: Kind = "mean"  # kind of actions of the episodes that are looked into
    with_pruning: bool = True
    with_pictures: bool = True


def _experts_of(policy: Policy) -> Mixture:
    """The policy; InputError if it has no experts."""
    if not isinstance(policy, Mixture):
        learner = printable(policy.trained.get("algorithm", "another learner"))
        raise InputError(
            f"this policy of {learner} has no experts, "
            f"but {policy.n_parameters} parameters that act together: there is nothing to explain"
        )
    return policy


def _pruned(
    policy: Mixture,
    episodes: dict[str, list[Episode]],
    evaluator: Evaluator,
    settings: Settings,
    progress: Stages,
) -> tuple[Pruning, Mixture]:
    """The pruning curve, and the smaller policy. Changes are those over all states of the episodes,
    with both kinds of actions; comparisons have other seeds."""
    visited = {
        kind: np.concatenate([e.observations[:-1] for e in some]) for kind, some in episodes.items()
    }
    counts = (settings.episodes, settings.most_episodes)

    def measure(smaller: Mixture, kind: Kind, first: int, count: int) -> list[float]:
        found = evaluator.episodes(smaller, count, series=1, kinds=[kind], first=first)[kind]
        return [float(e.rewards.sum()) for e in found]

    text = f"pruning, with at most {counts[1]} episodes of each kind for a policy"
    with progress.stage(text, policy.n_experts) as done:
        states = np.concatenate(list(visited.values()))
        pruning, smaller = prune(policy, states, settings.loss, counts, measure, done)
    return pruning, with_use(smaller, visited[settings.actions])


def prune_run(
    path: Path, out: Path | None, settings: Settings, progress: Stages, check: Callable[[], None]
) -> tuple[Pruning, Path]:
    """Prune a run's policy; the smaller one is a policy file beside it."""
    policy = _experts_of(load_policy(path))
    out = target_beside(path, "pruned.safetensors", out)
    _check_pruned(out)
    check_writable(out)
    with Evaluator(policy.task, settings.seed, settings.workers, check=check) as evaluator:
        episodes = _episodes(policy, evaluator, settings, progress)
        pruning, smaller = _pruned(policy, episodes, evaluator, settings, progress)
    make_place(out)
    policy_file.save_file(out, smaller)
    return pruning, out


def explain_run(
    path: Path,
    out: Path | None,
    settings: Settings,
    progress: Stages,
    check: Callable[[], None],
    sheet: Callable[[Mixture], str],
) -> Path:
    """Write the folder with report, facts, figures and scenes; the report's path. `sheet`: the data
    sheet of a policy that holds visited states, as text."""
    file = policy_path(path)
    policy_bytes = policy_file.read(file)
    policy = _experts_of(policy_file.from_bytes(policy_bytes, file))
    out = target_beside(path, "explanation", out)
    check_replaceable(out, ("facts.json", "report.html"), "an explanation")
    check_writable(out)
    record = _record(path, policy, progress)
    smaller = None
    with Evaluator(policy.task, settings.seed, settings.workers, check=check) as evaluator:
        episodes = _episodes(policy, evaluator, settings, progress)
        with progress.stage("leading parts", 3) as done:
            truth = measure_truth(policy, episodes["mean"], evaluator, done)
        if policy.visited is None:  # of an earlier version, or not measured yet
            policy = replace(policy, visited=visited_by(policy, episodes["mean"]))
        shown = episodes[settings.actions]
        known = behaviour(policy, shown, settings.actions, truth)
        raw = measure_raw(policy, episodes, evaluator)
        if raw is not None:
            known["raw"] = raw_facts(raw)
        if settings.with_pruning and policy.n_experts > 1:
            known["pruning"], smaller = _pruned(policy, episodes, evaluator, settings, progress)
    with progress.stage("data sheet", 1) as done:
        proved = sheet(policy)
        done("")
    pictures = Pictures("none were asked for")
    if settings.with_pictures:
        pictures = draw(policy, known, shown, progress, check)
        if pictures.problem is not None:
            progress.note(f"no pictures: {pictures.problem}")
    for expert in known["experts"]:
        expert["replay"] = pictures.replays.get(expert["expert"])
    facts: Facts = {
        **known,
        **record,
        "digest": hashlib.sha256(policy_bytes).hexdigest(),
        "scenes": pictures.facts,
    }
    content, drawings = draw_all(figures.FIGURES, facts, progress, check)
    forms = saved("rollout", partial(figures.rollout, facts, pictures.stills))
    content |= {f"figures/rollout.{ending}": form for ending, form in forms.items()}
    programs = (program(policy, 100), None if smaller is None else program(smaller, 100))
    if smaller is not None:
        content["pruned.safetensors"] = policy_file.to_bytes(smaller)
    facts = finite(facts)
    content["facts.json"] = as_json(facts)
    content["report.html"] = page(facts, drawings, pictures, programs, proved)
    replace_folder(out, content | pictures.files)
    return out / "report.html"


def _episodes(
    policy: Mixture, evaluator: Evaluator, settings: Settings, progress: Stages
) -> dict[str, list[Episode]]:
    """Episodes of the whole policy, by kind of actions."""
    with progress.stage(f"{2 * settings.episodes} episodes", 1) as done:
        episodes = evaluator.episodes(policy, settings.episodes)
        done("")
    return episodes


def _check_pruned(out: Path) -> None:
    """Only a pruned policy may be replaced."""
    if not out.exists():
        return
    with contextlib.suppress(InputError):
        policy = policy_file.load_file(out)
        is_by_hand = isinstance(policy, Mixture) and policy.edits
        if "pruned" in policy.trained and not is_by_hand:
            return
    raise InputError(f"{out} exists and is not a pruned policy; choose another --out")


def _record(path: Path, policy: Mixture, progress: Stages) -> Record:
    """Facts of the run directory besides its policy; the run may have gone on since."""
    if not path.is_dir():
        return {"versions": versions()}
    run = RunDirectory.open(path)
    config, metrics = run.read_config(), read(run.metrics_file)
    for problem in metrics.problems:
        progress.note(f"{run.metrics_file}: {problem}")
    rows = [row for row in metrics.rows if row["steps"] <= policy.trained.get("steps", 0)]
    return {
        "versions": versions(),
        "learning": [
            {name: row.get(name) for name in LEARNING} | {"learned": steps}
            for row, steps in zip(rows, learned_steps(rows, config.batch_steps), strict=True)
        ],
        "run": {"settings": to_json(config), "started_with": run.started_with()},
    }

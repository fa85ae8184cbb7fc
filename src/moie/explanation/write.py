"""`moie explain` and `moie prune`: episodes, facts, pruning, scenes, figures, report."""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moie.errors import InputError
from moie.explanation import figures, images, pictures
from moie.explanation.facts import gather
from moie.explanation.program import program
from moie.explanation.prune import Returns, prune
from moie.explanation.report import page
from moie.explanation.visited import Visited
from moie.files import as_json, check_replaceable, check_writable, finite, replace_folder
from moie.policy import file as policy_file
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.present.stages import Stages
from moie.present.style import draw_all
from moie.rollout.episode import Episode
from moie.runs.config import to_json
from moie.runs.disk.directory import RunDirectory, load_policy, policy_path, versions
from moie.runs.disk.metrics import learned_steps, read
from moie.runs.evaluation import Evaluator
from moie.runs.truth import measure_truth
from moie.terminal import printable


@dataclass(frozen=True)
class Settings:
    """Of an explanation."""

    episodes: int = 10
    seed: int = 2_000_000
    loss: float = 0.05
    workers: int = 1
    actions: str = "mean"
    """Of the episodes that are looked into: mean or sampled."""
    with_pruning: bool = True
    with_pictures: bool = True


def experts_of(policy: Policy) -> Mixture:
    """InputError for a policy that has none."""
    if not isinstance(policy, Mixture):
        learner = printable(policy.trained.get("algorithm", "another learner"))
        raise InputError(
            f"this policy of {learner} has no experts, "
            f"but {policy.n_parameters} parameters that act together: there is nothing to explain"
        )
    return policy


def pruned(
    policy: Mixture,
    episodes: dict[str, list[Episode]],
    evaluator: Evaluator,
    settings: Settings,
    progress: Stages,
) -> tuple[dict[str, Any], Mixture]:
    """The pruning curve over the episodes' seeds, and the smaller policy."""
    states = Visited.of(policy, episodes[settings.actions]).some()

    def measure(smaller: Mixture, series: int, count: int) -> Returns:
        is_known = smaller is policy and series == 0
        found = episodes if is_known else evaluator.episodes(smaller, count, series)
        return {kind: [float(e.rewards.sum()) for e in some] for kind, some in found.items()}

    with progress.stage("pruning", policy.n_experts - 1) as done:
        return prune(policy, states, settings.loss, settings.episodes, measure, done)


def prune_run(
    path: Path, out: Path | None, settings: Settings, progress: Stages, check: Callable[[], None]
) -> tuple[dict[str, Any], Path]:
    """Prune a run's policy; the smaller one is a policy file beside it."""
    policy = experts_of(load_policy(path))
    out = _target(path, "pruned.safetensors", out)
    _check_pruned(out)
    check_writable(out)
    with Evaluator(policy.task, settings.seed, settings.workers, check=check) as evaluator:
        episodes = _episodes(policy, evaluator, settings, progress)
        found, smaller = pruned(policy, episodes, evaluator, settings, progress)
    policy_file.save_file(out, smaller)
    return found, out


def explain_run(
    path: Path, out: Path | None, settings: Settings, progress: Stages, check: Callable[[], None]
) -> Path:
    """Write the folder with report, facts, figures and scenes; the report's path."""
    file = policy_path(path)
    content_of_file = policy_file.read(file)
    policy = experts_of(policy_file.from_bytes(content_of_file, file))
    out = _target(path, "explanation", out)
    check_replaceable(out, ("facts.json", "report.html"), "an explanation")
    check_writable(out)
    of_run = _of_run(path, policy, progress)
    with Evaluator(policy.task, settings.seed, settings.workers, check=check) as evaluator:
        episodes = _episodes(policy, evaluator, settings, progress)
        with progress.stage("leading parts", 3) as done:
            truth = measure_truth(policy, episodes["mean"], evaluator, done)
        facts = gather(policy, episodes[settings.actions], settings.actions, truth)
        smaller = None
        if settings.with_pruning and policy.n_experts > 1:
            facts["pruning"], smaller = pruned(policy, episodes, evaluator, settings, progress)
    facts |= of_run
    facts["digest"] = hashlib.sha256(content_of_file).hexdigest()
    content: dict[str, bytes] = {}
    strips: dict[int, images.Strip] = {}
    video, fps = None, 30.0
    if settings.with_pictures:
        shown = episodes[settings.actions]
        strips, video, fps = pictures.draw(policy, facts, shown, content, progress, check)
        if facts["scenes"]["problem"] is not None:
            progress.note(f"no pictures: {facts['scenes']['problem']}")
    else:
        facts["scenes"] = pictures.none_for("none were asked for")
    drawn = draw_all(figures.FIGURES, facts, content, progress, check)
    programs = (program(policy, 100), None if smaller is None else program(smaller, 100))
    if smaller is not None:
        content["pruned.safetensors"] = policy_file.to_bytes(smaller)
    facts = finite(facts)
    content["facts.json"] = as_json(facts)
    content["report.html"] = page(facts, drawn, strips, video, programs, fps)
    replace_folder(out, content)
    return out / "report.html"


def _episodes(
    policy: Mixture, evaluator: Evaluator, settings: Settings, progress: Stages
) -> dict[str, list[Episode]]:
    """Of the whole policy, by kind of actions."""
    with progress.stage(f"{2 * settings.episodes} episodes", 1) as done:
        episodes = evaluator.episodes(policy, settings.episodes)
        done("")
    return episodes


def _target(path: Path, name: str, out: Path | None) -> Path:
    """What the user wants, or that name: in a run directory, or beside a policy file."""
    if out is None:
        out = path / name if path.is_dir() else path.with_name(f"{path.stem}-{name}")
    return out.resolve() if out.is_symlink() else out


def _check_pruned(out: Path) -> None:
    """Only a pruned policy may be replaced."""
    if not out.exists():
        return
    with contextlib.suppress(InputError):
        if out.is_file() and "pruned" in policy_file.load_file(out).trained:
            return
    raise InputError(f"{out} exists and is not a pruned policy; choose another --out")


def _of_run(path: Path, policy: Mixture, progress: Stages) -> dict[str, Any]:
    """What the run directory knows besides its policy; it may have gone on since."""
    found: dict[str, Any] = {"versions": versions()}
    if path.is_dir():
        run = RunDirectory.open(path)
        names = ("steps", "return_sampled", "return_mean", "entropy", "entropy_floor")
        trained = policy.trained.get("steps", 0)
        config, metrics = run.read_config(), read(run.metrics_file)
        for problem in metrics.problems:
            progress.note(f"{run.metrics_file}: {problem}")
        rows = [row for row in metrics.rows if row["steps"] <= trained]
        found["learning"] = [
            {name: row.get(name) for name in names} | {"learned": steps}
            for row, steps in zip(rows, learned_steps(rows, config.batch_steps), strict=True)
        ]
        found["run"] = {"settings": to_json(config), "started_with": run.started_with()}
    return found

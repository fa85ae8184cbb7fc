"""Which policies the zoo has: measure the candidates of each task, choose by rule, print the table.

    python benchmarks/zoo.py                    # the table, from what was measured before
    python benchmarks/zoo.py --measure          # measure tasks whose candidates have changed
    python benchmarks/zoo.py --write            # put the chosen ones into the package

The rule, in docs/zoo.md: of the policy files in docs/results `candidates`, then `finalists`, then
`chosen`.
"""

import argparse
import hashlib
import math
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import moie
from moie.environments.catalogue import TASKS
from moie.files import as_json, finite, parse_json, write_bytes
from moie.policy import file as policy_file
from moie.policy import truth
from moie.policy.base import Policy
from moie.policy.mixture import Mixture
from moie.rollout.episode import Episode
from moie.runs.config import EvaluationConfig
from moie.runs.deployment import with_visited
from moie.runs.disk.directory import versions
from moie.runs.evaluation import Evaluation, Evaluator, summary
from moie.runs.truth import Truth, fidelity
from moie.zoo import catalogue

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
RECORDS = RESULTS / "zoo" / "candidates.json"
EPISODES, SEED, MOST_EXPERTS = 100, 1_000_000, 10
ENOUGH = 0.9
"""Share of the best candidate's gain over the default action that a finalist has."""
READINGS = ("literal", "pairs", "guide", "blend", "undecided", "unknown")
"""The most literal first."""
STANDS = 3.0
"""Metres below which a walker's episode is no walk."""
SHORT = {task.id: task.short for task in TASKS}
LISTED = [*SHORT, "Hopper-v5", "HalfCheetah-v5"]
"""Tasks in the order of the catalogue."""

Record = dict[str, Any]


def candidates() -> dict[str, list[Path]]:
    """Policy files by task of the zoo: those of a mixture that is short enough, and whose actions
    can be carried out as they are written."""
    found: dict[str, list[Path]] = {task: [] for task in LISTED}
    for file in sorted(RESULTS.glob("*policies/*.safetensors")):
        policy = moie.load(file)
        if not isinstance(policy, Mixture) or policy.n_experts > MOST_EXPERTS:
            continue
        if policy.task in found and truth.in_range(policy) == 1.0:
            found[policy.task].append(file)
    return found


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def record(file: Path, policy: Mixture, episodes: list[Episode]) -> Record:
    """What is known of a candidate before anything is asked of its leading parts."""
    whole = summary("mean", episodes)
    states = np.concatenate([one.observations[:-1] for one in episodes])
    return {
        "file": str(file.relative_to(RESULTS)),
        "sha256": sha256(file.read_bytes()),
        "task": policy.task,
        "experts": policy.n_experts,
        **{name: policy.trained[name] for name in ("algorithm", "iterations", "steps", "seed")},
        "return": whole.mean,
        "standard_error": whole.standard_error,
        "first_returns": list(whole.returns[: catalogue.HELD]),
        "distance": None if whole.distances is None else float(np.mean(whole.distances)),
        "in_range": truth.in_range(policy),
        "coverage": truth.coverage(policy, states),
        "attention": truth.attention(policy, states),
    }


def finalists(records: list[Record], default: float) -> list[Record]:
    """Step 1: whose gain over the default action is at least nine tenths of the best one's."""
    best = max(one["return"] for one in records) - default
    return [one for one in records if one["return"] - default >= ENOUGH * best]


def chosen(records: list[Record]) -> Record:
    """Step 2: of the finalists the one that may be read most literally; of several, the one whose
    leading part alone earns the most; of those that earn the same, the one that asks for the least
    attention."""

    def order(one: Record) -> tuple[float, ...]:
        return READINGS.index(one["reading"]), -one["alone"], one["attention"]

    return min((one for one in records if "reading" in one), key=order)


def judged(task: str, files: list[Path], workers: int) -> list[Record]:
    """Measure all candidates of a task, and how literally each finalist may be read."""
    policies = {str(file.relative_to(RESULTS)): moie.load(file) for file in files}
    with Evaluator(task, SEED, workers) as evaluator:

        def run(policy: Mixture) -> list[Episode]:
            return evaluator.episodes(policy, EPISODES, kinds=["mean"])["mean"]

        # Every default action is the middle of the action range: one of them stands for all.
        default = summary("mean", run(truth.default_only(next(iter(policies.values())))))
        episodes = {name: run(policy) for name, policy in policies.items()}
        records = [
            record(file, policies[name], episodes[name])
            for name, file in zip(policies, files, strict=True)
        ]
        for one in finalists(records, default.mean):
            name = one["file"]
            led = {k: summary("mean", run(truth.led(policies[name], k))) for k in (1, 2)}
            one |= reading(policies[name], episodes[name], led, default)
            print(f"{name}: {one['return']:.1f}, alone {one['alone']:.1f}, {one['reading']}")
    return records


def reading(
    policy: Mixture, episodes: list[Episode], led: dict[int, Evaluation], default: Evaluation
) -> Record:
    """What the leading parts earn, and how literally the program may be taken, as `moie evaluate`
    judges it."""
    judged = Truth(
        in_range=truth.in_range(policy),
        coverage=math.nan,  # these two have no part in the judgement
        attention=math.nan,
        largest_action=truth.largest_action(policy),
        **fidelity(policy, episodes),
        whole=summary("mean", episodes),
        alone=led[1],
        pair=led[2],
        default=default,
    )
    parts = {name: getattr(judged, name).mean for name in ("alone", "pair", "default")}
    shares = {name: getattr(judged, name).mean for name in ("near_alone", "near_pair")}
    return {**parts, **shares, "wrong_side": judged.wrong_side.mean, "reading": judged.reading}


def command(one: Record) -> str:
    """How it was trained."""
    options = f"--algorithm {one['algorithm']} --experts {one['experts']}"
    if one["task"] in SHORT:
        number = f"--iterations {one['iterations']} --seed {one['seed']}"
        return f"moie train {SHORT[one['task']]} {options} {number}"
    return f"moie swarm {one['task']} {options} --seeds 25 --steps 1e6 --environments 64"


def remark(one: Record) -> str:
    if one["distance"] is None or one["distance"] >= STANDS:
        return ""
    return f"It stands, or falls, instead of walking: it covers {one['distance']:.1f} m an episode."


def published(one: Record) -> Mixture:
    """A candidate, without the states that it visited: files of earlier versions have none."""
    policy = moie.load(RESULTS / one["file"])
    assert isinstance(policy, Mixture)
    return replace(policy, visited=None)


def visiting(policy: Mixture) -> Policy:
    """The policy with the states of the episodes that end its training."""
    seed, series = policy.trained["seed"], policy.trained["iterations"]
    count = EvaluationConfig().evaluation_episodes
    with Evaluator(policy.task, seed, workers=1) as evaluator:
        return with_visited(policy, evaluator.episodes(policy, count, series, ["mean"])["mean"])


def write(records: dict[str, list[Record]]) -> None:
    """The chosen policies and the catalogue, into the package."""
    entries = []
    catalogue.POLICIES.mkdir(exist_ok=True)
    for old in catalogue.POLICIES.iterdir():
        old.unlink()
    for task in LISTED:
        one = chosen(records[task])
        name = SHORT.get(task, task.lower())
        content = policy_file.to_bytes(visiting(published(one)))
        write_bytes(catalogue.file_of(name), content)
        kept = {key: value for key, value in one.items() if key not in ("file", "sha256")}
        said = {"command": command(one), "remark": remark(one)}
        entries.append({"name": name, **kept, **said, "sha256": sha256(content)})
    with_what = versions() | {"system": platform.system(), "machine": platform.machine()}
    measured = {
        "episodes": EPISODES,
        "episodes_seed": SEED,
        "measured_with": with_what,
        "policies": entries,
    }
    write_bytes(catalogue.FILE, as_json(finite(measured)))


def table(records: dict[str, list[Record]]) -> str:
    """All candidates, as Markdown; the chosen ones in bold."""
    heads = ("candidate", "experts", "steps", "seed", "return", "distance [m]")
    heads += ("in range", "coverage", "attention", "alone", "pair", "reading")
    lines = [heads, tuple("---" for _ in heads)]
    for some in records.values():
        best = chosen(some)
        lines += [_row(one, one is best) for one in some]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(one: Record, is_chosen: bool) -> tuple[str, ...]:
    name = Path(one["file"]).stem
    distance = "-" if one["distance"] is None else f"{one['distance']:.1f}"
    parts = [f"{one[part]:.0f}" if part in one else "-" for part in ("alone", "pair")]
    return (
        f"**{name}**" if is_chosen else name,
        str(one["experts"]),
        f"{one['steps']:,}",
        str(one["seed"]),
        f"{one['return']:.1f} ± {one['standard_error']:.1f}",
        distance,
        f"{one['in_range']:.0%}",
        f"{one['coverage']:.2f}",
        f"{one['attention']:.2f}",
        *parts,
        one.get("reading", "-"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    records = parse_json(RECORDS.read_bytes()) if RECORDS.exists() else {}
    for task, files in candidates().items() if given.measure else ():
        known = [one["sha256"] for one in records.get(task, [])]
        if files and known != [sha256(file.read_bytes()) for file in files]:
            records[task] = judged(task, files, given.workers)
            RECORDS.parent.mkdir(exist_ok=True)
            write_bytes(RECORDS, as_json(finite(records)))
    records = {task: records[task] for task in LISTED if task in records}
    print(table(records))
    if given.write:
        write(records)


if __name__ == "__main__":
    main()

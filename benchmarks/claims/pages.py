"""Tables of pages that are made of the published files: everything else on them is written by hand.

A table is found by its head; its rows are replaced.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from benchmarks.claims.evidence import Evidence, Study
from benchmarks.claims.measure import POLICIES
from benchmarks.claims.statements import WALKS, each, shared

import moie
from moie.comparison.facts.schema import Estimate, Result
from moie.environments.catalogue import TASKS
from moie.policy.mixture import Mixture

ROOT = Path(__file__).parents[2]
HEAD = ("task", "learner", "parameters", "seeds", "return, sampled actions", "return, mean action")
WALKED = (*HEAD, "distance [m]")
WANDERED = (*WALKED, "prototypes off visited states by")
ATTENDED = (*(name for name in WALKED if name != "seeds"), "attention")
HOPPED = ("compressPolicy", "runs", "hop", "distance of each run [m]", "return, sampled actions")
COMMANDS = ("policy", "steps", "command")
SHORT = {task.id: task.short for task in TASKS}

Rows = list[list[str]]


def rounded(one: Estimate | None, digits: int = 0) -> str:
    """Mean and half of its interval."""
    if one is None:
        return "-"
    numbers = [value for value in (one["mean"], one["half"]) if value is not None]
    return " ± ".join(f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}") for value in numbers)


def _cells(one: Result) -> list[str]:
    final = one["final"]
    return [
        one["task"],
        one["learner"],
        str(one["parameters"]),
        str(one["n"]),
        rounded(final["return_sampled"]),
        rounded(final["return_mean"]),
        rounded(final["distance_sampled"], 1),
    ]


def returns(evidence: Evidence, study: str, n_columns: int) -> Rows:
    """The final returns of a study."""
    return [_cells(one)[:n_columns] for one in evidence[study].facts["results"]]


def _off(study: Study, one: Result) -> str:
    """Mean distance of the prototypes to the nearest state of the last batch, in the learner's
    features; mean over the evaluations that make the final return, and over runs."""
    distances = study.late(study.cell_with(one), "prototype_distance")
    return "-" if np.isnan(distances).any() else f"{distances.mean():.2f}"


def wandered(evidence: Evidence, study: str) -> Rows:
    """The final returns of a study, and how far prototypes are from visited states."""
    known = evidence[study]
    return [[*_cells(one), _off(known, one)] for one in known.facts["results"]]


def attended(evidence: Evidence, study: str) -> Rows:
    """The final returns of a study whose learners all have the same number of seeds, and how many
    lines of a program one has to look at."""
    rows = []
    for one in evidence[study].facts["results"]:
        task, learner, parameters, _, *numbers = _cells(one)
        known = one["final"]["attention"]
        attention = "-" if known is None else f"{known['mean']:.1f}"
        rows.append([task, learner, parameters, *numbers, attention])
    return rows


def hopped(evidence: Evidence) -> Rows:
    """How many runs of Hopper with raw actions hop, with compressPolicy and without."""
    rows = []
    for one in evidence["hopper-raw"].facts["results"]:
        cell = evidence["hopper-raw"].cell_with(one)
        assert cell.distances is not None
        distances = np.sort(cell.distances)[::-1]
        n_hop = int((distances >= WALKS).sum())
        setting = one["learner"].rsplit(" ", 1)[1]
        returned = rounded(one["final"]["return_sampled"])
        hop = shared(n_hop, len(distances))
        rows.append([setting, str(len(distances)), hop, each(distances, 1), returned])
    return rows


def command(file: Path) -> list[str]:
    """A policy file, its steps, and the command that makes it."""
    policy = moie.load(file)
    trained = policy.trained
    size = f" --experts {policy.n_experts}" if isinstance(policy, Mixture) else ""
    # Of the paper's tasks, all of which have raw actions by default.
    actions = "" if trained.get("actions") == "raw" else " --actions clipped"
    words = (
        f"`moie train {SHORT[policy.task]} --algorithm {trained['algorithm']}{size} "
        f"--iterations {trained['iterations']} --seed {trained['seed']}{actions}`"
    )
    return [file.stem, f"{trained['steps']:,}", words]


def with_rows(text: str, head: Sequence[str], rows: Rows) -> str:
    """The page with these rows below that head; ValueError where it has none."""
    lines = text.splitlines()
    first = lines.index(f"| {' | '.join(head)} |") + 2
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    made = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([*lines[:first], *made, *lines[last:]]) + "\n"


def _root(text: str, evidence: Evidence) -> str:
    return with_rows(text, ATTENDED, attended(evidence, "swarm"))


def _results(text: str, evidence: Evidence) -> str:
    text = with_rows(text, HEAD, returns(evidence, "paper-small", len(HEAD)))
    text = with_rows(text, WALKED, returns(evidence, "paper-locomotion", len(WALKED)))
    text = with_rows(text, WANDERED, wandered(evidence, "paper-diffproto"))
    text = with_rows(text, HOPPED, hopped(evidence))
    return _root(text, evidence)


def _method(text: str, evidence: Evidence) -> str:
    return with_rows(text, HOPPED, hopped(evidence))


def _policies(text: str, evidence: Evidence) -> str:
    return with_rows(text, COMMANDS, [command(file) for file in files()])


def files() -> list[Path]:
    """The published policies of the paper's learners."""
    return sorted(POLICIES.glob("*.safetensors"))


PAGES: dict[Path, Callable[[str, Evidence], str]] = {
    ROOT / "README.md": _root,
    ROOT / "docs" / "results" / "README.md": _results,
    POLICIES / "README.md": _policies,
    ROOT / "docs" / "method.md": _method,
}

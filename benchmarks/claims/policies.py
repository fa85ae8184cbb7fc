"""What a claim can say of published policies of the paper's learner."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.claims import measure
from benchmarks.claims.statements import WALKS, number
from benchmarks.claims.verdicts import FEWEST, Part, Why, seen

from moie.environments.catalogue import charges

LEADS = 0.05
"""Share of the visited states in which an expert with high activation has the largest
membership."""
NONE_WALKS = "no published policy that learned as the paper's did walks"


def few_lead(tasks: Sequence[str]) -> Part:
    """Whether in most policies fewer than half of the experts have high activation."""
    counts = {
        file.stem: (int((policy.lead >= LEADS).sum()), policy.n_experts)
        for file, policy in measure.mixtures().items()
        if policy.task in tasks and is_papers(policy.task, policy.trained)
    }
    words = ", ".join(f"{name} {n} of {k}" for name, (n, k) in counts.items())
    text = f"experts with high activation: {words or 'no policy was published'}"
    if len(counts) < FEWEST:
        why: Why = "too few runs" if counts else "not run"
        return Part(text, "undecided", why, (len(counts),))
    n_few = sum(n < k / 2 for n, k in counts.values())
    return Part(
        text, "confirmed" if n_few > len(counts) / 2 else "contradicted", "", (len(counts),)
    )


def is_papers(task: str, trained: Mapping[str, Any]) -> bool:
    """Whether a policy learned with actions as the paper's did: not clipped where the simulator
    charges for those outside their range."""
    return trained.get("actions") == "raw" or not charges(task)


def _walking(task: str) -> dict[str, dict[str, Any]]:
    """Records of the measured policies of a task that walk and learned as the paper's did."""
    return {
        name: record
        for name, record in measure.records().items()
        if record["task"] == task and record["distance"] >= WALKS and is_papers(task, record)
    }


def needs(task: str, most: int) -> Part:
    """Whether `prune` leaves at most so many experts of some policy that walks."""
    found = _walking(task)
    left = {name: record["pruning"]["n_experts"] for name, record in found.items()}
    n_true = sum(n <= most for n in left.values())
    verdict, why = seen(n_true, len(left) - n_true, "some")
    words = ", ".join(
        f"{name} ({number(found[name]['distance'], 1)} m) needs {n}" for name, n in left.items()
    )
    said = words or NONE_WALKS
    return Part(f"{task}: {said}", verdict, why if found else "no policy walks", (len(left),))


def cyclic(task: str) -> Part:
    """Whether the memberships of some policy that walks are cyclic."""
    found = _walking(task)
    cycles = {name: record for name, record in found.items() if record["period"] is not None}
    verdict, why = seen(len(cycles), len(found) - len(cycles), "some")
    words = [
        f"{name} repeats itself after {number(record['period'], 1)} steps (autocorrelation "
        f"{number(record['regularity'], 2)})"
        if name in cycles
        else f"{name} does not repeat itself"
        for name, record in found.items()
    ]
    said = ", ".join(words) or NONE_WALKS
    return Part(f"{task}: {said}", verdict, why if found else "no policy walks", (len(found),))

"""What the policies of the paper's learner do: how far they walk, and which experts that takes.

Measured once for a policy file and kept in docs/results/policies/measured.json, since it takes
minutes; a file that changed is measured again.
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import moie
from moie.files import as_json, finite, parse_json, write_bytes
from moie.policy.cycle import find_cycle
from moie.policy.mixture import Mixture
from moie.runs.evaluation import Evaluator

POLICIES = Path(__file__).parents[2] / "docs" / "results" / "policies"
RECORDS = POLICIES / "measured.json"
TASKS = ("HopperBulletEnv-v0", "HalfCheetahBulletEnv-v0")
"""Tasks of which the paper says how many experts their gaits need."""
EPISODES, SEED, LOSS = 10, 2_000_000, 0.05

Record = dict[str, Any]


def mixtures() -> dict[Path, Mixture]:
    """The published policies of the paper's learner, by file."""
    found = {file: moie.load(file) for file in sorted(POLICIES.glob("*.safetensors"))}
    return {
        file: policy
        for file, policy in found.items()
        if isinstance(policy, Mixture) and policy.trained["algorithm"] == "moie"
    }


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def records() -> dict[str, Record]:
    """What was measured, by name of the policy."""
    return parse_json(RECORDS.read_bytes()) if RECORDS.exists() else {}


def is_measured(policy: Mixture) -> bool:
    """Whether a claim is about such a policy."""
    return policy.task in TASKS


def measure(file: Path, policy: Mixture) -> Record:
    """Distance and cycle of the mean action's episodes, and the experts that `prune` leaves."""
    with Evaluator(policy.task, SEED, workers=1) as evaluator:
        episodes = evaluator.episodes(policy, EPISODES, kinds=["mean"])["mean"]
    cycle = find_cycle([policy.memberships(one.observations[:-1]) for one in episodes])
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"loss": LOSS, "episodes": EPISODES, "seed": SEED, "workers": 1}
        pruning, _ = moie.prune(
            file, out=Path(folder) / "pruned.safetensors", quiet=True, **options
        )
    return {
        "sha256": sha256(file),
        "task": policy.task,
        "distance": float(np.mean([one.distance for one in episodes])),
        "period": cycle and cycle["period"],
        "regularity": cycle and cycle["regularity"],
        "pruning": pruning,
    }


def measure_all() -> None:
    """Measure what is new, and forget what is gone."""
    old, new = records(), {}
    for file, policy in mixtures().items():
        if is_measured(policy):
            known = old.get(file.stem, {})
            is_same = known.get("sha256") == sha256(file)
            found = known if is_same else measure(file, policy)
            new[file.stem] = found | {"actions": policy.trained.get("actions", "clipped")}
            print(f"{file.stem}: {'known' if is_same else 'measured'}", flush=True)
    write_bytes(RECORDS, as_json(finite(new)))

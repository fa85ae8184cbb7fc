"""Do all algorithms still learn the same bytes? Writes down the digest of each one's policy file
after a short training, without the states that its last evaluation visited, and compares with what
was written before:

    python benchmarks/learned_bytes.py before.json    # on the old version: writes the file
    python benchmarks/learned_bytes.py before.json    # on the new one: names what differs

Digests depend on the machine and on the versions of jax and the simulators: compare on one machine.
"""

import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import moie
from moie.learn import registry
from moie.policy import file as policy_file
from moie.runs.config import RunConfig, settings_of

SMALL: dict[str, Any] = {
    "experts": 3,
    "temperature": 1.0,
    "batch_steps": 128,
    "candidates": 50,
    "epochs": 2,
    "ppo_epochs": 2,
    "crisp_epochs": 2,
    "critic_epochs": 2,
    "hidden": (8,),
    "policy_hidden": (8,),
    "evaluation_every": 2,
    "evaluation_episodes": 1,
    "workers": 1,
}
OLD_MEANING = {"actions": "clipped", "compress": True}
"""What versions did that do not have these settings yet."""
if OLD_MEANING.keys() - settings_of(RunConfig).keys():
    OLD_MEANING = {}
CASES = [("pendulum", name, 4) for name in registry.names()]
CASES += [("hopper", name, 2) for name in ("moie", "crisp")]


def learned(folder: Path) -> dict[str, str]:
    """From task and algorithm to the digest of the policy file."""
    found = {}
    for task, name, iterations in CASES:
        out = folder / f"{task}-{name}"
        options = SMALL | OLD_MEANING | {"algorithm": name, "iterations": iterations}
        moie.train(task, out=out, quiet=True, **options)
        policy = moie.load(out)
        if hasattr(policy, "visited"):  # states of evaluations, which change nothing it learned
            policy = dataclasses.replace(policy, visited=None)
        digest = hashlib.sha256(policy_file.to_bytes(policy)).hexdigest()
        found[f"{task} {name}"] = digest
        print(f"{task:10} {name:24} {digest[:16]}", flush=True)
    return found


def main() -> int:
    """0 where nothing differs, or there was nothing to compare with."""
    file = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        found = learned(Path(folder))
    if not file.exists():
        file.write_text(json.dumps(found, indent=2) + "\n")
        return 0
    before = json.loads(file.read_text())
    differing = [name for name, digest in found.items() if before.get(name) != digest]
    print(f"differing: {', '.join(differing)}" if differing else f"all {len(found)} are the same")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

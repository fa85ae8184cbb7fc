"""The one small configuration that all tests train with: one compilation serves them all."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import moie
from moie import api
from moie.environments import spaces, tasks
from moie.policy import file as policy_file
from moie.policy.mixture import Mixture
from moie.policy.visited import Visited

ROOT = Path(__file__).parent.parent
SETTINGS: dict[str, Any] = {
    "experts": 3,
    "temperature": 1.0,
    "batch_steps": 128,
    "candidates": 50,
    "epochs": 2,
    "critic_epochs": 2,
    "hidden": (8,),
    "evaluation_every": 2,
    "evaluation_episodes": 1,
}


def policy(task: str = "tests.probes:Walk-v0", experts: int = 3, **changes: Any) -> Mixture:
    """A policy that acts differently in different states, without any training."""
    env = tasks.make(task)
    shape, bounds = env.observation_space.shape, env.action_space
    features = int(np.prod(shape))
    low, high = (np.ravel(bound).astype(np.float64) for bound in (bounds.low, bounds.high))
    feature_names, action_names = spaces.names(env)
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {
        "task": task,
        "prototypes": rng.normal(size=(experts, features)),
        "weights": rng.uniform(1, 3, experts),
        "actions": rng.uniform(low, high, (experts, len(low))),
        "default_action": (low + high) / 2,
        "log_std": np.log((high - low) / 4),
        "temperature": 0.5,
        "feature_mean": np.zeros(features),
        "feature_scale": np.ones(features),
        "action_low": low,
        "action_high": high,
        "feature_names": feature_names,
        "action_names": action_names,
        "origins": (None,) * experts,
        "observation_shape": shape,
        "action_shape": bounds.shape,
        "share": np.full(experts, 0.25),
        "lead": np.full(experts, 1 / experts),
        "distances": np.zeros(experts),
    }
    return Mixture(**(values | changes))


def visited(states: np.ndarray) -> Visited:
    """States that a policy of a test is said to have visited."""
    return Visited(states.astype(np.float32), 1, len(states), 0)


def replaced(policy: Mixture, **changes: Any) -> Mixture:
    """The policy with other parts."""
    return replace(policy, **changes)


def train(task: str, out: Path, **settings: Any) -> moie.Run:
    """Train in this process."""
    settings = {"iterations": 4, "workers": 2} | settings
    return moie.train(f"{task}", out=out, quiet=True, **(SETTINGS | settings))


def resume(run: Path, **options: Any) -> moie.Run:
    """Resume in this process."""
    return api.resume(run, quiet=True, workers=2, **options)


def arguments(task: str, out: Path, **settings: Any) -> list[str]:
    """What a user types to train."""
    words = ["train", task, "--out", str(out)]
    for name, value in (SETTINGS | {"workers": 2} | settings).items():
        values = value if isinstance(value, tuple) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words


def command(*words: str, code: str | None = None) -> list[str]:
    """`moie ...` as a process of its own, or any Python code."""
    return [sys.executable, *(["-c", code] if code else ["-m", "moie"]), *words]


def environment(**variables: str) -> dict[str, str]:
    """For a process that finds the probes."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"} | variables


def moie_process(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `moie ...` to its end."""
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run(command(*words), env=environment(), **options)


def policy_bytes(run: Path) -> bytes:
    """The policy file."""
    return (run / "policy.safetensors").read_bytes()


def learned_bytes(run: Path) -> bytes:
    """The policy without the states that it visited afterwards."""
    policy = policy_file.load_file(run / "policy.safetensors")
    assert isinstance(policy, Mixture)
    return policy_file.to_bytes(replace(policy, visited=None))


def metrics(run: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl without the times, which differ from run to run."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows]


def copy(run: Path, to: Path) -> Path:
    """A run of one's own to damage."""
    shutil.copytree(run, to)
    return to


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def leftovers(run: Path) -> list[str]:
    """Temporary files."""
    return [str(path) for path in run.rglob("*") if path.name.startswith(".")]

"""What a studio was opened with, and how a page plays it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moie.policy.check import limits
from moie.policy.mixture import Mixture
from moie.workshop.portraits import Portraits
from moie.workshop.simulation import SILENCE

Message = dict[str, Any]


@dataclass
class Opened:
    """What the studio was opened with; the same for all pages."""

    title: str
    policy: Mixture
    spec: bytes
    """The task, packed for processes of ours."""
    out: Path
    """Where a policy is saved, if the page does not choose another name."""
    seed: int = 0
    episodes: int = 20
    silence: float = SILENCE
    portraits: Portraits | None = None

    def hello(self) -> Message:
        """What the page has to know first of all."""
        policy = self.policy
        return {
            "type": "hello",
            "title": self.title,
            "task": policy.task,
            "algorithm": policy.trained.get("algorithm", ""),
            "steps": policy.trained.get("steps", 0),
            "features": list(policy.feature_names),
            "joints": list(policy.action_names),
            "low": policy.action_low.tolist(),
            "high": policy.action_high.tolist(),
            "default_action": policy.default_action.tolist(),
            "fps": None,  # the simulator tells it, and the pushes, when it is ready
            "pushes": [],
            "folder": str(self.out.parent.resolve()),
            "name": self.out.stem,
            "seed": self.seed,
            "episodes": self.episodes,
            "limits": {
                "temperature": limits("temperature"),
                "weight": limits("weights"),
                "metric": limits("metric"),
            },
        }


@dataclass
class Settings:
    """How the simulator plays; a new one begins with the same."""

    playing: bool = True
    speed: float = 1.0
    actions: str = "mean"
    loop: bool = True

    def told(self) -> Message:
        return {
            "type": "playing",
            "on": self.playing,
            "speed": self.speed,
            "actions": self.actions,
            "loop": self.loop,
        }

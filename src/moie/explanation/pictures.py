"""The pictures of an explanation: every prototype re-lived, the shown episode as a video."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moie.explanation import images, scenes
from moie.explanation.facts.schema import Behaviour, Replay
from moie.policy.mixture import Mixture
from moie.present.stages import Stages
from moie.rollout.episode import Episode

STRIPS, VIDEO = 6_000_000, 8_000_000
"""Most bytes of all experts' pictures and of the video: a report stays below 25 MB."""


@dataclass
class Pictures:
    """Everything that was drawn, and how well it agrees."""

    problem: str | None = None  # why there are no pictures
    replays: dict[int, Replay] = field(default_factory=dict)
    """How well the replay of each prototype agrees, or that of the nearest visited state."""
    origins: set[int] = field(default_factory=set)
    """Experts whose replay led to where their prototype was visited."""
    are_set: bool = False  # the simulator was put into their states, not brought there by actions
    stills: dict[int, bytes] = field(default_factory=dict)  # PNG files
    strips: dict[int, images.Film] = field(default_factory=dict)
    video: images.Film | None = None
    video_difference: float | None = None
    fps: float = 30.0
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """How well all of it agrees, and the steps from one frame of the video to the next."""
        replays = [self.replays[k] for k in self.origins]
        differences = [replay["difference"] for replay in replays]
        return {
            "problem": self.problem,
            "applied": scenes.APPLIED,
            "are_set": self.are_set,
            "n_replayed": len(replays),
            "n_matching": sum(replay["matches"] for replay in replays),
            "largest_difference": max((d for d in differences if d is not None), default=None),
            "tolerance": scenes.TOLERANCE,
            "video_difference": self.video_difference,
            "every": 1 if self.video is None else self.video.every,
            "n_frames": 0 if self.video is None else self.video.n,
        }


def draw(
    policy: Mixture,
    facts: Behaviour,
    episodes: list[Episode],
    progress: Stages,
    check: Callable[[], None],
) -> Pictures:
    """Replay every prototype, or the visited state nearest to it; then film the shown episode."""
    drawn = Pictures()
    with (
        scenes.Stage(policy.task, scenes.STILL) as stage,
        progress.stage("prototypes", policy.n_experts) as done,
    ):
        for expert in facts["experts"]:
            check()
            k, nearest = expert["expert"], expert["nearest"]
            expected, arrive = policy.prototypes[k], scenes.arrival(stage, policy, k)
            if arrive is None:
                episode, step = episodes[nearest["episode"]], nearest["step"]
                expected = episode.observations[step]
                arrive = partial(stage.go_to, episode.job.seed, episode.given(policy)[:step])
            origin = policy.origins[k]
            drawn.are_set |= origin is not None and origin.qpos is not None
            scene = scenes.relive(stage, policy, k, arrive, expected)
            drawn.replays[k] = scene.replay
            if origin is not None:
                drawn.origins.add(k)
            if scene.frames:
                drawn.strips[k] = images.strip(scene.frames, STRIPS // policy.n_experts)
                drawn.stills[k] = images.still(scene.frames[0])
                drawn.files[f"scenes/expert-{k}.png"] = drawn.stills[k]
                drawn.files[f"scenes/expert-{k}.webp"] = images.animation(scene.frames, 0.16)
            done("")
        drawn.problem, drawn.fps = stage.problem, stage.fps
    if drawn.problem is None:
        episode = episodes[facts["shown"]["episode"]]
        with (
            scenes.Stage(policy.task, scenes.VIDEO) as stage,
            progress.stage("video", episode.length) as done,
        ):
            scene = scenes.film(stage, policy, episode, check, done)
        drawn.problem, drawn.video_difference = scene.problem, scene.difference
        if drawn.problem is None:
            every = scenes.stride(episode.length)
            drawn.video = images.video(scene.frames, every, VIDEO)
            drawn.files["scenes/episode.webp"] = images.animation(scene.frames, every / drawn.fps)
    return drawn

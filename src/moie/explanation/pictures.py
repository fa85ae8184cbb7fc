"""The pictures of an explanation: every prototype re-lived, the shown episode as a video."""

from collections.abc import Callable
from typing import Any

from moie.explanation import images, scenes
from moie.policy.mixture import Mixture
from moie.present.stages import Stages
from moie.rollout.episode import Episode

CHECK_EVERY = 50
"""Steps of a film after which Ctrl-C is looked for."""
STRIPS, VIDEO = 6_000_000, 8_000_000
"""Bytes of all experts' pictures and of the video, at most: a report stays below 25 MB."""


def none_for(problem: str | None) -> dict[str, Any]:
    """The facts without any picture."""
    return {
        "problem": problem,
        "applied": scenes.APPLIED,
        "n_replayed": 0,
        "n_matching": 0,
        "largest_difference": None,
        "tolerance": scenes.TOLERANCE,
        "video_difference": None,
        "every": 1,
        "n_frames": 0,
    }


def draw(
    policy: Mixture,
    facts: dict[str, Any],
    episodes: list[Episode],
    content: dict[str, bytes],
    progress: Stages,
    check: Callable[[], None],
) -> tuple[dict[int, images.Strip], images.Video | None, float]:
    """Replay every prototype, then the shown episode; facts say how well replays agree."""
    found = facts["scenes"] = none_for(None)
    strips: dict[int, images.Strip] = {}
    with (
        scenes.Stage(policy.task, scenes.STILL) as stage,
        progress.stage("prototypes", policy.n_experts) as done,
    ):
        for expert in facts["experts"]:
            check()
            frames = _relived(stage, policy, expert, episodes, found)
            name = f"expert-{expert['expert']}"
            if frames:
                strips[expert["expert"]] = images.strip(frames, STRIPS // policy.n_experts)
                content[f"scenes/{name}.png"] = images.still(frames[0])
                content[f"scenes/{name}.webp"] = images.animation(frames, 0.16)
            done("")
        found["problem"], fps = stage.problem, stage.fps
    video = None
    if found["problem"] is None:
        scene, problem = _filmed(policy, episodes[facts["shown"]["episode"]], progress, check)
        found["problem"] = problem or scene.problem
        found["video_difference"] = scene.difference
        if found["problem"] is None:
            every = scenes.stride(facts["shown"]["length"])
            video = images.video(scene.frames, every, VIDEO)
            found |= {"every": video.every, "n_frames": video.n}
            content["scenes/episode.webp"] = images.animation(scene.frames, every / fps)
    return strips, video, fps


def _relived(
    stage: scenes.Stage,
    policy: Mixture,
    expert: dict[str, Any],
    episodes: list[Episode],
    found: dict[str, Any],
) -> list[scenes.Frame]:
    """One prototype, or the visited state nearest to it; the facts get what its replay shows."""
    k, nearest = expert["expert"], expert["nearest"]
    scene = scenes.relive(stage, policy, k)
    if scene is None:
        scene = scenes.near(stage, policy, k, episodes[nearest["episode"]], nearest["step"])
    expert["replay"] = {
        "difference": scene.difference,
        "matches": scene.matches,
        "problem": scene.problem,
    }
    found["n_replayed"] += 1
    found["n_matching"] += int(scene.matches)
    if scene.difference is not None:
        found["largest_difference"] = max(found["largest_difference"] or 0.0, scene.difference)
    return scene.frames


def _filmed(
    policy: Mixture, episode: Episode, progress: Stages, check: Callable[[], None]
) -> tuple[scenes.Scene, str | None]:
    """The episode, and why it could not be drawn."""
    with (
        scenes.Stage(policy.task, scenes.VIDEO) as stage,
        progress.stage("video", -(-episode.length // CHECK_EVERY)) as done,
    ):

        def told(step: int) -> None:
            if step % CHECK_EVERY == 0:
                check()
                done("")

        return scenes.film(stage, policy, episode, told), stage.problem

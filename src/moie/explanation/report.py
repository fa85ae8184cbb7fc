"""The report: one HTML file that needs nothing else, made of the facts, the figures and the scenes.

Every number of the page is an element that names its place in the facts (`data-fact`): a reader
can look it up there, and a test recomputes each.
"""

import json
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from moie.explanation.images import COLUMNS, PER_SHEET, Strip, Video
from moie.present.html import rendered
from moie.present.style import colours, varied
from moie.runs.truth import SAID

TEMPLATES = files("moie.explanation") / "templates"
MOST_LISTED = 100
"""Features of a prototype in its card."""


def _player(facts: dict[str, Any], video: Video | None, fps: float) -> Markup:
    """What the player needs of the facts, as JSON that can not end its script element."""
    shown, policy, paint = facts["shown"], facts["policy"], colours(facts)
    content = {
        "memberships": shown["memberships"],
        "leader": shown["leader"],
        "nearest": shown["nearest"],
        "distance": shown["nearest_distance"],
        "actions": shown["actions"],
        "order": [expert["expert"] for expert in facts["experts"]],
        "colours": [paint[k] for k in range(policy["n_experts"])],
        "names": policy["action_names"],
        "low": policy["action_low"],
        "high": policy["action_high"],
        "fps": fps,
        "video": None,
    }
    if video is not None:
        content["video"] = {
            "every": video.every,
            "perSheet": PER_SHEET,
            "columns": COLUMNS,
            "width": video.width,
            "height": video.height,
        }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def page(
    facts: dict[str, Any],
    figures: dict[str, bytes],
    strips: dict[int, Strip],
    video: Video | None,
    programs: tuple[str, str | None],
    fps: float,
) -> bytes:
    """The whole file. `figures` are SVG by name; `programs` the policy and the pruned one."""
    run = facts.get("run")
    return rendered(
        "moie.explanation",
        "report.html",
        facts,
        figures,
        js=(TEMPLATES / "report.js").read_text(),
        said=SAID[facts["truth"]["reading"]],
        is_visited=any(expert["origin"] for expert in facts["experts"]),
        strips={e["expert"]: strips.get(e["expert"]) for e in facts["experts"]},
        video=video,
        colours=colours(facts),
        listed=varied(facts, MOST_LISTED),
        program=programs[0],
        pruned_program=programs[1],
        settings=None if run is None else json.dumps(run["settings"], indent=2),
        versions="\n".join(f"{name} {version}" for name, version in facts["versions"].items()),
        player=_player(facts, video, fps),
    )

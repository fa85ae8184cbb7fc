"""The report: one HTML file that needs nothing else, made of the facts, the figures and the scenes.

Every number of the page is an element that names its place in the facts (`data-fact`): a reader
can look it up there, and a test recomputes each.
"""

import json
from importlib.resources import files

from markupsafe import Markup

from moie.explanation.facts.schema import Facts, Removed
from moie.explanation.images import COLUMNS, PER_SHEET
from moie.explanation.pictures import Pictures
from moie.explanation.selection import captions, colours, varied
from moie.explanation.table import ANSWERS
from moie.present.html import rendered
from moie.runs.truth import SAID

TEMPLATES = files("moie.explanation") / "templates"
MOST_FEATURES = 100  # most features of a prototype in its card


def _player(facts: Facts, pictures: Pictures) -> Markup:
    """The facts that the player needs, as JSON that cannot end its script element."""
    video, paint = pictures.video, colours(facts)
    content = {
        "shown": facts["shown"],
        "policy": facts["policy"],
        "order": list(paint),
        "colours": [paint[k] for k in sorted(paint)],
        "experts": [name for _, name in sorted(captions(facts).items())],
        "reach": [one["reach"] for one in sorted(facts["experts"], key=lambda e: e["expert"])],
        "fps": pictures.fps,
        "video": video and {"every": video.every, "width": video.width, "height": video.height},
        "columns": COLUMNS,
        "perSheet": PER_SHEET,
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _is_visited(facts: Facts) -> bool:
    """Whether prototypes are visited states, but for those that a person made; else a gradient
    found them."""
    experts = facts["experts"]
    by_hand = (not {"added", "prototype"}.isdisjoint(expert["by_hand"]) for expert in experts)
    return any(expert["origin"] for expert in experts) or all(by_hand)


def _curve(facts: Facts) -> list[Removed]:
    """The policies of the pruning curve; none without pruning."""
    return facts["pruning"]["curve"] if "pruning" in facts else []


def page(
    facts: Facts,
    figures: dict[str, bytes],
    pictures: Pictures,
    programs: tuple[str, str | None],
    sheet: str = "",
) -> bytes:
    """The whole file. `figures` are SVG by name; `programs` the policy and the pruned one; `sheet`
    the data sheet."""
    run = facts.get("run")
    return rendered(
        "moie.explanation",
        "report.html",
        facts,
        figures,
        js=(TEMPLATES / "report.js").read_text(),
        said=SAID[facts["truth"]["reading"]],
        is_visited=_is_visited(facts),
        by_hand=any(expert["by_hand"] for expert in facts["experts"]),
        strips={e["expert"]: pictures.strips.get(e["expert"]) for e in facts["experts"]},
        video=pictures.video,
        colours=colours(facts),
        features=varied(facts, MOST_FEATURES),
        program=programs[0],
        pruned_program=programs[1],
        sheet=sheet,
        answers=ANSWERS,
        undecided=any(row["answer"] == "undecided" for row in _curve(facts)),
        settings=None if run is None else json.dumps(run["settings"], indent=2),
        player=_player(facts, pictures),
    )

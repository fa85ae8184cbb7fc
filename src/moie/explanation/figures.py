"""The figures, drawn from the facts alone (one of them from pictures, too), in one style; each as
SVG, PDF and PNG."""

import io
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from moie.explanation.facts.schema import Facts, Kind
from moie.explanation.selection import captions, chosen, colours, leading, varied, window
from moie.present.style import DEFAULT, GRID, INK, PALETTE, REST, WIDTH, grid, sheet

MOST_FEATURES = 30  # most features in one figure
LONGEST = 20  # characters of an expert's label in a figure
KINDS: dict[Kind, str] = {"sampled": PALETTE[0], "mean": PALETTE[1]}
"""Colours of the kinds of actions."""


def activation(facts: Facts) -> Figure:
    """The paper's figure: memberships of the chosen experts over a rollout."""
    experts, paint, steps = chosen(facts, 6), colours(facts), window(facts)
    names = captions(facts, LONGEST)
    figure, axes = sheet(0.55 + 0.62 * len(experts), len(experts), sharex=True, sharey=True)
    memberships = np.asarray(facts["shown"]["memberships"])[steps.start : steps.stop]
    for axis, k in zip(axes[:, 0], experts, strict=True):
        axis.fill_between(steps, memberships[:, k], color=paint[k], alpha=0.25, linewidth=0)
        axis.plot(steps, memberships[:, k], color=paint[k], linewidth=1.2)
        axis.set_ylabel(names[k], rotation=0, ha="right", va="center", color=paint[k])
        axis.set_ylim(0, max(0.05, 1.08 * float(memberships.max())))
        axis.margins(x=0)
        grid(axis)
    axes[-1, 0].set_xlabel(f"step of the episode with seed {facts['shown']['seed']}")
    figure.suptitle("Membership of experts over a rollout")
    return figure


def rollout(facts: Facts, stills: dict[int, bytes]) -> Figure | None:
    """The paper's figures of gaits: prototypes as they were visited, above their memberships over
    a rollout. `stills`: PNG pictures of prototypes; None where there are none."""
    experts = [k for k in leading(facts, 4) if k in stills]
    if not experts:
        return None
    paint, names, steps = colours(facts), captions(facts, LONGEST), window(facts, 5)
    memberships = np.asarray(facts["shown"]["memberships"])[steps.start : steps.stop]
    pictures = [np.asarray(Image.open(io.BytesIO(stills[k])).convert("RGB")) for k in experts]
    tall = max(picture.shape[0] / picture.shape[1] for picture in pictures)
    width = 0.96 * WIDTH / max(3, len(experts))
    figure = Figure(figsize=(WIDTH, tall * width + 1.9))
    above, below = figure.subfigures(2, 1, height_ratios=[tall * width + 0.2, 1.7])
    for axis, k, picture in zip(
        above.subplots(1, len(experts), squeeze=False)[0], experts, pictures, strict=True
    ):
        axis.imshow(picture, interpolation="antialiased")
        axis.set_title(names[k], color=paint[k])
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set(visible=True, color=paint[k], linewidth=2)
    axis = below.subplots()
    for k in experts:
        axis.fill_between(steps, memberships[:, k], color=paint[k], alpha=0.18, linewidth=0)
        axis.plot(steps, memberships[:, k], color=paint[k], linewidth=1.4)
    axis.set(xlabel="step", ylabel="membership", ylim=(0, None))
    axis.margins(x=0)
    grid(axis)
    return figure


def membership(facts: Facts) -> Figure:
    """Everything that makes up the action, stacked: experts, and the default on top."""
    paint, experts = colours(facts), [e["expert"] for e in facts["experts"]]
    memberships = np.asarray(facts["shown"]["memberships"])
    figure, [[axis]] = sheet(2.5)
    named, others = experts[: len(PALETTE)], experts[len(PALETTE) :]
    rest, default = memberships[:, others].sum(axis=1), 1.0 - memberships.sum(axis=1)
    layers = [*(memberships[:, k] for k in named), rest, default]
    tints = [*(paint[k] for k in named), REST, DEFAULT]
    names = captions(facts, LONGEST)
    labels = [names[k] for k in named] + ["others" if others else "", "default"]
    axis.stackplot(np.arange(len(memberships)), layers, colors=tints, labels=labels, linewidth=0)
    handles = [h for h, text in zip(axis.collections, labels, strict=True) if text]
    axis.legend(handles, [t for t in labels if t], loc="center left", bbox_to_anchor=(1, 0.5))
    axis.set(xlabel="step", ylabel="share of the action", ylim=(0, 1))
    axis.set_title("What the action is made of")
    axis.margins(x=0)
    return figure


def overlap(facts: Facts) -> Figure:
    """How much two experts are active in the same states."""
    order = [expert["expert"] for expert in facts["experts"]]
    matrix = np.asarray(facts["overlap"])[np.ix_(order, order)]
    side = min(6.0, 2.2 + 0.22 * len(order))
    figure = Figure(figsize=(side + 0.8, side))
    axis = figure.subplots()
    image = axis.imshow(matrix, vmin=0, vmax=1, cmap="Blues")
    axis.set_xticks(range(len(order)), map(str, order))
    axis.set_yticks(range(len(order)), [f"expert {k}" for k in order])
    axis.tick_params(length=0)
    if len(order) <= 12:
        for i, row in enumerate(matrix):
            for j, value in enumerate(row):
                ink = "white" if value > 0.55 else "#23272e"  # on a cell, in light and in dark
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7)
    axis.spines[:].set_visible(False)
    axis.set_title("Overlap of activation over visited states")
    figure.colorbar(image, ax=axis, fraction=0.046, pad=0.03).outline.set_visible(False)
    return figure


def actions(facts: Facts) -> Figure:
    """The action of every used expert as bars, with the joints' names."""
    used = [e for e in facts["experts"] if e["share"] >= 0.005] or facts["experts"][:1]
    used, paint, policy = used[:12], colours(facts), facts["policy"]
    names, columns = policy["action_names"], min(4, len(used))
    rows = -(-len(used) // columns)
    figure, axes = sheet(
        0.5 + rows * (0.45 + 0.19 * len(names)), rows, columns, sharex=True, sharey=True
    )
    low, high = min(policy["action_low"]), max(policy["action_high"])
    reach = max(abs(np.clip(e["action"], low, high)).max() for e in used) or high
    for axis, expert in zip(axes.flat, used, strict=False):
        values = np.clip(expert["action"], policy["action_low"], policy["action_high"])
        axis.barh(range(len(names)), values, color=paint[expert["expert"]], height=0.62)
        axis.axvline(0, color=INK, linewidth=0.7)
        name = captions(facts, LONGEST)[expert["expert"]]
        gap = "\n" if expert["label"] else "  "
        axis.set_title(f"{name}{gap}({expert['lead']:.0%} of steps)", fontsize=8)
        axis.set_yticks(range(len(names)), names)
        axis.set_xlim(-1.05 * reach, 1.05 * reach)
        grid(axis, "x")
    axes[0, 0].invert_yaxis()
    for axis in axes.flat[len(used) :]:
        axis.set_axis_off()
    figure.suptitle("Action of each expert, within the bounds")
    return figure


def prototypes(facts: Facts) -> Figure:
    """Where each prototype stands in the range of the visited states, feature by feature."""
    shown, experts, paint = varied(facts, MOST_FEATURES), chosen(facts, 10), colours(facts)
    rows = -(-len(shown) // 3)
    figure, axes = sheet(0.5 + 0.62 * rows, rows, 3)
    at = {e["expert"]: e["prototype"] for e in facts["experts"]}
    for i, axis in zip(shown, axes.flat, strict=False):
        feature = facts["features"][i]
        whole, middle = (feature["low"], feature["high"]), (feature["q05"], feature["q95"])
        for span, alpha in ((whole, 0.25), (middle, 0.55)):
            axis.plot(span, (0, 0), color=GRID, linewidth=7, alpha=alpha, solid_capstyle="butt")
        for k in experts:
            axis.plot([at[k][i]] * 2, [-0.55, 0.55], color=paint[k], linewidth=2)
        axis.set_title(feature["name"], fontsize=7.5, fontweight="normal", pad=1)
        axis.set(ylim=(-1, 1), yticks=[])
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="x", labelsize=6.5, length=2)
        axis.locator_params(axis="x", nbins=4)
    for axis in axes.flat[len(shown) :]:
        axis.set_axis_off()
    handles = [mpl.lines.Line2D([], [], color=paint[k], linewidth=2) for k in experts]
    labels = [captions(facts, LONGEST)[k] for k in experts]
    figure.legend(handles, labels, loc="outside lower center", ncols=min(7, len(labels)))
    title = "Prototypes in the range of visited states (dark: the middle 90%)"
    if len(shown) < len(facts["features"]):
        title += f"; {len(shown)} of {len(facts['features'])} features"
    figure.suptitle(title)
    return figure


def pruning(facts: Facts) -> Figure | None:
    """Return against number of experts."""
    if "pruning" not in facts:
        return None
    figure, [[axis]] = sheet(2.6)
    pruned = facts["pruning"]
    lost = pruned["margin"]
    for kind, colour in KINDS.items():
        rows = [(row["n_experts"], row[kind]) for row in pruned["curve"]]
        counts, measured = zip(*((n, one) for n, one in rows if one is not None), strict=True)
        values = np.asarray([one["return"] for one in measured])
        errors = np.asarray([one["error"] for one in measured])
        axis.fill_between(counts, values - errors, values + errors, color=colour, alpha=0.2, lw=0)
        axis.plot(counts, values, "o-", color=colour, markersize=3.5, label=f"{kind} actions")
        level = values[0] - lost * abs(values[0])
        axis.axhline(level, color=colour, linewidth=0.7, linestyle=":")
    axis.axvline(pruned["n_experts"], color=PALETTE[2], linewidth=1.2, linestyle="--")
    axis.annotate(
        f"chosen: {pruned['n_experts']}",
        (pruned["n_experts"], 0.5),
        xycoords=("data", "axes fraction"),
        color=PALETTE[2],
        xytext=(4, -4),
        textcoords="offset points",
        va="top",
    )
    title = f"Pruning (dotted: a loss of {lost:.0%})"
    axis.set(xlabel="number of experts", ylabel="return", title=title)
    axis.invert_xaxis()
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(loc="lower left")
    grid(axis)
    return figure


def learning(facts: Facts) -> Figure | None:
    """Return over the steps of training; entropy and its floor."""
    rows = facts.get("learning")
    if not rows:
        return None
    figure, [[left, right]] = sheet(2.5, 1, 2)
    measured = [row for row in rows if row["return_sampled"] is not None]
    steps = [row["learned"] / 1e6 for row in measured]
    for kind, colour in KINDS.items():
        returns = [row[f"return_{kind}"] for row in measured]
        left.plot(steps, returns, color=colour, label=f"{kind} actions")
    left.set(xlabel="million environment steps", ylabel="return", title="Learning")
    left.legend(loc="lower right")
    for name, style, label in (("entropy", "-", "entropy"), ("entropy_floor", "--", "its floor")):
        some = [(row["steps"] / 1e6, row[name]) for row in rows if row[name] is not None]
        if some:
            right.plot(*zip(*some, strict=True), style, color=PALETTE[4], label=label)
    right.set(xlabel="million environment steps", ylabel="entropy", title="Exploration")
    right.legend(loc="upper right")
    grid(left)
    grid(right)
    return figure


def default_share(facts: Facts) -> Figure:
    """How much of the action no expert claims, over the time of the episodes."""
    default = facts["default"]
    figure, [[axis]] = sheet(1.9)
    steps = default["curve_step"] * (np.arange(len(default["curve"])) + 0.5)
    axis.fill_between(steps, default["curve"], color=REST, alpha=0.35, linewidth=0)
    axis.plot(steps, default["curve"], color=REST, linewidth=1.2)
    axis.axhline(default["threshold"], color=INK, linewidth=0.7, linestyle=":")
    axis.set(xlabel="step", ylabel="default share", ylim=(0, 1))
    axis.set_title("Default share over time, mean of the episodes still running")
    axis.margins(x=0)
    grid(axis)
    return figure


def cycle(facts: Facts) -> Figure | None:
    """Mean memberships over the phase of the gait."""
    if facts["cycle"] is None:
        return None
    figure, [[axis]] = sheet(2.3)
    paint, profile = colours(facts), np.asarray(facts["cycle"]["profile"])
    phases = (np.arange(len(profile) + 1) + 0.5) / len(profile)
    names = captions(facts, LONGEST)
    for k in chosen(facts, 10):
        around = np.append(profile[:, k], profile[0, k])
        axis.plot(phases, around, color=paint[k], label=names[k], linewidth=1.5)
    title = (
        f"One cycle of {facts['cycle']['period']:.1f} steps, mean of {facts['cycle']['n_cycles']}"
    )
    axis.set(xlabel="phase of the cycle", ylabel="membership", xlim=(0, 1), title=title)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    grid(axis)
    return figure


FIGURES: dict[str, Callable[[Facts], Figure | None]] = {
    "activation": activation,
    "membership": membership,
    "cycle": cycle,
    "actions": actions,
    "prototypes": prototypes,
    "overlap": overlap,
    "default-share": default_share,
    "pruning": pruning,
    "learning": learning,
}

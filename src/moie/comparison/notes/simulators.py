"""Sentences on what swarms earned where they learned, and in Gymnasium."""

from collections.abc import Iterator

import numpy as np

from moie.comparison.selection import Group, Selection

PAIRS = {
    "Training episodes there and evaluations of the same policies in Gymnasium earned, in the "
    "second half": ("return_batch", "return_sampled"),
    "Final policies earned there and in Gymnasium, with sampled actions": (
        "return_sampled_mjx",
        "return_sampled",
    ),
    "With mean actions": ("return_mean_mjx", "return_mean"),
}
"""The same policies in MJX and in Gymnasium; only a run's last row has the final ones."""


def simulators(of: Selection) -> Iterator[str]:
    """A notice for each task that was learned in MJX, with what is known of both."""
    for task in of.budgets:
        swarms = [group for group in of.on(task) if group.runs[0].settings.get("environments")]
        said = []
        for what, names in PAIRS.items():
            pairs = [(group.learner.name, _means(group, *names)) for group in swarms]
            known = [f"{who} {pair[0]:.0f} and {pair[1]:.0f}" for who, pair in pairs if pair]
            said += [f"{what}: {', '.join(known)}."] if known else []
        if said:
            yield " ".join([f"{task} was learned in MJX.", *said])


def _means(group: Group, there: str, here: str) -> list[float]:
    """Over all runs and the second half of the compared steps, wherever both are known; nothing
    where they are not."""
    pairs = []
    for run in group.runs:
        pair = np.stack([run.measured[there], run.measured[here]])
        late = (run.at > group.budget / 2) & (run.at <= group.budget)
        pairs.append(pair[:, late & np.isfinite(pair).all(axis=0)])
    known = np.concatenate(pairs, axis=1)
    return known.mean(axis=1).tolist() if known.size else []

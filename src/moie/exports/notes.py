"""What the comments of an export say, and how names get into source code."""

from dataclasses import dataclass

from moie.explanation.origins import about_expert
from moie.exports.naming import identifier
from moie.policy.base import Policy
from moie.policy.handwork import listed
from moie.policy.mixture import Mixture
from moie.terminal import printable


@dataclass(frozen=True)
class Notes:
    """Where an export comes from; all texts fit a line and can stand in a comment."""

    name: str
    """An identifier, for files and functions."""
    task: str
    learned: str
    digest: str
    """SHA-256 of the policy file."""
    features: tuple[str, ...]
    actions: tuple[str, ...]
    experts: tuple[str, ...]
    """What is known of each expert; empty for a policy without experts."""
    changes: tuple[str, ...]
    """What was changed by hand."""
    moie: str
    """The version that wrote it."""


def notes_of(policy: Policy, digest: str, name: str | None = None) -> Notes:
    """The notes about a policy whose file has this digest; its export has this name, or that of the
    task."""
    from moie import __version__

    experts: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    if isinstance(policy, Mixture):
        experts = tuple(in_comment(about_expert(policy, k)) for k in range(policy.n_experts))
        changes = tuple(map(in_comment, listed(policy.edits, policy.labels)))
    return Notes(
        name=name or identifier(policy.task),
        task=in_comment(policy.task),
        learned=in_comment(_learned(policy)),
        digest=digest,
        features=tuple(map(in_comment, policy.feature_names)),
        actions=tuple(map(in_comment, policy.action_names)),
        experts=experts,
        changes=changes,
        moie=__version__,
    )


def _learned(policy: Policy) -> str:
    trained = policy.trained
    parts = [trained.get("algorithm", "moie")]
    if trained.get("seed") is not None:
        parts.append(f"seed {trained['seed']}")
    if "steps" in trained:
        parts.append(f"{trained['steps']:,} steps")
    return ", ".join([*parts, f"{policy.n_parameters} parameters"])


def in_comment(text: str) -> str:
    """A text as it may stand in a comment of any language: in one line, and it ends none."""
    text = printable(text)
    for mark in ("*/", "/*", "//", "??"):  # of these, MISRA C forbids "//"
        while mark in text:  # of "???", there is still one after the first time
            text = text.replace(mark, " ".join(mark))
    return text.rstrip("\\")

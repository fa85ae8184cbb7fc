"""What is said of an expert wherever it is named: how much it is used, and where it is from."""

from moie.policy.mixture import Mixture
from moie.policy.reading import Reading


def origin_said(policy: Mixture, k: int) -> str:
    """Where an expert is from: a visit, or a person's hand."""
    parts = policy.by_hand(k)
    if "added" in parts:
        return "made by hand"
    if not parts:
        return _visit(policy, k)
    where = "" if "prototype" in parts else f"{_visit(policy, k)}, "
    return f"{where}{' and '.join(parts)} set by hand"


def _visit(policy: Mixture, k: int) -> str:
    origin = policy.origins[k]
    if origin is None:
        distance = policy.distances[k]
        return f"{distance:.2g} from the nearest visited state" if distance else "not visited yet"
    where = "episode" if origin.qpos is None else "environment"
    return f"from iteration {origin.iteration}, {where} {origin.episode}, step {origin.step}"


def about_expert(policy: Mixture, k: int) -> str:
    """An expert's name, how much it is used, and where it is from."""
    pruned = policy.trained.get("pruned")
    before = f" (before pruning {pruned['kept'][k]})" if pruned else ""
    use = use_said(Reading(policy), k)
    return f"{policy.label(k)}{before}: {f'{use}, ' if use else ''}{origin_said(policy, k)}"


def use_said(reading: Reading, k: int) -> str:
    """How much an expert is used: how often it leads, and its mean membership. Nothing of one that
    a person added to a policy whose visited states are not known."""
    if reading.leads is None and "added" in reading.policy.by_hand(k):
        return ""
    return f"{reading.lead_said(k)}, membership {reading.share[k]:.1%}"

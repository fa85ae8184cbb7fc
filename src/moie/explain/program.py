"""The policy as a program of IF blocks, in order of use (section 1 of the paper)."""

import shutil

import numpy as np

from moie.rollout.policy import Policy

UNUSED = 5e-4  # of the membership: below that an expert shows as 0.0%


def _number(value: float) -> str:
    """Short, signed, and wide enough for any size."""
    if abs(value) >= 1e4 or 0 < abs(value) < 5e-3:
        return f"{value:+.1e}"
    return f"{value:+.2f}" if abs(value) < 100 else f"{value:+.0f}"


def _columns(names: tuple[str, ...], values: np.ndarray, indent: str, width: int) -> list[str]:
    """`name value` pairs, aligned in as many columns as fit."""
    cells = [(name, _number(float(value))) for name, value in zip(names, values, strict=True)]
    wide = max(len(name) for name, _ in cells)
    long = max(len(value) for _, value in cells)
    n_columns = max(1, (width - len(indent)) // (wide + long + 4))
    rows = []
    for start in range(0, len(cells), n_columns):
        row = "   ".join(f"{n:<{wide}} {v:>{long}}" for n, v in cells[start : start + n_columns])
        rows.append(indent + row.rstrip())
    return rows


def _origin(policy: Policy, k: int) -> str:
    origin = policy.origins[k]
    if origin is None:
        return "not visited yet"
    return f"visited in iteration {origin.iteration}, episode {origin.episode}, step {origin.step}"


def program(policy: Policy, width: int | None = None) -> str:
    """Experts by the share of time they lead, the default action last."""
    width = shutil.get_terminal_size((100, 24)).columns if width is None else width
    width = min(max(width, 40), 140)
    default = 1.0 - policy.share.sum()
    lines = [
        f"# {policy.task}: {policy.n_experts} experts, {policy.n_parameters} parameters, "
        f"learned from {policy.trained.get('steps', 0):,} steps",
        "# The action is the average of all DO, weighted by closeness to each prototype;",
        "# leads: share of visited states in which this expert counts the most.",
        "",
    ]
    order = np.lexsort((-policy.share, -policy.lead))
    used = [int(k) for k in order if policy.share[k] >= UNUSED]
    unused = sorted(int(k) for k in order if policy.share[k] < UNUSED)
    for k in used:
        lines.append(
            f"IF state is close to  # expert {k}: leads {policy.lead[k]:.0%}, membership "
            f"{policy.share[k]:.1%}, {_origin(policy, k)}"
        )
        lines += _columns(policy.feature_names, policy.prototypes[k], "      ", width)
        action = _columns(policy.action_names, policy.actions[k], "      ", width)
        lines += ["   DO", *action, ""]
    lines.append(f"OTHERWISE  # the default, membership {default:.1%}")
    lines += ["   DO", *_columns(policy.action_names, policy.default_action, "      ", width)]
    if unused:
        lines += ["", f"# unused (membership below 0.1%): experts {', '.join(map(str, unused))}"]
    spread = ", ".join(f"{np.exp(s):.2g}" for s in policy.log_std)
    lines += ["", f"# sampled actions add noise of standard deviation {spread}"]
    return "\n".join(lines)

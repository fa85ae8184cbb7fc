"""The size of a policy by the protocol of Kohler and Akrour (arXiv 2503.08322).

There a policy is unfolded into a sequential program, without vectors, loops and libraries for
either; its size is the program's, and its cost the time of one step of it.
"""

import time
import timeit
from collections.abc import Callable, Sequence

import numpy as np

from moie.policy.base import Array
from moie.policy.mixture import Mixture

CALLS, REPEATS = 200, 25


def unfolded(policy: Mixture) -> str:
    """The policy as a Python function `act(x0, x1, ...)` of one assignment after another.

    t_k = ((x_i - p_ki) / r_i)^2 summed, s_k = w_k exp(-t_k), and for each command the sum of
    s_k a_kj over all parts, divided by the sum of s_k (the default's is 1), clipped.
    """
    names = [f"x{i}" for i in range(len(policy.feature_names))]
    experts = np.flatnonzero(policy.weights > 0).tolist()
    lines = ["from math import exp", "", "", f"def act({', '.join(names)}):"]
    for k in experts:
        terms = zip(names, policy.prototypes[k], policy.radii, strict=True)
        squares = [f"(({name} - {_typed(p)}) / {_typed(r)}) ** 2" for name, p, r in terms]
        lines.append(f"    s{k} = {_typed(policy.weights[k])} * exp(-({' + '.join(squares)}))")
    total = " + ".join(["1.0", *(f"s{k}" for k in experts)])
    lines.append(f"    total = {total}")
    for j, default in enumerate(policy.default_action):
        blend = [_typed(default), *(f"s{k} * {_typed(policy.actions[k, j])}" for k in experts)]
        low, high = _typed(policy.action_low[j]), _typed(policy.action_high[j])
        lines.append(f"    a{j} = ({' + '.join(blend)}) / total")
        lines.append(f"    a{j} = {low} if a{j} < {low} else {high} if a{j} > {high} else a{j}")
    commands = ", ".join(f"a{j}" for j in range(len(policy.default_action)))
    return "\n".join([*lines, f"    return ({commands},)", ""])


def _typed(value: float) -> str:
    """A number as Python reads it back, to the last bit; infinite ones too."""
    if np.isinf(value):
        return "1e999" if value > 0 else "(-1e999)"
    return repr(float(value)) if value >= 0 else f"({float(value)!r})"


def compiled(source: str) -> Callable[..., Sequence[float]]:
    """The function of an unfolded program."""
    room: dict[str, Callable[..., Sequence[float]]] = {}
    exec(compile(source, "<unfolded policy>", "exec"), room)
    return room["act"]


def microseconds(source: str, states: Array) -> float:
    """The processor's time for one step of the program on this machine, in one thread: the median
    over batches of calls, each batch in another of these states (N, d)."""
    act = compiled(source)
    rows = states[np.linspace(0, len(states) - 1, REPEATS).astype(int)].tolist()
    times = [
        timeit.timeit(lambda row=row: act(*row), timer=time.thread_time, number=CALLS)
        for row in rows
    ]
    return float(np.median(times)) / CALLS * 1e6

"""Words for lists: of seeds, of names, of what a machine is."""

from collections.abc import Iterable, Sequence
from typing import Any


def ranges(numbers: Iterable[int]) -> str:
    """0, 1, 2, 5 as "0-2, 5"."""
    some = sorted(set(numbers))
    starts = [n for n in some if n - 1 not in some]
    ends = [n for n in some if n + 1 not in some]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in pairs)


def seeds(numbers: Iterable[int]) -> str:
    """ "seed 5", "seeds 0-2"."""
    some = set(numbers)
    return f"seed{'s' if len(some) > 1 else ''} {ranges(some)}"


def runs(n: int) -> str:
    """ "1 run", "2 runs"."""
    return f"{n} run{'' if n == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"; names with a comma of their own are parted by semicolons."""
    if len(words) < 2:
        return "".join(words)
    between = "; " if any(", " in word for word in words) else ", "
    return between.join(words[:-1]) + (between if between == "; " else " ") + f"and {words[-1]}"


def host_name(host: dict[str, Any]) -> str:
    """The kind of machine in a few words."""
    if not host:
        return "not recorded"
    words = [host.get("processor"), host.get("machine"), host.get("system")]
    cores = host.get("cores")
    return ", ".join([str(word) for word in words if word] + ([f"{cores} cores"] if cores else []))

"""Words for seeds, runs, lists and machines; and texts that can be printed."""

from collections.abc import Iterable
from typing import Any

from moie import terminal


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


def joined(texts: Iterable[str]) -> str:
    """ "a, b and c"; texts with a comma of their own are separated by semicolons."""
    words = list(texts)
    if len(words) < 2:
        return "".join(words)
    if any(", " in word for word in words):
        return "; ".join([*words[:-1], f"and {words[-1]}"])
    return ", ".join(words[:-1]) + f" and {words[-1]}"


def host_name(host: dict[str, Any]) -> str:
    """A kind of machine, in a few words."""
    if not host:
        return "not recorded"
    words = [host.get("processor"), host.get("machine"), host.get("system")]
    cores = host.get("cores")
    return ", ".join([str(word) for word in words if word] + ([f"{cores} cores"] if cores else []))


def printable(text: str) -> str:
    """A text in one line, with escapes for what cannot be printed, and a space for any space."""
    return terminal.printable("".join(" " if one.isspace() else one for one in text))


def all_printable(content: Any) -> Any:
    """The same content with every text printable."""
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, dict):
        return {all_printable(name): all_printable(value) for name, value in content.items()}
    return [all_printable(one) for one in content] if isinstance(content, list) else content

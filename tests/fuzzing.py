"""Damage to files, by seed: flipped bits, cut and spliced content, and changes that keep JSON
well-formed. The same content and seed give the same damage.

    for seed in range(100):
        damaged = mutated(content, seed)             # bytes of any kind
        damaged = mutated_json(content, seed)        # one JSON document
        damaged = mutated_lines(content, seed)       # one JSON document a line
        damaged = mutated_safetensors(content, seed) # header and tensors
    with at_most(2.0):
        read(damaged)
"""

import contextlib
import copy
import json
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    1e-320,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "\x00",
    "/dev/zero",
    "/dev/stdin",
    "../../../etc/passwd",
    "\ud800",
    "x" * 10_000,
    [],
    {},
    [[]],
    [None] * 100,
    {"": {}},
)
"""Values that a reader may not expect."""

TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r\n",
    b"{",
    b"}",
    b"[",
    b'"',
    b",",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 400,
    b"9" * 5_000,
    b"[" * 2_000,
    b'{"a":' * 2_000,
    b"null",
    b"\\ud800",
)
"""Bytes that break a parser."""


def mutated(content: bytes, seed: int) -> bytes:
    """One to three changes of the bytes."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        content = chance.choice(BYTE_CHANGES)(content, chance)
    return content


def mutated_json(content: bytes, seed: int) -> bytes:
    """One to three changes of values, keys or lists in a JSON document; every fourth time of its
    bytes instead, and every fiftieth time a document nested too deeply."""
    chance = random.Random(seed)
    if chance.random() < 0.25:
        return mutated(content, seed)
    if chance.random() < 0.02:
        return _nested(content, chance)
    tree = json.loads(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        tree = _changed_tree(tree, chance)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def mutated_lines(content: bytes, seed: int) -> bytes:
    """Damage to a file with a JSON document in each line: to one or two lines, to their
    order, or to the bytes of the whole."""
    chance = random.Random(seed)
    lines = content.splitlines()
    if len(lines) < 2 or chance.random() < 0.25:
        return mutated(content, seed)
    for _ in range(chance.choice((1, 1, 2))):
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        change = chance.choice(("json", "json", "json", "bytes", "drop", "double", "swap", "tear"))
        if change == "json":
            with contextlib.suppress(ValueError, RecursionError):  # damaged already
                lines[i] = mutated_json(lines[i], chance.getrandbits(32))
        elif change == "bytes":
            lines[i] = mutated(lines[i], chance.getrandbits(32))
        elif change == "drop" and len(lines) > 1:
            del lines[i]
        elif change == "double":
            lines.insert(i, lines[i])
        elif change == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[-1] = lines[-1][: chance.randrange(len(lines[-1]) + 1)]
        if not lines:
            break
    return b"\n".join(lines) + chance.choice((b"\n", b"\n", b""))


def mutated_safetensors(content: bytes, seed: int) -> bytes:
    """Damage to a safetensors file: to its header, with the length put right, to the JSON documents
    kept as texts in the header's metadata, or to any bytes."""
    chance = random.Random(seed)
    size = int.from_bytes(content[:8], "little")
    header, rest = content[8 : 8 + size], content[8 + size :]
    if chance.random() < 0.4:
        return mutated(content, seed)
    tree = json.loads(header)
    texts = tree.get("__metadata__", {})
    if texts and chance.random() < 0.6:
        name = chance.choice(sorted(texts))
        damaged = mutated_json(texts[name].encode(), chance.getrandbits(32))
        texts[name] = damaged.decode("utf-8", "replace")
        header = json.dumps(tree).encode("utf-8", "surrogatepass")
    else:
        header = mutated_json(header, chance.getrandbits(32))
    return len(header).to_bytes(8, "little") + header + rest


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError in the main thread when the body computes for longer, or waits for ten times as
    long: a busy machine is no hang."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, late) for number in timers}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _flip(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _cut(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.choice((1, 4, 64, 1024)) :]


def _splice(content: bytes, chance: random.Random) -> bytes:
    """A piece of the content again, somewhere else."""
    start, at = chance.randrange(len(content) + 1), chance.randrange(len(content) + 1)
    piece = content[start : start + chance.choice((1, 8, 64, 1024))]
    return content[:at] + piece + content[at:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(TOKENS) + content[at:]


def _blank(content: bytes, chance: random.Random) -> bytes:
    """Zeros, as a file system leaves them after a power cut."""
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + chance.choice((1, 16, 512, 4096)))
    return content[:start] + bytes(end - start) + content[end:]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    return content + content[: chance.randrange(len(content) + 1)]


BYTE_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _flip,
    _truncate,
    _cut,
    _splice,
    _insert,
    _blank,
    _repeat,
)


def _nested(content: bytes, chance: random.Random) -> bytes:
    """The document with one far too deep, or as a part of one."""
    depth = chance.choice((500, 5_000, 100_000))
    deep = b"[" * depth + b"]" * depth
    if chance.random() < 0.5:
        return deep
    return content.rstrip().removesuffix(b"}") + b', "deep": ' + deep + b"}"


def _changed_tree(tree: Any, chance: random.Random) -> Any:
    """One change somewhere in the tree."""
    inner = [
        (key, value) for key, value in _items(tree) if isinstance(value, dict | list) and value
    ]
    if inner and chance.random() < 0.7:
        key, value = chance.choice(inner)
        tree[key] = _changed_tree(value, chance)
        return tree
    if not isinstance(tree, dict | list) or not tree:
        return _nasty(chance)
    key = chance.choice([key for key, _ in _items(tree)])
    change = chance.choice(("value", "value", "value", "near", "near", "drop", "double", "rename"))
    if change == "value":
        tree[key] = _nasty(chance)
    elif change == "near":
        tree[key] = _near(tree[key], chance)
    elif change == "drop":
        del tree[key]
    elif isinstance(tree, list):
        tree.insert(chance.randrange(len(tree) + 1), copy.deepcopy(tree[key]))
    elif change == "double":
        tree[f"{key}2"] = copy.deepcopy(tree[key])
    else:
        tree[chance.choice(("", "x", f"{key} ", "__class__"))] = tree.pop(key)
    return tree


def _nasty(chance: random.Random) -> Any:
    """A copy: lists and objects may be changed further."""
    return copy.deepcopy(chance.choice(NASTY))


def _items(tree: Any) -> list[tuple[Any, Any]]:
    if isinstance(tree, dict):
        return list(tree.items())
    return list(enumerate(tree)) if isinstance(tree, list) else []


def _near(value: Any, chance: random.Random) -> Any:
    """Another value of the same type: the damage that is hardest to see."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-2, -1, 1, 2, 1000))
    if isinstance(value, float):
        return value * chance.choice((-1.0, 0.5, 1.0000001, 2.0, 1e300))
    if isinstance(value, str):
        at = chance.randrange(len(value) + 1)
        return value[:at] + chance.choice(("", "a", "0", "é", "/")) + value[at + 1 :]
    return [value]

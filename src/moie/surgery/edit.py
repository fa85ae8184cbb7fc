"""`moie edit`: a policy, a file that a person has edited, and the policy they make."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moie.errors import FileError, InputError
from moie.files import check_writable, make_place, read_file, write_bytes
from moie.policy import file as policy_file
from moie.policy.handwork import Record, listed
from moie.policy.mixture import Mixture
from moie.surgery.changes import changes
from moie.surgery.doubts import doubts
from moie.surgery.draft import built
from moie.surgery.from_toml import from_toml
from moie.surgery.price import Price
from moie.surgery.to_toml import mixture, to_toml

LARGEST = 2**20
"""Bytes of a file that a person edits."""
MOST_MOVED = 10
"""Experts whose new numbers are told."""


@dataclass(frozen=True)
class Edited:
    """A policy that was changed by hand. Printed as `moie edit` prints it."""

    path: Path
    """The file of the new policy."""
    policy: Mixture
    changes: tuple[Record, ...]
    """What this edit changed; all that were made before are in `policy.edits` too."""
    numbers: tuple[int | None, ...]
    """The number that each expert had before; None for one that was added."""
    price: Price | None
    """None if no episodes were asked for."""
    doubts: tuple[str, ...] = ()
    """What may not be meant: values that were never visited, weights without effect."""

    def __str__(self) -> str:
        n = len(self.changes)
        count = f"{n or 'no'} change{'s' * (n > 1)} by hand"
        said = [f"  {line}" for line in listed(self.changes, self.policy.labels)]
        moved = [f"{i} was {k}" for i, k in enumerate(self.numbers) if k not in (None, i)]
        if len(moved) > MOST_MOVED:
            moved[MOST_MOVED - 1 :] = [f"and {len(moved) - MOST_MOVED + 1} more"]
        if moved:  # whoever edited the file knows the experts by their ids
            said.append(f"  numbers of experts that were kept are the new ones: {', '.join(moved)}")
        said += [f"  warning: {line}" for line in self.doubts]
        price = [] if self.price is None else [str(self.price)]
        return "\n".join([count, *said, *price, f"policy: {self.path}"])


def edit_run(
    file: Path, toml: Path, out: Path, price_of: Callable[[Mixture, Mixture], Price] | None
) -> Edited:
    """Change the policy of a policy file as the TOML file says. The new one is written when all is
    known to be well, its price included; unchanged, it has the bytes of the old."""
    content = before = policy_file.read(file)
    original = mixture(policy_file.from_bytes(content, file))
    draft = from_toml(_text(toml), original, str(toml))
    new = built(draft, original)
    if new is not original:
        content = policy_file.to_bytes(new)
    is_itself = out.exists() and out.samefile(file)
    check_free(out, content, copy=b"" if is_itself else before)
    price = None if price_of is None else price_of(original, new)
    make_place(out)
    write_bytes(out, content)
    records = tuple(changes(draft, original))
    said = tuple(doubts(new, records))
    return Edited(out, new, records, draft.sources, price, said)


def _text(path: Path) -> str:
    content = read_file(path, LARGEST)
    try:
        return content.decode("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}, line {line}: it is not text in UTF-8") from error


def check_free(
    out: Path, content: bytes, otherwise: str = "choose another --out", copy: bytes = b""
) -> None:
    """InputError unless a policy can be written there. Only one that was changed by hand may be
    replaced, a file by itself, and a `copy` that an edit without changes has written."""
    if out.exists() and not _is_replaceable(out, content, copy):
        raise InputError(f"{out} exists and is not a policy that was edited; {otherwise}")
    check_writable(out)


def _is_replaceable(out: Path, content: bytes, copy: bytes) -> bool:
    with contextlib.suppress(InputError):
        there = policy_file.read(out)
        policy = policy_file.from_bytes(there, out)
        return there in (content, copy) or (isinstance(policy, Mixture) and bool(policy.edits))
    return False


def save_edited(new: Mixture, out: Path, otherwise: str) -> Path:
    """Write a policy, and beside it the TOML file of it; the path of that. A TOML file that
    somebody has changed is not replaced."""
    content, toml = policy_file.to_bytes(new), out.with_suffix(".toml")
    text = f"{to_toml(new)}\n".encode()
    check_free(out, content, otherwise)
    if toml.exists() and not _is_own(toml, out, text):
        raise InputError(f"{toml} exists and was changed since it was written; {otherwise}")
    check_writable(toml)
    make_place(out)
    write_bytes(toml, text)
    write_bytes(out, content)
    return toml


def _is_own(toml: Path, out: Path, text: bytes) -> bool:
    """Whether a TOML file is what was written with the policy beside it, or would be now."""
    with contextlib.suppress(InputError):
        there = read_file(toml, LARGEST)
        return (
            there == text or there == f"{to_toml(mixture(policy_file.load_file(out)))}\n".encode()
        )
    return False

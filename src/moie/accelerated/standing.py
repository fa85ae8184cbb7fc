"""Where the runs of a swarm stand: checkpoints of one moment, from which all continue together."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from moie.accelerated.members import Member
from moie.errors import FileError, InputError
from moie.runs.config import differences
from moie.runs.disk import checkpoint
from moie.runs.disk.checkpoint import Checkpoint
from moie.runs.disk.directory import present
from moie.runs.lifecycle import check_config, check_files

FIRST = 1
"""Iterations of the first moment that is saved."""
Checkpoints = list[Checkpoint | None]
Note = Callable[[str], None]


def checked_checkpoints(path: Path, members: Sequence[Member], note: Note) -> Checkpoints:
    """The checkpoint of each member of a swarm to continue from; None at its beginning. `note` is
    told about damage that does not matter. InputError where continuing would lose or mix up
    something. Nothing is written."""
    last = _last(path, members, note)
    for member, one in zip(members, last, strict=True):
        own, wanted = member.run.read_config(), member.config
        if one is not None:
            check_config(member.run, replace(own, iterations=wanted.iterations), one)
        for name, value, expected in differences(own, wanted):
            raise FileError(
                f"{member.run.config_file} has {name} = {value!r}, expected {expected!r}: the runs "
                "of a swarm differ in their seeds only, after which they are named"
            )
    return last


def _last(path: Path, members: Sequence[Member], note: Note) -> Checkpoints:
    """Each run keeps two checkpoints, and a moment is saved run by run, so that one of the two is
    whole in all of them; but for the first moment."""
    learning = [member for member in members if member.divergence is None]
    saved = [{int(folder.name) for folder in present(m.run.checkpoints)} for m in learning]
    wrong: list[str] = []
    for iteration in sorted(set.intersection(*saved), reverse=True) if saved else ():
        try:
            last = [_checkpoint(member, iteration) for member in members]
        except InputError as error:
            wrong.append(str(error))
            continue
        for member, one in zip(members, last, strict=True):
            check_files(member.run, one, note)
        for line in wrong:
            note(f"{line}; going back to the checkpoint before")
        return last
    if wrong or not all(some <= {FIRST} for some in saved):
        raise FileError(
            f"no checkpoint in {path} is whole in all of its runs: "
            f"{'; '.join(wrong) or 'they are of different iterations'}; bring them back from a "
            "copy, or start another swarm"
        )
    # Killed before the first moment was saved in all of them: it is learned again.
    for member, some in zip(learning, saved, strict=True):
        if not some:
            check_files(member.run, None, note)
    return [None] * len(members)


def _checkpoint(member: Member, iteration: int) -> Checkpoint | None:
    """A member's checkpoint of an iteration; of one that diverged the last, if it has any."""
    if member.divergence is not None:
        folders = present(member.run.checkpoints)
        return checkpoint.load(folders[-1]) if folders else None
    return checkpoint.load(member.run.checkpoints / f"{iteration:06d}")

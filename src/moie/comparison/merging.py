"""Runs of several folders and files, compared as if they all lay in one folder.

The same run in two places counts once: as it is where it went further. Where both went equally far
their numbers should agree; if they do not, the first place counts, and the comparison says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from moie.comparison import collect, curves
from moie.comparison.curves import KEYS, Curves, Overlap
from moie.comparison.learners import Declared, Run, planned_by, runs_of
from moie.comparison.notes.wording import listed

UNNAMED = ("evaluations", "curves")
"""Files that are better called by their folder."""


@dataclass(frozen=True, eq=False)
class Copy:
    """A run as one of the sources has it."""

    source: int
    run: Run
    rows: pd.DataFrame
    """Its evaluations, by the steps that the evaluated policy had learned from."""

    @property
    def n_known(self) -> int:
        """Numbers that are known: newer versions record more."""
        return int(self.rows.notna().to_numpy().sum())


def read(paths: Sequence[Path]) -> Curves:
    """The curves of all of these folders of runs and files of curves."""
    found = [collect.read(path) for path in paths]
    return found[0] if len(found) == 1 else merged(paths, found)


def merged(paths: Sequence[Path], found: Sequence[Curves]) -> Curves:
    """The evaluations of all, and what is known about the runs. `paths`: where they are from."""
    copies: dict[tuple[Any, ...], list[Copy]] = defaultdict(list)
    for source, one in enumerate(found):
        for copy in _copies(source, one):
            copies[copy.run.identity].append(copy)
    kept, overlaps = [], []
    for some in copies.values():
        mine, others = _chosen(some)
        kept += [copy for copy in some if copy.source == mine.source]
        overlaps += [(mine, other) for other in others]
    names = _names(sorted(kept, key=lambda copy: (copy.source, copy.run.name)), paths)
    return Curves(
        rows=_rows(found, names),
        runs=dict(sorted((new, found[i].runs[old]) for (i, old), new in names.items())),
        study=_study([one.study for one in found if one.study is not None]),
        unreadable=tuple(dict.fromkeys(text for one in found for text in one.unreadable)),
        damaged=tuple(dict.fromkeys(text for one in found for text in one.damaged)),
        overlaps=(*_earlier(found, names), *(_overlap(*two, names, paths) for two in overlaps)),
    )


def _copies(source: int, of: Curves) -> list[Copy]:
    rows = of.rows[curves.is_evaluation(of.rows)].sort_values("learned_steps")
    tables = dict(tuple(rows.groupby("run")))
    return [Copy(source, run, tables.get(run.name, rows.iloc[:0])) for run in runs_of(of)]


def _chosen(copies: list[Copy]) -> tuple[Copy, list[Copy]]:
    """The copy of a run that counts, and those in other sources that are shorter or not like it.
    Copies in the source of the chosen one are left to the comparison, which names them."""
    furthest = max(copy.run.reached for copy in copies)
    longest = [copy for copy in copies if copy.run.reached == furthest]
    alike = [copy for copy in longest if _agree(longest[0], copy)]
    mine = max(alike, key=lambda copy: copy.n_known)
    others = [copy for copy in copies if copy.source != mine.source]
    return mine, [copy for copy in others if copy not in alike]


def _agree(one: Copy, other: Copy) -> bool:
    """Whether all numbers that both have are the same, times aside."""
    if not np.array_equal(one.run.at, other.run.at):
        return False
    names = set(one.rows.columns) & set(other.rows.columns) - set(KEYS)
    measured = sorted(name for name in names if not name.startswith("seconds"))
    a, b = (
        copy.rows[measured].to_numpy(dtype=np.float64, na_value=np.nan) for copy in (one, other)
    )
    return bool(((a == b) | np.isnan(a) | np.isnan(b)).all())


def _label(path: Path) -> str:
    """A word for a source."""
    path = path.resolve()
    if path.is_dir():
        return path.name
    return path.parent.name if path.stem in UNNAMED else path.stem


def _names(copies: Iterable[Copy], paths: Sequence[Path]) -> dict[tuple[int, str], str]:
    """New names by source and old name: the old one, with the source before it where another run
    has that."""
    names: dict[tuple[int, str], str] = {}
    taken: set[str] = set()
    for copy in copies:
        name, number = copy.run.name, 2
        if name in taken:
            label = _label(paths[copy.source])
            if label == name:  # the source is the run itself
                label = paths[copy.source].resolve().parent.name
            name = longer = f"{label}/{name}"
            while name in taken:
                name, number = f"{longer}-{number}", number + 1
        names[copy.source, copy.run.name] = name
        taken.add(name)
    return names


def _rows(found: Sequence[Curves], names: dict[tuple[int, str], str]) -> pd.DataFrame:
    """The evaluations of the runs that count, under their new names."""
    tables = []
    for source, one in enumerate(found):
        new = {old: name for (at, old), name in names.items() if at == source}
        rows = one.rows[curves.is_evaluation(one.rows) & one.rows["run"].isin(list(new))]
        rows = rows.assign(run=[new[name] for name in rows["run"]])
        tables.append(curves.typed(pa.Table.from_pandas(rows, preserve_index=False)))
    table = pa.concat_tables(
        [table.replace_schema_metadata() for table in tables], promote_options="default"
    )
    table = table.sort_by([("run", "ascending"), ("learned_steps", "ascending")])
    return curves.as_frame(curves.typed(table))


def _overlap(
    mine: Copy, other: Copy, names: dict[tuple[int, str], str], paths: Sequence[Path]
) -> Overlap:
    return Overlap(
        run=names[mine.source, mine.run.name],
        source=paths[mine.source].as_posix(),
        other=paths[other.source].as_posix(),
        reached=mine.run.reached,
        other_reached=other.run.reached,
    )


def _earlier(found: Sequence[Curves], names: dict[tuple[int, str], str]) -> list[Overlap]:
    """What was said when a source was merged itself, of runs that still count."""
    return [
        replace(overlap, run=names[source, overlap.run])
        for source, one in enumerate(found)
        for overlap in one.overlaps
        if (source, overlap.run) in names
    ]


def _study(studies: list[dict[str, Any]]) -> dict[str, Any] | None:
    """A declaration of all runs that any of the studies wants, each as long as the longest."""
    if not studies:
        return None
    first, *others = studies
    planned: dict[tuple[Any, ...], Declared] = {one.identity: one for one in planned_by(first)}
    is_whole = True
    for one in [one for study in others for one in planned_by(study)]:
        known = planned.get(one.identity)
        if known is None or one.steps > known.steps:
            planned[one.identity], is_whole = one, False
    if is_whole:
        return first
    shared = first["settings"]
    runs = []
    for one in planned.values():
        own = {name: v for name, v in one.settings.items() if shared.get(name) != v}
        runs.append({"run": one.name, "settings": own})
    texts = {
        key: list(dict.fromkeys(study[key] for study in studies if study.get(key)))
        for key in ("name", "description")
    }
    said = {"name": listed(texts["name"]), "description": " ".join(texts["description"])}
    return first | said | {"runs": runs}

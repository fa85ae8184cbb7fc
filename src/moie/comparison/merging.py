"""Runs of several folders and files, compared as if they were all in one folder.

A run that is in two places counts once: the copy that went further. Where both went equally far
their numbers should agree; if they do not, the first place counts, and the comparison says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from moie.comparison import collect, curves
from moie.comparison.checking import StudyFacts, declared
from moie.comparison.curves import KEYS, Curves, Overlap
from moie.comparison.learners import Declared, Run, by_key, plan_of, runs_of
from moie.comparison.notes.wording import joined
from moie.errors import InputError, require
from moie.learn import registry
from moie.runs.config import flat

UNNAMED = ("evaluations", "curves")  # names of files that say less than that of their folder
Names = dict[tuple[int, str], str]  # new names of runs, by source and old name


@dataclass(frozen=True, eq=False)
class Copy:
    """A run as one of the sources has it."""

    source: int
    path: Path  # of the source
    run: Run
    rows: pd.DataFrame  # its evaluations, in the order of steps

    @property
    def key(self) -> tuple[int, str]:
        return self.source, self.run.name

    @property
    def n_known(self) -> int:
        """Numbers that are known: newer versions record more."""
        return int(self.rows.notna().to_numpy().sum())


def read(paths: Sequence[Path]) -> Curves:
    """The curves of all of these folders of runs and files of curves."""
    sources = [collect.read(path) for path in paths]
    return sources[0] if len(sources) == 1 else merged(paths, sources)


def of_algorithms(curves: Curves, names: Sequence[str]) -> Curves:
    """The runs of these algorithms alone, and what a study plans of them; InputError where there
    are none."""
    require(len(names) > 0, "algorithms", list(names), f"some of {', '.join(registry.names())}")
    wanted = {registry.algorithm(name).name for name in names}
    runs = {
        name: facts
        for name, facts in curves.runs.items()
        if flat(facts["config"])["algorithm"] in wanted
    }
    if not runs:
        raise InputError(f"there are no runs of {joined(names)}")
    study = curves.study
    if study is not None:
        planned = zip(study["runs"], declared(study), strict=True)
        kept = [one for one, (_, settings) in planned if settings["algorithm"] in wanted]
        study = {**study, "runs": kept}
    return replace(
        curves,
        rows=curves.rows[curves.rows["run"].isin(list(runs))],
        runs=runs,
        study=study,
        overlaps=tuple(one for one in curves.overlaps if one.run in runs),
    )


def merged(paths: Sequence[Path], sources: Sequence[Curves]) -> Curves:
    """The evaluations of all sources, and the facts about their runs. `paths`: of the sources."""
    copies = by_key(
        (run.identity, Copy(i, path, run, tables[run.name]))
        for i, (path, source) in enumerate(zip(paths, sources, strict=True))
        for tables in [source.evaluations()]
        for run in runs_of(source)
    )
    kept, overlaps = [], []
    for some in copies.values():
        mine, others = _chosen(some)
        kept += [copy for copy in some if copy.source == mine.source]
        overlaps += [(mine, other) for other in others]
    names = _names(sorted(kept, key=lambda copy: copy.key))
    earlier = [  # from when a source was merged itself, of runs that still count
        replace(overlap, run=names[i, overlap.run])
        for i, source in enumerate(sources)
        for overlap in source.overlaps
        if (i, overlap.run) in names
    ]
    newer = [
        Overlap(names[a.key], a.path.as_posix(), b.path.as_posix(), a.run.reached, b.run.reached)
        for a, b in overlaps
    ]
    return Curves(
        rows=_rows(kept, names),
        runs=dict(sorted((new, sources[i].runs[old]) for (i, old), new in names.items())),
        study=_study([one.study for one in sources if one.study is not None]),
        unreadable=tuple(dict.fromkeys(text for one in sources for text in one.unreadable)),
        damaged=tuple(dict.fromkeys(text for one in sources for text in one.damaged)),
        overlaps=(*earlier, *newer),
    )


def _chosen(copies: list[Copy]) -> tuple[Copy, list[Copy]]:
    """The copy of a run that counts, and those in other sources that are shorter or differ from it.
    Further copies in its own source are left to the comparison, which names them."""
    furthest = max(copy.run.reached for copy in copies)
    longest = [copy for copy in copies if copy.run.reached == furthest]
    alike = [copy for copy in longest if _agree(longest[0], copy)]
    mine = max(alike, key=lambda copy: copy.n_known)
    others = [copy for copy in copies if copy.source != mine.source]
    return mine, [copy for copy in others if copy not in alike]


def _agree(one: Copy, other: Copy) -> bool:
    """Whether all numbers that both have are the same, except times."""
    if not np.array_equal(one.run.at, other.run.at):
        return False
    names = set(one.rows.columns) & set(other.rows.columns) - set(KEYS)
    measured = sorted(name for name in names if not name.startswith("seconds"))
    a, b = (
        copy.rows[measured].to_numpy(dtype=np.float64, na_value=np.nan) for copy in (one, other)
    )
    return bool(((a == b) | np.isnan(a) | np.isnan(b)).all())


def label(path: Path) -> str:
    """A word for a source."""
    path = path.resolve()
    if path.is_dir():
        return path.name
    return path.parent.name if path.stem in UNNAMED else path.stem


def _names(copies: Iterable[Copy]) -> Names:
    """The old names, with the source before them where another run has the same."""
    names: Names = {}
    taken: set[str] = set()
    for copy in copies:
        name, number = copy.run.name, 2
        if name in taken:
            word = label(copy.path)
            if word == name:  # the source is the run itself
                word = copy.path.resolve().parent.name
            name = longer = f"{word}/{name}"
            while name in taken:
                name, number = f"{longer}-{number}", number + 1
        names[copy.key] = name
        taken.add(name)
    return names


def _rows(copies: Iterable[Copy], names: Names) -> pd.DataFrame:
    """The evaluations of the runs that count, under their new names."""
    frames = (copy.rows.assign(run=names[copy.key]) for copy in copies)
    rows = curves.concatenated(pa.Table.from_pandas(one, preserve_index=False) for one in frames)
    return rows.sort_values(["run", "learned_steps"], ignore_index=True)


def _study(studies: list[StudyFacts]) -> StudyFacts | None:
    """A declaration of all runs that any of the studies wants, each as long as the longest."""
    if not studies:
        return None
    first, *others = studies
    planned = {one.identity: one for one in plan_of(first)}
    is_whole = True
    for one in [one for study in others for one in plan_of(study)]:
        known = planned.get(one.identity)
        if known is None or one.steps > known.steps:
            planned[one.identity], is_whole = one, False
    if is_whole:
        return first

    def own(run: Declared) -> dict[str, Any]:
        shared = first["settings"]
        return {name: value for name, value in run.settings.items() if shared.get(name) != value}

    descriptions = [one["description"] for one in studies]
    return {
        "format": first["format"],
        "name": joined(dict.fromkeys(one["name"] for one in studies if one["name"])),
        "description": " ".join(dict.fromkeys(filter(None, descriptions))),
        "settings": first["settings"],
        "runs": [{"run": one.name, "settings": own(one)} for one in planned.values()],
    }

"""`moie compare`: curves, facts, figures, page and tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from moie.comparison import curves, merging
from moie.comparison.facts.assembly import make_facts
from moie.comparison.figures import charts
from moie.comparison.page import page
from moie.comparison.tables import markdown
from moie.errors import InputError
from moie.files import as_json, check_replaceable, check_writable, replace_folder
from moie.present.stages import Stages
from moie.present.style import draw_all

PAGE, FACTS, TABLE = "comparison.html", "facts.json", "table.md"
ROWS = "evaluations.parquet"


def compare(
    paths: Path | Sequence[Path],
    out: Path | None = None,
    *,
    steps: int | None = None,
    algorithms: Sequence[str] | None = None,
    progress: Stages | None = None,
    check: Callable[[], None] = lambda: None,
) -> Path:
    """Compare the runs of folders and files of curves together, at their last steps or at `steps`,
    and write a folder, as a whole. `algorithms`: only runs of these; None for all. `check` is
    called now and then and may end it. Returns the page's path."""
    progress = Stages(quiet=True) if progress is None else progress
    paths = [paths] if isinstance(paths, Path) else list(paths)
    out = _target(paths) if out is None else out
    out = out.resolve() if out.is_symlink() else out
    check_replaceable(out, (FACTS, TABLE, ROWS), "a comparison")
    _check_kept(paths, out, algorithms)
    with progress.stage("runs", 1):
        read = merging.read(paths)
        if algorithms is not None:
            read = merging.of_algorithms(read, algorithms)
    check_writable(out)
    check()
    with progress.stage("statistics", 1):
        facts = make_facts(read, merging.label(paths[0] if len(paths) == 1 else out), steps)
    evaluations = replace(read, rows=read.rows[curves.is_evaluation(read.rows)])
    content = {
        FACTS: as_json(facts),
        TABLE: markdown(facts),
        ROWS: curves.to_bytes(evaluations),
    }
    figures, drawings = draw_all(charts.FIGURES, facts, progress, check)
    replace_folder(out, content | figures | {PAGE: page(facts, drawings)})
    return out / PAGE


def _target(paths: list[Path]) -> Path:
    """The folder that is written to without `--out`: in the folder of runs, or beside the file of
    curves. Several sources have none."""
    if len(paths) != 1:
        raise InputError(
            f"--out is missing: a comparison of {len(paths)} folders or files needs a folder to be "
            "written to"
        )
    (path,) = paths
    return path / "comparison" if path.is_dir() else path.with_name(f"{path.stem}-comparison")


def _check_kept(paths: list[Path], out: Path, algorithms: Sequence[str] | None) -> None:
    """Refuse to replace a folder with sources in it, except the evaluations, which are written
    again, and those only as a whole."""
    home = out.resolve()
    for path in paths:
        there = path.resolve()
        if there == home / ROWS:
            found = curves.read(path)
            if lost := found.left_out:
                raise InputError(
                    f"{path} would be replaced, and has runs that cannot be read: "
                    f"{', '.join(lost)}; choose another --out"
                )
            kept = found if algorithms is None else merging.of_algorithms(found, algorithms)
            if lost := tuple(sorted(set(found.runs) - set(kept.runs))):
                raise InputError(
                    f"{path} would be replaced, and has runs of other algorithms: "
                    f"{', '.join(lost)}; choose another --out"
                )
        elif home in (there, *there.parents):
            raise InputError(f"{path} is in {out}, which would be replaced; choose another --out")

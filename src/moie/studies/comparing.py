"""`moie compare`: curves, facts, figures, page and tables."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from moie.explain.drawing import draw_all
from moie.runs.files import as_json, check_replaceable, check_writable, replace_folder
from moie.runs.progress import Stages
from moie.studies import curves, figures, gathering
from moie.studies.comparison import gather
from moie.studies.curves import Curves
from moie.studies.page import page
from moie.studies.tables import markdown

PAGE, FACTS, TABLE = "comparison.html", "facts.json", "table.md"
ROWS = "evaluations.parquet"


def compare(
    path: Path,
    out: Path | None = None,
    *,
    steps: int | None = None,
    progress: Stages | None = None,
    check: Callable[[], None] = lambda: None,
) -> Path:
    """Compare the runs at or below a folder, or those in a file of curves, at their last steps or
    at `steps`; write a folder, as a whole. `check` is called now and then and may end it. Returns
    the page's path."""
    progress = Stages(quiet=True) if progress is None else progress
    out = _target(path) if out is None else out
    out = out.resolve() if out.is_symlink() else out
    check_replaceable(out, (FACTS, TABLE, ROWS), "a comparison")
    with progress.stage("runs", 1):
        found = gathering.read(path)
    check_writable(out)
    check()
    with progress.stage("statistics", 1):
        facts = gather(found, path.resolve().name, steps)
    content = {FACTS: as_json(facts), TABLE: markdown(facts), ROWS: _evaluations(found)}
    drawn = draw_all(figures.FIGURES, facts, content, progress, check)
    content[PAGE] = page(facts, drawn)
    replace_folder(out, content)
    return out / PAGE


def _target(path: Path) -> Path:
    """In a folder of runs, or beside a file of curves."""
    return path / "comparison" if path.is_dir() else path.with_name(f"{path.stem}-comparison")


def _evaluations(found: Curves) -> bytes:
    """The rows that measure a policy, as a file of curves."""
    rows = found.rows[curves.is_evaluation(found.rows)]
    return curves.to_bytes(replace(found, rows=rows))

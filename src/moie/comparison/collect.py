"""The curves of all runs in a folder."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from moie.comparison import checking, curves
from moie.comparison.curves import ATTENTION, Curves, as_frame
from moie.comparison.notes.wording import printable
from moie.errors import FileError, InputError
from moie.files import parse_json, read_bytes, reading
from moie.runs.config import to_json
from moie.runs.disk.directory import RunDirectory, load_policy
from moie.runs.disk.metrics import Metrics, learned_steps
from moie.runs.disk.metrics import read as read_metrics

CURVES_FILE = "curves.parquet"


def read(path: Path) -> Curves:
    """The curves of a folder of runs, or of a file of curves."""
    if path.is_dir():
        return read_runs(path)
    if not path.exists():
        raise FileError(f"there is no folder of runs or file of curves at {path}")
    return curves.read(path)


def run_directories(folder: Path) -> list[Path]:
    """All runs at or below a folder, in order, each once. Hidden folders are what a killed process
    left behind."""
    runs, visited = [], set()
    # `rglob` would fail where folders change in the meantime
    for path, folders, files in os.walk(folder, followlinks=True):
        here = os.path.realpath(path)
        if here in visited or "run.json" in files:
            folders.clear()
        if here not in visited and "run.json" in files:
            runs.append(Path(path))
        visited.add(here)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return sorted(runs)


def read_runs(folder: Path) -> Curves:
    """The curves of every run at or below a folder."""
    paths = run_directories(folder)
    if not paths:
        raise FileError(f"there are no runs in {folder}")
    tables, runs, unreadable, damaged = [], {}, [], []
    for path in paths:
        within = path.relative_to(folder).as_posix() if path != folder else folder.resolve().name
        name = printable(within)
        try:
            run = RunDirectory.open(path)
            metrics = read_metrics(run.metrics_file)
            table, runs[name] = _read_run(run, name, metrics)
            tables.append(table)
        except InputError as error:
            unreadable.append(str(error).replace(str(path), name))
            continue
        damaged += [f"{name}/{run.metrics_file.name}, {problem}" for problem in metrics.problems]
    rows, study = curves.concatenated(tables), _read_study(folder)
    return Curves(rows, runs, study, tuple(unreadable), damaged=tuple(damaged))


def _parameters(run: RunDirectory) -> int | None:
    if run.policy_file.exists():
        with contextlib.suppress(InputError):  # the curve counts even if the policy is damaged
            return load_policy(run.policy_file).n_parameters
    return None


def _read_run(run: RunDirectory, name: str, metrics: Metrics) -> tuple[pa.Table, checking.RunFacts]:
    """Its rows, and the facts about it."""
    config = run.read_config()
    content = {"config": to_json(config), "versions": run.started_with(), "host": run.started_on()}
    with reading(f"{run.config_file} cannot be read"):
        facts = checking.check_facts(json.loads(json.dumps(content)))
    learner = config.learner
    keys = {
        "run": name,
        "task": config.task,
        "algorithm": learner.algorithm,
        "experts": learner.policy.experts if learner.has_experts else None,
        "seed": config.seed,
        "parameters": _parameters(run),
    }
    try:
        table = _rows(metrics, config.batch_steps, keys)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise FileError(f"{run.metrics_file} cannot be read: {error!r}") from error
    for fault in curves.faults(as_frame(table), {name: facts}).values():
        raise FileError(f"{run.metrics_file} cannot be read: {fault}")
    return table, facts


def _rows(metrics: Metrics, batch_steps: int, keys: dict[str, Any]) -> pa.Table:
    """The rows of a run's metrics, with `keys` as further columns."""
    rows = pd.DataFrame(metrics.rows)
    if rows.empty:
        return curves.EMPTY
    # A row evaluates the policy that sampled the iteration's batch, not the one after it.
    rows["learned_steps"] = learned_steps(metrics.rows, batch_steps)
    if "attention" in rows:  # that of the policy after the iteration
        attention = dict(zip(rows["iteration"], rows["attention"], strict=True))
        rows[ATTENTION] = [attention.get(at - 1) for at in rows["iteration"]]
    return curves.typed(pa.Table.from_pandas(rows.assign(**keys), preserve_index=False))


def _read_study(folder: Path) -> checking.StudyFacts | None:
    """The declaration that a study left in its folder."""
    file = folder / checking.STUDY_FILE
    with reading(f"{file} cannot be read"):
        content = parse_json(read_bytes(file)) if file.exists() else None
        if not isinstance(content, dict) or content.get("format") != checking.STUDY_FORMAT:
            return None  # other programs have studies, too
        return checking.check_study(content)

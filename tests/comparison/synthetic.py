"""Curves of runs that nobody made: returns rise with the steps, and differ between seeds."""

import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from moie.comparison.curves import Curves, Overlap, to_bytes
from moie.learn import registry
from moie.runs.config import RunConfig, from_json, to_json, with_settings
from moie.studies.conduct import declaration
from moie.studies.declaration import Planned, Study

BATCH = 5000
SETTINGS: dict[str, Any] = {"iterations": 20, "batch_steps": BATCH, "evaluation_every": 2}
SETTINGS |= {"standardise": False, "actions": "raw"}
LEVELS = {"moie": 60.0, "ppo": 100.0, "trpo": 90.0}
"""Where an algorithm's return ends, about."""
PARAMETERS = {"moie": 71, "ppo": 4610, "trpo": 4610, "trpo-linear": 6}
WALKER = "HopperBulletEnv-v0"
"""A task with distances."""
Run = tuple[str, dict[str, Any], pd.DataFrame]


def config(task: str, algorithm: str, seed: int, **settings: Any) -> dict[str, Any]:
    """As run.json and study.json have it."""
    changes = SETTINGS | {"algorithm": algorithm, "seed": seed} | settings
    return json.loads(json.dumps(to_json(with_settings(RunConfig(task), changes))))


def run(
    task: str = "Walk-v0",
    algorithm: str = "moie",
    seed: int = 0,
    *,
    name: str = "",
    done: int | None = None,
    records_attention: bool = True,
    versions: dict[str, str] | None = None,
    host: dict[str, Any] | None = None,
    **settings: Any,
) -> Run:
    """One run, with `done` iterations complete: all, if not given. Old versions did not record
    attention."""
    known = config(task, algorithm, seed, **settings)
    name = name or f"{task}/{algorithm}-k{known['learner']['policy']['experts']}/s{seed}"
    rng = np.random.default_rng(zlib.crc32(f"{task} {algorithm} {seed} {settings}".encode()))
    total, every = known["iterations"], known["evaluation"]["evaluation_every"]
    done = total if done is None else done
    batch, level = known["batch_steps"], LEVELS.get(algorithm, 40.0) + rng.normal(0, 8)
    has_lines = records_attention and registry.algorithm(algorithm).has_experts
    rows = []
    for iteration in range(done + (done == total)):
        is_last = iteration == total
        row = {
            "iteration": iteration,
            "steps": batch * min(iteration + 1, total),
            "learned_steps": batch * iteration,
            "kl": None if is_last else 0.01,
        }
        if is_last or (every and iteration % every == 0):
            share = iteration / total
            row["return_sampled"] = float(level * share + rng.normal(0, 3))
            row["return_mean"] = float(level * share + rng.normal(5, 3))
            if has_lines and iteration:  # what was not learned yet is not measured
                row["evaluated_attention"] = 1.0 + 3.0 * (1 - 0.9 * share) + 0.1 * seed
            if task == WALKER:
                row |= {"distance_sampled": 9.0 * share, "distance_mean": 10.0 * share}
        rows.append(row)
    table = pd.DataFrame(rows).assign(
        run=name,
        task=task,
        algorithm=algorithm,
        experts=known["learner"]["policy"]["experts"],
        seed=seed,
        parameters=PARAMETERS.get(algorithm, 71),
    )
    facts = {"config": known, "versions": versions or {"moie": "0.1.0"}, "host": host or {}}
    return name, facts, table


def curves(runs: list[Run], plan: list[dict[str, Any]] | None = None) -> Curves:
    """All of them together; `plan`: the configurations that a study declares."""
    filled = [table for _, _, table in runs if len(table)]
    rows = pd.concat(filled, ignore_index=True).convert_dtypes(dtype_backend="pyarrow")
    study = None
    if plan is not None:
        planned = [Planned(f"r{i}", from_json(one)) for i, one in enumerate(plan)]
        study = declaration(Study("small", (), "A test."), planned)
    return Curves(rows, {name: facts for name, facts, _ in runs}, study)


def grid(
    tasks: tuple[str, ...] = ("Swing-v0", "Walk-v0"),
    algorithms: tuple[str, ...] = ("moie", "ppo", "trpo"),
    seeds: range = range(4),
    **settings: Any,
) -> list[Run]:
    """All combinations."""
    return [run(t, a, s, **settings) for t in tasks for a in algorithms for s in seeds]


def file() -> bytes:
    """A file of curves with all that one can have."""
    runs = [*grid(("Swing-v0", WALKER), ("moie", "ppo"), range(3)), run("Swing-v0", seed=9, done=5)]
    found = curves(runs, [config("Swing-v0", "moie", seed) for seed in range(4)])
    overlap = Overlap(runs[0][0], "a", "b", 100_000, 100_000)
    return to_bytes(replace(found, unreadable=("c: no configuration",), overlaps=(overlap,)))


def rewritten(content: bytes, metadata: bytes, table: pa.Table | None = None) -> bytes:
    """The file with another metadata or other rows."""
    found = pq.read_table(pa.BufferReader(content)) if table is None else table
    sink = pa.BufferOutputStream()
    pq.write_table(found.replace_schema_metadata({"moie": metadata}), sink)
    return sink.getvalue().to_pybytes()

"""Run directories damaged at random: what is read is valid or an InputError, soon, and damage to
one run takes nothing away from a comparison of many. The long part is marked slow."""

import itertools
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moie.comparison import collect
from moie.errors import InputError
from moie.runs.config import RunConfig
from moie.runs.disk import checkpoint, metrics
from moie.runs.disk.directory import RunDirectory
from moie.runs.lifecycle import check_config, last_checkpoint
from moie.studies.declaration import Planned
from moie.studies.status import damage, look, misfits
from tests import tiny
from tests.fuzzing import (
    at_most,
    mutated,
    mutated_json,
    mutated_lines,
    mutated_safetensors,
)

LIMIT = 2.0  # seconds
PARTS = [pytest.param(60, id="few"), pytest.param(None, id="many", marks=pytest.mark.slow)]
OLD = tiny.ROOT / "tests" / "data" / "run-0.1.0"


@pytest.fixture
def folder(pendulum: Path, tmp_path: Path) -> Path:
    """A run to damage, and one that stays whole."""
    for name in ("damaged", "whole"):
        tiny.copy(pendulum, tmp_path / "runs" / name)
    return tmp_path / "runs"


def fuzz(file: Path, count: int, damaged: Callable[[bytes, int], bytes], read: Callable) -> Counter:
    """Damage a file so many times and read it; how often it was valid and how often refused."""
    whole, ends = file.read_bytes(), Counter[str]()
    for seed in range(count):
        file.write_bytes(damaged(whole, seed))
        said = ""
        try:
            with at_most(LIMIT):
                read()
        except InputError as error:
            said = str(error)
        except BaseException as error:
            raise AssertionError(f"seed {seed} of {file.name}: {error!r}") from error
        assert "\n" not in said, f"seed {seed}"
        assert len(said) < 3000, f"seed {seed}"
        ends["refused" if said else "valid"] += 1
    file.write_bytes(whole)
    read()
    print(f"\n{file.name}: {count} damaged, {dict(ends)}")
    return ends


# --- checkpoints ---------------------------------------------------------------------------------


def signed(content: bytes, seed: int) -> bytes:
    """A damaged checkpoint.json whose digest fits, so that what is behind it is tested, too."""
    found = mutated_json(content, seed)
    try:
        note = json.loads(found)
        return json.dumps(note | {"digest": checkpoint._digest_of_note(note)}).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return found


@pytest.mark.parametrize("count", PARTS)
def test_checkpoints(count: int | None, folder: Path, tmp_path: Path) -> None:
    """10,000 in the long part: the note as it is, with a digest that fits, of the first version,
    and the files."""
    each = 2500 if count is None else count // 4
    path = folder / "damaged" / "checkpoints" / "000004"
    old = tiny.copy(OLD, tmp_path / "old") / "checkpoints" / "000002"

    def read(path: Path) -> Callable[[], None]:
        def check() -> None:
            found = checkpoint.load(path)
            done = found.counters.iteration
            assert done == int(path.name) == found.policy.trained["iterations"]
            assert found.counters.steps == 128 * done
            assert math.isfinite(found.counters.seconds)
            assert all(np.isfinite(array).all() for array in found.learner.values())

        return check

    ends = fuzz(path / "checkpoint.json", each, mutated_json, read(path))
    assert ends["refused"] > 0.9 * each
    fuzz(path / "checkpoint.json", each, signed, read(path))
    fuzz(old / "checkpoint.json", each, mutated_json, read(old))
    for name, damaged in (("learner", mutated), ("policy", mutated_safetensors)):
        ends = fuzz(path / f"{name}.safetensors", each // 2, damaged, read(path))
        assert ends["refused"] > 0.9 * (each // 2)


@pytest.mark.parametrize("count", PARTS)
def test_files_of_a_checkpoint_whose_digests_fit(count: int | None, folder: Path) -> None:
    """What a digest lets through is looked at all the same."""
    path = folder / "damaged" / "checkpoints" / "000004"
    note = json.loads((path / "checkpoint.json").read_bytes())

    def read() -> None:
        note["sha256"]["learner.safetensors"] = checkpoint._digest(
            (path / "learner.safetensors").read_bytes()
        )
        note["digest"] = checkpoint._digest_of_note(note)
        (path / "checkpoint.json").write_text(json.dumps(note))
        found = checkpoint.load(path)
        assert all(np.isfinite(array).all() for array in found.learner.values())

    fuzz(path / "learner.safetensors", count or 1000, mutated_safetensors, read)


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", PARTS)
def test_configurations(count: int | None, folder: Path) -> None:
    """10,000 in the long part. A run with iterations goes on only with what it was started with."""
    run = RunDirectory(folder / "damaged")
    config = run.read_config()
    found = checkpoint.load(run.checkpoints / "000004")
    seeds = itertools.count()

    def read() -> None:
        read_config = run.read_config()
        assert isinstance(read_config, RunConfig)
        run.started_with(), run.started_on()
        try:
            check_config(run, read_config, found)
            assert read_config.iterations != config.iterations or read_config == config
        except InputError:
            assert read_config != config
        if next(seeds) % 20 == 0:
            check_others(folder)

    fuzz(run.config_file, count or 10_000, mutated_json, read)


def check_others(folder: Path) -> None:
    """The comparison has the other run, and the study says how it is."""
    found = collect.read_runs(folder)
    assert "whole" in found.runs
    assert len(found.rows[found.rows["run"] == "whole"]) == 5
    assert len(found.runs) + len(found.unreadable) == 2
    config = RunDirectory(folder / "whole").read_config()
    planned = [Planned(name, config) for name in ("damaged", "whole")]
    assert look(folder, planned[1]).state == "done"
    look(folder, planned[0])
    damage(folder, planned[0])
    assert not any("whole" in text for text in misfits(folder, planned).lines)


# --- metrics -------------------------------------------------------------------------------------


def longest_rise(numbers: list[int]) -> int:
    """Length of the longest rising sequence among the numbers, in their order."""
    ends: list[int] = []
    for i, number in enumerate(numbers):
        ends.append(1 + max((ends[j] for j in range(i) if numbers[j] < number), default=0))
    return max(ends, default=0)


@pytest.mark.parametrize("count", PARTS)
def test_metrics(count: int | None, folder: Path) -> None:
    """5,000 in the long part."""
    run = RunDirectory(folder / "damaged")
    shutil.rmtree(run.path / "tensorboard")
    whole, seeds = metrics.read(run.metrics_file).lines, itertools.count()

    def read() -> None:
        found = metrics.read(run.metrics_file)
        numbers = [row["iteration"] for row in found.rows]
        assert numbers == sorted(set(numbers))
        # What is still there, and in order, counts: one line's damage is one line's.
        there = [whole.index(line) for line in found.lines if line in whole]
        assert len(found.rows) >= longest_rise(there)
        assert len(found.problems) >= bool(found.damaged)
        assert len(found.by_line) + len(found.damaged) == sum(bool(x.strip()) for x in found.lines)
        last_checkpoint(run, lambda text: None)
        if next(seeds) % 10 == 0:
            check_others(folder)

    fuzz(run.metrics_file, count or 5000, mutated_lines, read)

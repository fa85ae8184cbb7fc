"""metrics.jsonl and TensorBoard: every iteration once, readable at any moment."""

import json
import struct
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from moie.runs.records import Records, read


def records(folder: Path, iteration: int) -> Records:
    return Records(folder / "metrics.jsonl", folder / "tensorboard", iteration)


def row(iteration: int) -> dict:
    return {"iteration": iteration, "steps": 100 * iteration, "kl": 0.01, "entropy_floor": None}


def write(folder: Path, first: int, *rows: dict) -> None:
    some = records(folder, first)
    for one in rows:
        some.write(one)
    some.close()


def events(file: Path) -> list[Event]:
    """TensorBoard's format: length, its checksum, the event, its checksum."""
    content, found = file.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        found.append(Event.FromString(content[12 : 12 + length]))
        content = content[16 + length :]
    return found


def test_rows_are_on_disk_as_soon_as_they_are_written(tmp_path: Path) -> None:
    some = records(tmp_path, 0)
    for iteration in range(3):
        some.write(row(iteration))
        assert read(tmp_path / "metrics.jsonl") == [row(i) for i in range(iteration + 1)]
    some.close()


def test_rows_of_iterations_that_were_not_completed_go(tmp_path: Path) -> None:
    write(tmp_path, 0, row(0), row(1), row(2))
    write(tmp_path, 2, row(2), row(3))
    assert read(tmp_path / "metrics.jsonl") == [row(i) for i in range(4)]


@pytest.mark.parametrize(
    "rest", ['{"iteration": 2, "st', "\n", "null\n", "[1]\n", '{"steps": 3}\n', "\udcff\udcfe"]
)
def test_a_half_written_last_line_is_dropped(rest: str, tmp_path: Path) -> None:
    write(tmp_path, 0, row(0), row(1))
    file = tmp_path / "metrics.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + rest.encode(errors="surrogateescape"))
    assert read(file) == [row(0), row(1)]
    write(tmp_path, 2)
    assert file.read_bytes() == whole


def test_no_metrics_are_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path / "metrics.jsonl") == []


def test_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    write(tmp_path, 0, row(0) | {"kl": float("nan"), "entropy": float("inf")})
    text = (tmp_path / "metrics.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["kl"] is None
    assert json.loads(text)["entropy"] is None


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    write(tmp_path, 3, row(3), row(4))
    (file,) = (tmp_path / "tensorboard").iterdir()
    assert file.name.startswith("events.out.tfevents.")
    version, start, *rows = events(file)
    assert version.file_version == "brain.Event:2"
    assert (start.session_log.status, start.step) == (SessionLog.START, 3)
    assert [event.step for event in rows] == [3, 4]
    numbers = {value.tag: value.simple_value for value in rows[1].summary.value}
    assert numbers == pytest.approx({"time/steps": 400, "trust_region/kl": 0.01})


def test_a_trained_run_has_tensorboard_events(pendulum: Path) -> None:
    (file,) = (pendulum / "tensorboard").iterdir()
    found: dict[str, list] = {}
    for event in events(file):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    metrics = read(pendulum / "metrics.jsonl")
    kl = [(r["iteration"], pytest.approx(r["kl"])) for r in metrics if "kl" in r]
    assert found["trust_region/kl"] == kl
    assert [step for step, _ in found["return/return_sampled"]] == [0, 2, 4]

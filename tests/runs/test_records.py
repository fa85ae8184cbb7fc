"""metrics.jsonl and TensorBoard: every iteration once, readable at any moment."""

import json
import os
import struct
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from moie.errors import InputError
from moie.runs.disk.metrics import Records, learned_steps, read


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
        assert read(tmp_path / "metrics.jsonl").rows == [row(i) for i in range(iteration + 1)]
    some.close()


def test_rows_of_iterations_that_were_not_completed_go(tmp_path: Path) -> None:
    write(tmp_path, 0, row(0), row(1), row(2))
    write(tmp_path, 2, row(2), row(3))
    assert read(tmp_path / "metrics.jsonl").rows == [row(i) for i in range(4)]


@pytest.mark.parametrize(
    "rest", ['{"iteration": 2, "st', "null", "[1]", '{"steps": 3}', "\udcff\udcfe", "\0\0"]
)
def test_a_half_written_last_line_is_dropped(rest: str, tmp_path: Path) -> None:
    write(tmp_path, 0, row(0), row(1))
    file = tmp_path / "metrics.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + rest.encode(errors="surrogateescape"))
    found = read(file)
    assert (found.rows, found.problems) == ([row(0), row(1)], [])
    write(tmp_path, 2)
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("null", "it is None, expected an object"),
        ('{"iteration": 2, "st', "Unterminated string"),
        ('{"iteration": 2}', "'steps' is missing"),
        ('{"iteration": true, "steps": 200}', "iteration is True, expected a number"),
        ('{"iteration": 2, "steps": -1}', "steps is -1, expected a whole number"),
        ('{"iteration": 2, "steps": 200, "kl": "low"}', "kl is 'low', expected a number"),
        ('{"iteration": 2, "steps": 200, "kl": NaN}', "kl is nan, expected a number"),
        (f'{{"iteration": 2, "steps": {"9" * 400}}}', "steps is 99999"),
        (f'{{"iteration": 2, "steps": {"9" * 5000}}}', "integer string conversion"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"iteration": 0, "steps": 200}', "iteration 0 is out of order"),
        ('{"iteration": 700, "steps": 200}', "iteration 700 is out of order"),
        ('{"iteration": 2, "steps": 200, "\\ud800": 1}', "expected the name of a number"),
        ("\udcff\udcfe\0", "decode"),
    ],
)
def test_a_damaged_line_takes_no_other_away(line: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    rows = [json.dumps(row(i)) for i in range(5)]
    content = "\n".join([*rows[:2], line, *rows[3:], ""]).encode(errors="surrogateescape")
    file.write_bytes(content)
    found = read(file)
    assert found.rows == [row(0), row(1), row(3), row(4)]
    damage, gap = found.problems
    assert damage.startswith("line 3 cannot be read: ")
    assert why in damage
    assert len(damage) < 600
    assert gap == "iteration 2 is missing"
    # Going on deletes nothing, and does again only what comes after.
    write(tmp_path, 5, row(5))
    assert file.read_bytes() == content + json.dumps(row(5)).encode() + b"\n"
    write(tmp_path, 4, row(4))
    assert file.read_bytes() == content
    assert learned_steps(found.rows, 100) == [0, 0, 200, 300]


def test_much_damage_is_said_briefly(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("x\n" * 1000 + json.dumps(row(7)) + "\n")
    *lines, more, gap = read(tmp_path / "metrics.jsonl").problems
    assert len(lines) == 3
    assert more == "997 more lines that cannot be read"
    assert gap == "iterations 0 to 6 are missing"


def test_what_is_not_a_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(InputError, match=r"metrics.jsonl cannot be read: it is not a regular file"):
        read(tmp_path / "metrics.jsonl")


def test_no_metrics_are_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path / "metrics.jsonl").rows == []


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
    metrics = read(pendulum / "metrics.jsonl").rows
    kl = [(r["iteration"], pytest.approx(r["kl"])) for r in metrics if "kl" in r]
    assert found["trust_region/kl"] == kl
    assert [step for step, _ in found["return/return_sampled"]] == [0, 2, 4]

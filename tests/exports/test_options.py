"""Options of an export that are refused, and nothing is written."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import moie
from moie.cli.main import main
from tests import tiny
from tests.exports.states import MIXTURE
from tests.exports.targets import tool


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--name 2legs", "name is '2legs', expected a letter, then letters, digits"),
        ("--name left-leg", "name is 'left-leg', expected a letter"),
        ("--name ../leg", "name is '../leg', expected a letter"),
        ("--name größe", "name is 'größe', expected a letter"),
        (f"--name {'x' * 61}", "digits and underscores of ASCII, at most 60"),
        ("--name int", "name is 'int', expected another name: this is a keyword of C"),
        ("--name lambda", "expected another name: this is a keyword of Python"),
        ("--name Main", "name is 'Main', expected another name: this is a file of every"),
        ("--name stdio", "expected another name: this is a header of C's library"),
        ("--name os", "expected another name: this is a module of Python's library"),
        ("--safe-action 1 2", "safe_action has 2 numbers, expected 1: "),
        ("--safe-action -9e-1 -1", "safe_action has 2 numbers, expected 1: "),
        ("--safe-action 2.5", " is 2.5, expected a number from -2 to 2, the action range"),
        ("--safe-action nan", " is nan, expected a number from -2 to 2, the action range"),
        ("--to onnx --safe-action 1", "safe_action is given, but a model has no guard"),
        ("--to onnx --feature-range a 0 1", "feature_ranges is given, but a model has no"),
        ("--feature-range arm 0 1", "a name in feature_ranges is 'arm', expected one of cos"),
        ("--feature-range ANGLE 1 1", "expected two numbers within 1e+60, the lower one first"),
        ("--feature-range ANGLE nan 1", "expected two numbers within 1e+60"),
        ("--feature-range ANGLE 0 1 --feature-range ANGLE 0 2", "more than once, expected one"),
        (
            "--precision double --feature-range ANGLE 1.00000001 1.00000002",
            "the ranges of the features hold no number in single precision, expected wider ranges",
        ),
        ("--check nowhere --name leg", "--check takes the folder of an export and nothing else"),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(
    words: str, expected: str, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    out = moie.export(MIXTURE, "python", out=tmp_path / "out")
    before = tiny.contents(out)
    given = shlex.split(words.replace("ANGLE", "'cos of angle'"))
    to = [] if "--to" in given or "--check" in given else ["--to", "c"]
    to += [] if "--check" in given else [str(MIXTURE), "--out", str(out)]
    assert main(["export", *to, *given]) == 2
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("moie: ")
    assert expected in said.err
    assert tiny.contents(out) == before
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"name": 5}, "name is 5, expected a letter"),
        ({"name": ""}, "name is '', expected a letter"),
        ({"safe_action": "left"}, "safe_action is 'left', expected numbers"),
        ({"safe_action": []}, "safe_action has 0 numbers, expected 1: "),
        ({"feature_ranges": {"cos of angle": 1}}, "the range of 'cos of angle' is 1, expected two"),
        ({"feature_ranges": {"cos of angle": (-1, 1e61)}}, "expected two numbers within 1e+60"),
        ({"feature_ranges": [1]}, "feature_ranges is [1], expected names with two numbers each"),
    ],
)
def test_bad_options_in_python_are_named_and_nothing_is_written(
    options: dict, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(moie.InputError) as caught:
        moie.export(MIXTURE, "c", out=tmp_path / "out", **options)
    assert expected in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_feature_with_a_range_has_a_name_of_its_own(tmp_path: Path) -> None:
    policy = tiny.policy("pendulum", feature_names=("a", "a", "b"))
    with pytest.raises(moie.InputError, match="names 'a', which several of the features"):
        moie.export(policy, "c", out=tmp_path / "out", feature_ranges={"a": (0, 1)})


def test_a_sum_that_single_precision_cannot_hold(tmp_path: Path) -> None:
    """Each number of the policy fits, but actions might be computed as NaN."""
    tool("gcc")
    policy = tiny.policy("pendulum", weights=np.full(3, 3e37))
    with pytest.raises(moie.InputError, match=r"hold 9e\+37, one of the policy's sums"):
        moie.export(policy, "c", out=tmp_path / "out")
    assert "agree" in moie.check_export(
        moie.export(policy, "c", out=tmp_path / "out", precision="double")
    )

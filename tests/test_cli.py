"""The command line as a user types it: bad input is one line, exit code 2, and writes nothing."""

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moie
from moie.cli import main
from moie.policy import file as policy_file
from tests import probes, tiny
from tests.simulators import needs

Refused = Callable[..., str]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> Refused:
    """Runs a command that must be refused; the line it says."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)

    def check(*words: str) -> str:
        before = tiny.contents(tmp_path)
        assert main.main(list(words)) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert said.err.startswith("moie: ")
        assert said.err.count("\n") == 1, said.err
        assert tiny.contents(tmp_path) == before
        assert os.listdir(place) == []
        return said.err

    return check


def output(capfd: pytest.CaptureFixture, *words: str) -> str:
    assert main.main(list(words)) == 0
    return capfd.readouterr().out


def save(path: Path, task: str, **changes: Any) -> str:
    path.write_bytes(policy_file.to_bytes(tiny.policy(task, **changes)))
    return str(path)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train Hoper-v5", "unknown environment 'Hoper-v5'; nearest: Hopper-v5"),
        ("train cheetah", "halfcheetah"),
        ("train no_such_module:Env-v0", "cannot import 'no_such_module'"),
        ("train tests.probes:Discrete-v0", "the actions are Discrete(2); expected a Box"),
        ("train tests.probes:Dict-v0", "the observations are Dict('a': Box("),
        ("train tests.probes:Unbounded-v0", "its bounds are not finite, expected finite ones"),
        ("train tests.probes:Broken-v0", "ZeroDivisionError: it can not even be made"),
        ("train", "the task is missing: moie train TASK"),
        ("train --experts 3", "the task is missing: moie train TASK"),
        ("train pendulum --experts 0", "experts is 0, expected at least 1"),
        ("train pendulum --experts -3", "experts is -3, expected at least 1"),
        (
            "train pendulum --experts 9 --batch-steps 8",
            "experts is 9, expected no more than batch_steps (8)",
        ),
        ("train pendulum --experts ten", "--experts: invalid literal for int()"),
        ("train pendulum --experts", "Missing value for argument '--experts'"),
        ("train pendulum --exprets 3", "Unrecognized options: --exprets, 3; nearest: --experts"),
        ("train pendulum hopper", "Unrecognized options: hopper"),
        ("train pendulum --seed -1", "seed is -1, expected zero or more"),
        ("train pendulum --workers 0", "workers is 0, expected at least 1"),
        ("train pendulum --worker-timeout 0", "worker_timeout is 0.0, expected a positive"),
        ("train pendulum --steps 0", "steps is 0, expected at least 1"),
        ("train pendulum --steps -3", "steps is -3, expected at least 1"),
        ("train pendulum --steps 1.5", "steps is '1.5', expected a whole number, at least 1"),
        ("train pendulum --steps 1e999", "steps is '1e999', expected a whole number, at least 1"),
        ("train pendulum --steps many", "steps is 'many', expected a whole number, at least 1"),
        ("train pendulum --bound nan", "bound is nan, expected a positive number"),
        ("train pendulum --hidden 8 x", "Error parsing --hidden"),
        ("resume", "Missing from moie resume"),
        ("resume nowhere", "nowhere is not a run: there is no run.json in it"),
        ("resume .", ". is not a run: there is no run.json in it"),
        ("evaluate nowhere", "there is no run or policy file at nowhere"),
        ("evaluate nowhere --episodes 0", "episodes is 0, expected at least 1"),
        ("evaluate nowhere --seed -1", "seed is -1, expected zero or more"),
        ("evaluate nowhere --workers 0", "workers is 0, expected at least 1"),
        ("show nowhere", "there is no run or policy file at nowhere"),
        ("explain nowhere", "there is no run or policy file at nowhere"),
        ("explain nowhere --episodes 1", "episodes is 1, expected at least 2"),
        ("explain nowhere --loss 1", "loss is 1.0, expected zero or more, below 1"),
        ("explain nowhere --state here", "there is no run or policy file at nowhere"),
        ("prune nowhere", "there is no run or policy file at nowhere"),
        ("prune nowhere --loss -0.1", "loss is -0.1, expected zero or more, below 1"),
        (
            "prune nowhere --most-episodes 5",
            "most_episodes is 5, expected at least 10, as many as episodes",
        ),
        ("prune nowhere --workers 0", "workers is 0, expected at least 1"),
        ("tasks please", "moie tasks takes no arguments, got 'please'"),
        ("trian pendulum", "unknown command 'trian'; did you mean 'train'?"),
        ("zzz", "unknown command 'zzz'; commands are train, swarm"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: str, expected: str, refused: Refused
) -> None:
    assert expected in refused(*words.split())


def test_a_run_that_exists_is_not_touched(refused: Refused, pendulum: Path, tmp_path: Path) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    said = refused(*tiny.arguments("pendulum", run))
    assert f"is a run already; go on with: moie resume {run}, or choose another --out" in said


def test_a_folder_of_something_else_is_not_touched(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("do not touch")
    said = refused(*tiny.arguments("pendulum", tmp_path / "thesis"))
    assert "thesis exists and is not empty; choose another --out" in said


@pytest.mark.parametrize("command", ["show", "evaluate", "explain", "prune"])
@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda content: content[:500], "it is truncated"),
        (lambda content: b"", "it is truncated"),
        (lambda content: b"\x80\x04K\x01." * 100, "it is truncated"),
        (lambda content: content[:-9], "incomplete"),
        (lambda content: content.replace(b"moie-policy", b"some-policy"), "not written by moie"),
    ],
    ids=["truncated", "empty", "pickle", "cut", "foreign"],
)
def test_a_policy_file_that_is_none_is_refused(
    command: str,
    damage: Callable[[bytes], bytes],
    expected: str,
    refused: Refused,
    pendulum: Path,
    tmp_path: Path,
) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    file = run / "policy.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    for path in (run, file):
        said = refused(command, str(path))
        assert f"{file} is not a moie policy file: " in said
        assert expected in said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("moie-run", "other-run"), "run.json cannot be read: it was not written by moie"),
        (('"experts"', '"exprets"'), "unknown setting 'exprets'; did you mean experts"),
        (('"seed": 0', '"seed": "0"'), "seed is '0', expected a value of type int"),
        (
            ("Pendulum-v1", "Pendulum-v7"),
            "was trained on 'Pendulum-v7', which is not registered here",
        ),
        (
            ("Pendulum-v1", "MountainCarContinuous-v0"),
            "task = 'MountainCarContinuous-v0', the run was started with",
        ),
        (("{", ""), "run.json cannot be read"),
    ],
)
def test_a_foreign_configuration_is_refused(
    change: tuple[str, str], expected: str, refused: Refused, pendulum: Path, tmp_path: Path
) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace(*change, 1))
    assert expected in refused("resume", str(run))


def test_what_may_not_be_read_is_one_line(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root there is nothing that may not."""

    def forbidden(arguments: list[str]) -> None:
        raise PermissionError(13, "Permission denied", arguments[-1])

    monkeypatch.setattr("moie.cli.commands.run", forbidden)
    said = refused("compare", "there")
    assert said == "moie: no permission for there: Permission denied\n"


@pytest.mark.parametrize("words", ["show LONG", "export LONG --to c", "export --check LONG"])
def test_a_name_that_is_too_long_is_one_line(words: str, refused: Refused) -> None:
    said = refused(*words.replace("LONG", "x" * 300).split())
    assert said.startswith("moie: File name too long: xxx")


def test_the_real_program_says_it_too(tmp_path: Path) -> None:
    done = tiny.moie_process("trian", "pendulum", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "moie: unknown command 'trian'; did you mean 'train'?\n"
    assert os.listdir(tmp_path) == []


def test_a_run_in_the_real_program(tmp_path: Path) -> None:
    words = ["train", "pendulum", "--steps", "2e2", "--out", "run"]
    done = tiny.moie_process(*words, *tiny.arguments("pendulum", tmp_path)[4:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "run: run\nlook at it with: moie show run\n"
    progress = done.stderr.splitlines()
    assert progress[0] == "Pendulum-v1: 3 experts, seed 0, 2 iterations of 128 steps"
    assert re.match(r"iteration 2/2  evaluation -\d+.*steps/s  0:00 left", progress[-1])
    assert os.listdir(tmp_path) == ["run"]
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert config["iterations"] == 2  # 200 steps need two batches of 128


# --- help ----------------------------------------------------------------------------------------


def test_help_answers_and_says_what_there_is(capfd: pytest.CaptureFixture) -> None:
    text = output(capfd, "--help")
    for command in ("train", "resume", "evaluate", "show", "tasks"):
        assert f"moie {command}" in text
    assert main.main([]) == 2
    assert capfd.readouterr().out == text
    assert output(capfd, "--version").startswith("moie 0.")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train --help", "usage: moie train TASK [options]"),
        ("train pendulum --help", "--experts INT"),
        ("resume --help", "--iterations"),
        ("evaluate --help", "--episodes"),
        ("show --help", "IF blocks"),
        ("explain --help", "--state"),
        ("prune --help", "--loss"),
        ("study --help", "usage: moie study NAME [options]"),
        ("compare --help", "usage: moie compare PATH [PATH ...] [options]"),
        ("tasks --help", "pendulum"),
        ("help train", "usage: moie train TASK [options]"),
        ("help train pendulum", "The defaults shown are those for Pendulum-v1 with moie."),
        ("help resume", "usage: moie resume RUN [options]"),
        ("help", "usage: moie COMMAND"),
    ],
)
def test_every_command_has_help(words: str, expected: str, capfd: pytest.CaptureFixture) -> None:
    assert expected in output(capfd, *words.split())


@pytest.mark.parametrize("words", ["train --help", "train pendulum --help"])
def test_train_help_lists_every_setting_once(words: str, capfd: pytest.CaptureFixture) -> None:
    from moie.runs.config import RunConfig, settings_of

    text = output(capfd, *words.split())
    for name in set(settings_of(RunConfig)) - {"task", "environments"} | {
        "steps",
        "out",
        "workers",
    }:
        assert text.count(f"\n  --{name.replace('_', '-')} ") == 1, name


def test_train_help_has_what_matters_first(capfd: pytest.CaptureFixture) -> None:
    text = output(capfd, "train", "--help")
    first = text[text.index("Most used options:") : text.index("Scale of features")]
    for name in ("algorithm", "experts", "seed", "steps", "iterations", "out", "workers"):
        assert f"\n  --{name} " in first
    assert first.count("\n  --") == 12
    assert "Search for prototypes (moie and crisp):" in text
    assert max(map(len, text.splitlines())) <= 100


def test_train_help_shows_the_defaults_of_task_and_algorithm(capfd: pytest.CaptureFixture) -> None:
    def temperature(*words: str) -> str:
        text = " ".join(output(capfd, "train", *words, "--help").split())
        found = re.search(r"--temperature FLOAT [^(]*\(default: ([^)]*)\)", text)
        assert found is not None
        return found[1]

    assert temperature() == "depends on the task"
    assert temperature("pendulum") == "1"
    assert temperature("pendulum", "--algorithm", "crisp") == "0.9"


def test_help_of_what_there_is_not(refused: Refused) -> None:
    assert "unknown command 'trian'; did you mean 'train'?" in refused("help", "trian")
    assert "algorithm is 'pppo', expected one of" in refused(
        "train", "--algorithm", "pppo", "--help"
    )


# --- tasks, evaluate, show -----------------------------------------------------------------------


def test_tasks_lists_seven(capfd: pytest.CaptureFixture) -> None:
    head, *rows = output(capfd, "tasks").split("\n\n")[0].splitlines()
    assert head.split() == ["name", "id", "features", "actions", "iterations", "needs"]
    assert [row.split()[0] for row in rows] == [
        "hopper",
        "walker2d",
        "halfcheetah",
        "ant",
        "inverted-pendulum",
        "bipedal-walker",
        "pendulum",
    ]
    assert rows[0].split() == ["hopper", "HopperBulletEnv-v0", "15", "3", "1000", "moie[bullet]"]
    assert rows[6].split() == ["pendulum", "Pendulum-v1", "3", "1", "500", "-"]


def test_evaluate_prints_both_kinds_with_their_error(
    pendulum: Path, capfd: pytest.CaptureFixture
) -> None:
    words = ["evaluate", str(pendulum), "--episodes", "3"]
    text = output(capfd, *words, "--workers", "1")
    head, sampled, mean, *_ = text.splitlines()
    assert head == "Pendulum-v1: 3 episodes of each kind, seed 1000000"
    for kind, line in (("sampled", sampled), ("mean", mean)):
        pattern = rf"  {kind} +actions: return -\d+\.\d ± \d+\.\d \(standard error\)"
        assert re.match(pattern + r", length 200 \(200 to 200\)$", line), line
    assert output(capfd, *words, "--workers", "2") == text
    assert output(capfd, *words, "--seed", "3") != text


def test_evaluate_says_how_literally_a_mixture_may_be_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    text = output(capfd, "evaluate", save_sided(tmp_path), "--episodes", "5", "--workers", "1")
    _, _, _, literally, near, states, side, alone, pair, default, verdict = text.splitlines()
    share = r"\d+% \(\d+% to \d+%\)"
    within = "  every command within 10% of the policy's: leading part in"
    assert re.match(f"{within} {share} of the$", near)
    assert re.match(rf"    states, leading pair in {share}$", states)
    assert re.match(rf"  commands of the leading part on the wrong side: {share}$", side)
    assert re.match(r"  read literally: in range 100%, coverage \d\d%, attention 1\.\d", literally)
    assert literally.endswith(" parts at a time")
    earned, gain = r"return -\d+\.\d ± \d+\.\d", r"\(\d+% of its gain over the default action\)"
    assert re.match(rf"  leading part alone: {earned} {gain}$", alone)
    assert re.match(rf"  leading pair: {earned} {gain}$", pair)
    assert re.match(rf"  default action only: {earned}$", default)
    assert verdict == "  the program may be taken literally"


def save_sided(folder: Path) -> str:
    """A file of a policy for `Known` that says what is best on either side of zero."""
    return save(
        folder / "known.safetensors",
        "tests.probes:Known-v0",
        experts=2,
        prototypes=np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]),
        actions=np.array([[-0.4], [0.4]]),
        weights=np.array([99.0, 99.0]),
        temperature=20.0,
        metric=np.array([1.0, 0.1, 0.01]),
    )


def test_evaluate_prints_a_network_as_before(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    options = {"algorithm": "ppo", "policy_hidden": (8,), "iterations": 1, "workers": 1}
    run = tiny.train("tests.probes:Walk-v0", tmp_path / "run", **options).path
    text = output(capfd, "evaluate", str(run), "--episodes", "2", "--workers", "1")
    assert len(text.splitlines()) == 3
    assert "literally" not in text


@needs("bullet")
def test_evaluate_measures_distance_where_something_walks(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    hopper = save(tmp_path / "hopper.safetensors", "HopperBulletEnv-v0")
    text = output(capfd, "evaluate", hopper, "--episodes", "2")
    assert len(re.findall(r", distance -?\d+\.\d\d m$", text, re.MULTILINE)) == 2
    walk = save(tmp_path / "walk.safetensors", "tests.probes:Walk-v0")
    text = output(capfd, "evaluate", walk, "--episodes", "1")
    assert ": 1 episode of each kind, seed" in text
    assert "distance" not in text
    assert "±" not in text  # one episode has no standard error


def test_evaluate_names_what_is_wrong_with_the_environment(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = "tests.probes:Trouble-v0"
    monkeypatch.setenv(probes.TROUBLE, probes.trouble("nan", "any", 1))
    said = refused("evaluate", save(tmp_path / "policy.safetensors", task), "--episodes", "2")
    assert f"{task}: observation 'feature 1' is nan, expected a finite number" in said
    file = tmp_path / "renamed.safetensors"
    file.write_bytes((tmp_path / "policy.safetensors").read_bytes().replace(b"Trouble", b"Treble "))
    assert "unknown environment 'tests.probes:Treble -v0'" in refused("evaluate", str(file))


def blocks(text: str) -> list[str]:
    return re.findall(r"^(?:IF.*expert \d+|ALSO.*expert \d+|OTHERWISE)", text, re.MULTILINE)


def test_show_prints_the_experts_in_the_order_they_lead(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    file = save(
        tmp_path / "policy.safetensors",
        "Pendulum-v1",
        experts=4,
        lead=np.array([0.1, 0.6, 0.1, 0.2]),
        share=np.array([0.1, 0.2, 0.2, 0.0001]),
        log_std=np.log([0.5]),
        trained={"steps": 12800},
    )
    text = output(capfd, "show", file)
    order = re.findall(r"^IF .*# expert (\d)", text, re.MULTILINE)
    assert order == ["3", "2", "0"]  # by lead, then by share
    assert re.findall(r"^ALSO .*# expert (\d)", text, re.MULTILINE) == ["1"]
    assert text.index("\nOTHERWISE") > text.index("# expert 0")
    assert "expert 3: led 20% of the last batch, the default not counted\n" in text
    assert "\n      # not visited yet\n" in text
    assert "4 experts, of which 3 can lead; 21 parameters" in text
    assert "from 12,800 steps" in " ".join(text.split("\n# "))
    assert "add noise of standard deviation 0.5." in text
    for name in ("cos of angle", "sin of angle", "turning speed", "torque"):
        assert text.count(name) >= 3


def test_show_says_what_counts_as_close(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    # Radii are scale / metric / sqrt(temperature): 1 / 4 / 2, 30 / 0.5 / 2 and 8 / 1 / 2.
    learned = {"metric": np.array([4.0, 0.5, 1.0]), "feature_scale": np.array([1.0, 30.0, 8.0])}
    file = save(tmp_path / "learned.safetensors", "Pendulum-v1", temperature=4.0, **learned)
    text = output(capfd, "show", file)
    assert re.findall(r"^   (\S.*?) {3,}([\d.]+)", text, re.MULTILINE) == [
        ("cos of angle", "0.125"),
        ("turning speed", "4.00"),
        ("sin of angle", "30.0"),
    ]


def test_show_says_where_a_trained_policy_comes_from(
    pendulum: Path, capfd: pytest.CaptureFixture
) -> None:
    text = output(capfd, "show", str(pendulum))
    assert text == output(capfd, "show", str(pendulum / "policy.safetensors"))
    assert "learned by moie from 512 steps" in text.replace("\n# ", " ")
    visited = re.findall(r"from iteration \d, episode \d+, step \d+", text)
    assert len(visited) == len(blocks(text)) - 1 > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": np.zeros(3), "share": np.zeros(3), "lead": np.zeros(3)},
        {"prototypes": np.full((3, 3), 1e9), "actions": np.full((3, 1), -1e-7)},
    ],
    ids=["weights of zero", "large and small numbers"],
)
def test_show_prints_any_policy(
    changes: dict, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    file = save(tmp_path / "policy.safetensors", "Pendulum-v1", **changes)
    text = output(capfd, "show", file)
    assert "OTHERWISE" in blocks(text)
    assert max(map(len, text.splitlines())) <= 140


@pytest.mark.parametrize("command", ["show", "explain", "prune"])
def test_a_run_without_a_policy_says_so(
    command: str, refused: Refused, pendulum: Path, tmp_path: Path
) -> None:
    run = tiny.copy(pendulum, tmp_path / "run")
    (run / "policy.safetensors").unlink()
    assert f"has no policy yet: no iteration is complete; go on with: moie resume {run}" in refused(
        command, str(run)
    )


@pytest.mark.parametrize("command", ["explain", "prune"])
def test_an_environment_that_is_not_there_says_so(
    command: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.safetensors"
    file.write_bytes(policy_file.to_bytes(replace(tiny.policy(), task="HopperBulletEnv-v0")))
    found = importlib.util.find_spec
    hidden = {"pybullet", "pybullet_envs_gymnasium"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in hidden else found(name)
    )
    said = refused(command, str(file))
    assert "HopperBulletEnv-v0 needs pybullet and pybullet_envs_gymnasium, not installed" in said
    assert "pip install 'moie[bullet]'" in said


def test_explain_of_one_state(
    refused: Refused, pendulum: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    file = tmp_path / "state.json"
    file.write_text("[0.1, 0.2, 0.3]")
    assert main.main(["explain", str(pendulum), "--state", str(file)]) == 0
    printed = capfd.readouterr().out
    assert printed == f"{moie.load(pendulum).explain([0.1, 0.2, 0.3])}\n"
    np.save(tmp_path / "state.npy", np.array([0.1, 0.2, 0.3]))
    assert main.main(["explain", str(pendulum), "--state", str(tmp_path / "state.npy")]) == 0
    assert capfd.readouterr().out == printed
    for text, expected in (
        ("[0.1, 0.2]", "observation has shape (2,), expected (3,)"),
        ("[0.1, 0.2, NaN]", "observation 'turning speed' is nan, expected a finite number"),
        ('["a", 1, 2]', "state.json is not a state: could not convert"),
        ("{", "expected a JSON list of numbers or a .npy file"),
    ):
        file.write_text(text)
        assert expected in refused("explain", str(pendulum), "--state", str(file))
    missing = str(tmp_path / "nothing.json")
    assert "cannot read" in refused("explain", str(pendulum), "--state", missing)


def test_a_network_has_nothing_to_explain(refused: Refused, tmp_path: Path) -> None:
    options = {"algorithm": "ppo", "policy_hidden": (8,), "iterations": 1, "workers": 1}
    run = tiny.train("tests.probes:Walk-v0", tmp_path / "run", **options).path
    for command in ("explain", "prune"):
        assert "of ppo has no experts, but 42 parameters" in refused(command, str(run))


def test_show_into_head_is_silent(tmp_path: Path) -> None:
    # More than a pipe holds, so that `head` is gone before all is written.
    file = save(
        tmp_path / "wide.safetensors", "tests.probes:Wide-v0", experts=20, share=np.ones(20) / 40
    )
    done = subprocess.run(
        f"{' '.join(tiny.command('show', file))} | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        env=tiny.environment(),
        capture_output=True,
        text=True,
    )
    first, code = done.stdout.splitlines()
    assert first.startswith("# tests.probes:Wide-v0: 20 experts")
    assert (code, done.stderr) == ("0", "")

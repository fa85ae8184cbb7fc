"""A user's own environment: in a script, in a module beside it, with names, with its mistakes."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import moie
from moie import api
from moie.cli import main
from moie.explanation import figures
from moie.rollout.episode import Job, Purpose
from moie.runs.config import differences
from moie.runs.disk.directory import RunDirectory
from tests import probes, tiny

CLASS = """
import gymnasium as gym
import numpy as np

class Mine(gym.Env):
    def __init__(self, gain, box):
        self.observation_space, self.gain = box, gain
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.normal(size=3)
        return self.state.copy(), {}

    def step(self, action):
        self.state[:2] += 0.1 * self.gain(action[0]), 0.1 * self.state[0]
        return self.state.copy(), -float(self.state[1] ** 2), False, False, {}

    def close(self):
        raise RuntimeError("it is closed already")

unusual = {"gain": lambda push: 2.0 * float(push), "box": gym.spaces.Box(-9.0, 9.0, (3,))}
gym.register("Mine-v0", entry_point=Mine, max_episode_steps=20, kwargs=unusual)
"""
TRAIN = f"""
import sys, moie
for workers in (1, 2):
    out = f"{{sys.argv[1]}}/with {{workers}}"
    moie.train("Mine-v0", out=out, iterations=2, workers=workers, quiet=True, **{tiny.SETTINGS})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a script with a class and without a guard has trained with one worker and with two."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "train.py").write_text(CLASS + TRAIN)
    (folder / "mine.py").write_text(CLASS)
    done = subprocess.run(
        [sys.executable, "train.py", "runs"],
        env=tiny.environment(),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In that folder, as another process that knows nothing of the class."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    yield folder
    gym.registry.pop("Mine-v0", None)
    sys.modules.pop("mine", None)


def test_a_class_of_the_script_learns_the_same_with_any_number_of_workers(folder: Path) -> None:
    one, two = (tiny.policy_bytes(folder / "runs" / f"with {n}") for n in (1, 2))
    assert one == two


def test_the_command_line_says_what_to_type_and_then_does_it(
    here: Path, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FIGURES", {})  # they take the most time
    run = tiny.copy(here / "runs" / "with 1", here / "runs" / "a copy")
    for command in ("evaluate", "explain", "prune", "resume"):
        assert main.main([command, str(run)]) == 2
        said = capfd.readouterr().err
        assert f"moie: {run} was trained on 'Mine-v0', which is not registered here" in said
        assert "--task MODULE:Mine-v0, in Python task='MODULE:Mine-v0'" in said
    for task in ("Mine-v0", "mine:Other-v0"):
        assert main.main(["evaluate", str(run), "--task", task]) == 2
        assert f"task is '{task}', expected MODULE:Mine-v0" in capfd.readouterr().err
    words = ["--episodes", "2", "--workers", "1", "--task", "mine:Mine-v0"]
    assert main.main(["evaluate", str(run), *words]) == 0
    assert "Mine-v0: 2 episodes of each kind" in capfd.readouterr().out
    assert main.main(["resume", str(run), "--iterations", "3", *words[2:]]) == 0
    assert f"look at it with: moie show '{run}'" in capfd.readouterr().out
    options: dict[str, Any] = {"pictures": False, "episodes": 2, "most_episodes": 4}
    assert api.explain(run, task="mine:Mine-v0", quiet=True, **options).is_file()


def test_a_module_in_the_current_folder_can_be_trained(here: Path) -> None:
    names = ["--feature-names", "place", "way so far", "nothing", "--action-names", "push"]
    (here / "json.py").write_text("raise RuntimeError('not this one')")  # hides nothing
    script = [str(Path(sys.executable).with_name("moie"))]
    words = tiny.arguments("mine:Mine-v0", here / "by name", iterations=2)
    done = subprocess.run(
        [*script, *words, *names], env=tiny.environment(), cwd=here, capture_output=True, text=True
    )
    (here / "json.py").unlink()
    assert done.returncode == 0, done.stderr
    policy = moie.load(here / "by name")
    assert policy.feature_names == ("place", "way so far", "nothing")
    assert policy.action_names == ("push",)
    unnamed = moie.load(here / "runs" / "with 1")
    assert np.array_equal(policy.actions, unnamed.actions)
    config = RunDirectory.open(here / "by name").read_config()
    assert config.feature_names == policy.feature_names
    assert not differences(config, dataclasses.replace(config, feature_names=()))


# --- names ---------------------------------------------------------------------------------------


class Named(probes.Walk):
    metadata = {"feature_names": ["place", "speed", "wave"], "action_names": ["push"]}  # noqa: RUF012


@pytest.fixture
def register() -> Iterator[Any]:
    """Registers a class as Own-v0."""
    yield lambda kind: gym.register("Own-v0", kind, max_episode_steps=60)
    gym.registry.pop("Own-v0", None)


def test_names_of_the_environment_are_shown_and_outlive_a_resume(
    register: Any, tmp_path: Path
) -> None:
    register(Named)
    run = tiny.train("Own-v0", tmp_path / "run", iterations=1)
    tiny.resume(run.path, iterations=2)
    assert run.policy.feature_names == ("place", "speed", "wave")
    for name in ("place", "speed", "wave", "push"):
        assert name in run.show()
    assert "place" in str(run.policy.explain([0.1, 0.2, 0.3]))
    other = tiny.train("Own-v0", tmp_path / "other", iterations=1, action_names=["thrust"])
    assert other.policy.action_names == ("thrust",)
    assert other.policy.feature_names == ("place", "speed", "wave")


# --- mistakes ------------------------------------------------------------------------------------


class Careless(probes.Walk):
    """Does not look at its seed."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        return super().reset(seed=None)


class Noisy(probes.Walk):
    """Starts where its seed says, and then does as it likes."""

    def push(self, action: Any) -> float:
        return super().push(action) + np.random.default_rng().normal()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Careless, "with the same actions differ at the start, feature 0 is "),
        (Noisy, "with the same actions differ after step 1, feature 0 is "),
        (probes.Walk, ""),
    ],
)
def test_an_environment_that_ignores_its_seed_is_noticed_at_the_start(
    kind: type, words: str, register: Any, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    register(kind)
    moie.train("Own-v0", out=tmp_path / "run", iterations=1, workers=2, **tiny.SETTINGS)
    head, *lines = capfd.readouterr().err.splitlines()
    assert head.startswith("Own-v0: 3 experts")
    warnings = [line for line in lines if "warning" in line]
    assert len(warnings) == bool(words)
    if words:
        assert warnings[0].startswith("warning: Own-v0 does not repeat: two episodes after reset(")
        assert words in warnings[0]
    assert json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])


@pytest.mark.parametrize(("kind", "stops"), [("raise", False), ("die", True)])
def test_a_fault_of_the_episodes_that_are_compared_stops_nothing_but_a_deadly_one(
    kind: str, stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = Job(0, Purpose.REPEATING, 0, 0, 0).seed
    monkeypatch.setenv(probes.TROUBLE, probes.trouble(kind, seed, 1))
    expected = pytest.raises(moie.EnvironmentFault, match="3 workers died")
    with expected if stops else contextlib.nullcontext():
        tiny.train("tests.probes:Trouble-v0", tmp_path / "run", iterations=1)


class Fixed(probes.Walk):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = gym.spaces.Box(0.0, 0.0, (1,))
        self.action_names = ["valve"]


def test_an_action_without_a_range_is_refused_and_nothing_is_written(
    register: Any, tmp_path: Path
) -> None:
    register(Fixed)
    with pytest.raises(moie.InputError, match="Own-v0: the action 'valve' is bounded by 0 and 0"):
        tiny.train("Own-v0", tmp_path / "run")
    assert os.listdir(tmp_path) == []

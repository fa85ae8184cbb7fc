"""The Python interface, and what importing it costs."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import moie
from tests import tiny

SOURCE = Path(moie.__file__).parent


# --- train and load ------------------------------------------------------------------------------


def test_train_load_predict_explain(pendulum: Path) -> None:
    policy = moie.load(pendulum)
    env = gymnasium.make("Pendulum-v1")
    observation, _ = env.reset(seed=0)
    action, state = policy.predict(observation, deterministic=True)
    assert state is None
    observation, *_ = env.step(action)
    why = policy.explain(observation)
    assert sum(why.memberships) + why.default_share == pytest.approx(1)
    assert moie.load(str(pendulum / "policy.safetensors")).task == "Pendulum-v1"


def test_a_run_gives_its_policy_and_its_metrics(pendulum: Path) -> None:
    run = moie.Run(pendulum)
    trained = {"algorithm": "moie", "seed": 0, "actions": "raw", "iterations": 4, "steps": 512}
    assert run.policy.trained == trained
    assert [row["iteration"] for row in run.metrics] == [0, 1, 2, 3, 4]


def test_steps_are_rounded_up_to_whole_batches(pendulum: Path, tmp_path: Path) -> None:
    run = tiny.train("pendulum", tmp_path / "run", steps=3.85e2, experts=3.0, workers="2")
    assert tiny.policy_bytes(run.path) == tiny.policy_bytes(pendulum)


def test_without_a_place_runs_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moie import api

    monkeypatch.chdir(tmp_path)
    config = api.task_preset("tests.probes:Walk-v0")
    assert api.default_out(config) == Path("runs/tests.probes_Walk-v0-k10-s0")
    for expected in ("runs/Pendulum-v1-k10-s0-2", "runs/Pendulum-v1-k10-s0-3"):
        taken = api.default_out(api.task_preset("pendulum"))
        taken.mkdir(parents=True)
        assert api.default_out(api.task_preset("pendulum")) == Path(expected)


def test_train_is_quiet_when_asked(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    tiny.train("pendulum", tmp_path / "run", iterations=1)
    assert capfd.readouterr() == ("", "")


def test_it_trains_outside_the_main_thread(pendulum: Path, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as threads:
        run = threads.submit(tiny.train, "pendulum", tmp_path / "run").result()
    assert tiny.policy_bytes(run.path) == tiny.policy_bytes(pendulum)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"exprets": 5}, "unknown setting 'exprets'; did you mean experts"),
        ({"n_workers": 5}, "unknown setting 'n_workers'"),
        ({"experts": "ten"}, "experts is 'ten', expected a value of type int"),
        ({"hidden": ("a",)}, "hidden is 'a', expected a value of type int"),
        ({"seed": -1}, "seed is -1, expected zero or more"),
        ({"workers": 0}, "workers is 0, expected at least 1"),
        ({"workers": "two"}, "workers is 'two', expected a whole number, at least 1"),
        ({"steps": 0}, "steps is 0, expected at least 1"),
        ({"steps": 100.5}, "steps is 100.5, expected a whole number, at least 1"),
        ({"steps": True}, "steps is True, expected a whole number, at least 1"),
        ({"feature_names": ["a"]}, "feature_names has 1 names, expected 3"),
        ({"feature_names": "abc"}, "feature_names is 'abc', expected a value of type tuple"),
        ({"action_names": ["a\nb"]}, "expected names that can be printed"),
        ({"worker_timeout": -1}, "worker_timeout is -1, expected a positive number"),
        ({"task": "Hoper-v5"}, "unknown environment 'Hoper-v5'"),
        ({"task": gymnasium.make("Pendulum-v1")}, "expected a Gymnasium id or a short name"),
    ],
)
def test_a_bad_argument_is_named_and_nothing_is_written(
    settings: dict, words: str, tmp_path: Path
) -> None:
    with pytest.raises(moie.InputError) as caught:
        moie.train(**({"task": "pendulum", "out": tmp_path / "run"} | settings))
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- policies, runs and studies as objects -------------------------------------------------------


def test_every_public_name_is_there() -> None:
    for name in moie.__all__:
        assert getattr(moie, name) is not None, name
    assert set(moie.__all__) <= set(dir(moie))
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        moie.trian  # noqa: B018


def test_a_saved_policy_is_the_same_file(pendulum: Path, tmp_path: Path) -> None:
    policy = moie.load(pendulum)
    file = policy.save(tmp_path / "mine.safetensors")
    assert file.read_bytes() == tiny.policy_bytes(pendulum)
    with pytest.raises(moie.FileError, match="cannot write"):
        policy.save(tmp_path / "nowhere" / "mine.safetensors")


def test_a_run_a_path_and_a_policy_will_do(pendulum: Path) -> None:
    run = moie.Run(pendulum)
    assert moie.show(run) == moie.show(str(pendulum)) == moie.show(run.policy) == run.show()
    options = {"episodes": 2, "workers": 1}
    measured = str(moie.evaluate(run.policy, **options))
    assert measured == str(run.evaluate(**options)) == str(moie.evaluate(pendulum, **options))
    assert run.resume(quiet=True) == run  # complete: there is nothing to do


def test_a_policy_of_a_task_from_elsewhere_needs_consent() -> None:
    from dataclasses import replace

    policy = replace(tiny.policy(), task="no_such_module:Env-v0")
    with pytest.raises(moie.InputError, match="the policy names the task 'no_such_module:Env-v0'"):
        moie.evaluate(policy, episodes=1)


def test_what_is_printed_fits_a_line(pendulum: Path, tmp_path: Path) -> None:
    run = moie.Run(pendulum)
    assert repr(run) == f"<run {pendulum}: Pendulum-v1, moie, seed 0, 4 of 4 iterations>"
    assert repr(moie.Run(tmp_path)) == f"<run {tmp_path}: not a run that can be read>"
    said = "moie, 3 experts, 16 parameters, learned from 512 steps"
    assert repr(run.policy) == f"<policy for Pendulum-v1: {said}>"
    study = moie.Study("mine", (moie.Grid("pendulum", experts=[2, 3], seeds=2),))
    assert repr(study) == "<study 'mine': 1 grid>"
    found = moie.study_status(study, out=tmp_path)
    assert repr(found) == f"<study mine in {tmp_path}: 0 of 4 runs done, 4 waiting>"


def test_tasks_are_those_of_the_paper() -> None:
    assert [task.short for task in moie.tasks()][-1] == "pendulum"
    assert len(moie.tasks()) == 7


@pytest.mark.parametrize("name", ["edit", "evaluate", "explain", "prune", "export"])
def test_a_method_of_a_run_has_the_signature_of_the_function(name: str) -> None:
    assert inspect.signature(getattr(moie.Run, name)) == inspect.signature(getattr(moie, name))


def test_errors_have_one_above_them_all() -> None:
    kinds = (moie.FileError, moie.ClusterError, moie.DivergenceError, moie.EnvironmentFault)
    for kind in kinds:
        assert issubclass(kind, moie.InputError)
    assert issubclass(moie.InputError, moie.MoieError)
    assert not issubclass(moie.Stopped, moie.MoieError)
    with pytest.raises(moie.FileError):
        moie.load("nowhere")


def test_the_readme_is_typed(tmp_path: Path) -> None:
    """As a user's own `mypy --strict` sees it."""
    readme = (tiny.ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "example.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# --- imports -------------------------------------------------------------------------------------


def loaded(code: str) -> set[str]:
    """Modules that are loaded after some code has run in a new process."""
    report = "\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        tiny.command(code=code + report), env=tiny.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


TOML = ["show", "RUN", "--format", "toml"]
SHEET = ["datasheet", "RUN"]
HEAVY = {"jax", "equinox", "optax", "pybullet", "Box2D", "mujoco", "onnx", "onnxruntime"}


def test_importing_moie_loads_next_to_nothing() -> None:
    assert not (HEAVY | {"numpy", "gymnasium", "tyro"}) & loaded("import moie")


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["tasks"], ["zoo"], ["show", "RUN"], TOML, SHEET]
)
def test_commands_that_only_look_do_not_load_jax(words: list[str], pendulum: Path) -> None:
    words = [str(pendulum) if word == "RUN" else word for word in words]
    modules = loaded(f"from moie.cli.main import main\nassert main({words}) == 0")
    assert not HEAVY & modules
    assert "numpy" not in modules or words[0] in ("tasks", "show", "zoo", "datasheet")


def test_an_export_is_written_and_checked_without_jax(pendulum: Path, tmp_path: Path) -> None:
    words = ["export", str(pendulum), "--to", "python", "--out", str(tmp_path / "out")]
    again = ["export", "--check", str(tmp_path / "out")]
    code = f"from moie.cli.main import main\nassert main({words}) == main({again}) == 0"
    assert not HEAVY & loaded(code)


def test_acting_with_a_policy_does_not_load_jax(pendulum: Path) -> None:
    code = f"""
import moie
policy = moie.load({str(pendulum)!r})
policy.predict([0.1, 0.2, 0.3]), policy.explain([0.1, 0.2, 0.3])
"""
    assert not (HEAVY | {"tensorboardX"}) & loaded(code)


# --- the direction of the layers -----------------------------------------------------------------

# layer -> the layers of moie that it may import
BELOW = {
    "errors": set(),
    "terminal": set(),
    "extras": {"errors"},
    "system": {"errors"},
    "files": {"errors", "system"},
    "stopping": {"errors"},
    "core": set(),
    "learn": {"core", "errors"},
    "environments": {"errors", "terminal"},
    "policy": {"errors", "terminal", "files"},
    "present": {"errors", "files", "terminal"},
    "zoo": {"errors", "files"},
    "rollout": {"core", "environments", "errors", "policy", "system", "terminal"},
    "runs": {
        *("core", "environments", "errors", "files"),
        *("learn", "policy", "present", "rollout", "stopping", "system", "terminal", "zoo"),
    },
    "exports": {"errors", "explanation", "extras", "files", "moie", "policy", "runs", "terminal"},
    "explanation": {
        *("core", "environments", "errors", "files"),
        *("policy", "present", "rollout", "runs", "terminal"),
    },
    "sheet": {
        *("environments", "errors", "explanation", "files"),
        *("policy", "present", "runs", "terminal"),
    },
    "surgery": {"errors", "explanation", "files", "policy", "runs", "terminal"},
    "workshop": {
        *("environments", "errors", "explanation", "files", "moie", "policy", "present", "rollout"),
        *("surgery", "system"),
    },
    "comparison": {
        *("environments", "errors", "extras", "files"),
        *("learn", "policy", "present", "runs", "terminal"),
    },
    "studies": {
        *("accelerated", "comparison", "environments", "errors", "extras", "files"),
        *("learn", "present", "rollout", "runs", "stopping", "system", "terminal"),
    },
    "accelerated": {
        *("core", "environments", "errors", "files"),
        *("learn", "policy", "present", "rollout", "runs", "stopping"),
    },
    "callbacks": {"errors"},
    "api": {
        "accelerated",
        *("environments", "errors", "explanation", "exports", "extras", "learn"),
        *("policy", "present", "runs", "sheet", "stopping", "surgery", "system", "terminal"),
        "workshop",
    },
    "cli": {
        "accelerated",
        *("api", "environments", "errors", "explanation", "files"),
        *("learn", "moie", "policy", "runs", "studies", "terminal", "zoo"),
    },
    "__init__": {"api", "callbacks", "errors", "policy", "runs", "studies", "surgery", "zoo"},
    "__main__": {"cli"},
}


def imports(file: Path) -> set[str]:
    """Full names of what a file imports, wherever it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer(module: str) -> str:
    """Of a full name in moie; "moie" for what the package itself gives."""
    part = module.split(".")[1]
    return part if part in BELOW else "moie"


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda f: f.stem)
def test_layers_import_downwards_only(file: Path) -> None:
    own = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    names = imports(file)
    ours = {layer(name) for name in names if name.split(".")[0] == "moie"}
    assert ours <= BELOW[own] | {own}
    others = {name.split(".")[0] for name in names} - {"moie"} - sys.stdlib_module_names
    if own == "core":
        assert others <= {"jax", "equinox", "jaxtyping", "numpy"}
    if own == "rollout":
        assert "jax" not in others
        core = {name for name in names if name.startswith("moie.core")}
        assert core <= {"moie.core.batch.Batch"}
    if own == "learn":
        assert not others & {"gymnasium", "safetensors", "tyro"}

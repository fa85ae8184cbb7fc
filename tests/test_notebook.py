"""docs/own_environment.ipynb as a user runs it: it defines an environment, trains, evaluates and
explains it. Here with smaller settings, and a little further."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import moie
from tests import tiny

NOTEBOOK = tiny.ROOT / "docs" / "own_environment.ipynb"
SMALLER = {
    "settings = ": f"settings = {tiny.SETTINGS | {'iterations': 2, 'workers': 2}}",
    "run.explain(": "run.explain(episodes=2, pruning=False)",
}
# A class whose second step fails, defined where no file is; then a run that goes on.
MORE = [
    """
again = moie.train("Dock-v0", seed=0, out="runs/again", **dict(settings, workers=1))
files = [run.path / "policy.safetensors", again.path / "policy.safetensors"]
print(files[0].read_bytes() == files[1].read_bytes())
""",
    """
class Leaky(Dock):
    def step(self, action):
        return self.sink(super().step(action))

    def sink(self, found):
        raise RuntimeError("the boat is full of water")

gym.register("Leaky-v0", entry_point=lambda: Leaky(), max_episode_steps=100)
try:
    moie.train("Leaky-v0", out="runs/leaky", quiet=True, **settings)
except moie.EnvironmentFault as error:
    print(error, *error.__notes__, sep="\\n")
""",
]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """Where it ran, and its cells of code, with what they gave."""
    notebook, folder = nbformat.read(NOTEBOOK, as_version=4), tmp_path_factory.mktemp("notebook")
    for cell in notebook.cells:
        for start, smaller in SMALLER.items():
            cell.source = smaller if cell.source.startswith(start) else cell.source
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in MORE]
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        client.execute(env=tiny.environment())
    return folder, [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    return "".join(out.text for out in cell.outputs if out.get("name") == "stdout")


def test_it_trains_evaluates_shows_and_explains(executed: tuple[Path, list[Any]]) -> None:
    folder, (_, _, _, evaluate, show, why, explain, *_) = executed
    policy = moie.load(folder / "runs" / "dock")
    assert policy.trained["iterations"] == 2
    assert "Dock-v0: 20 episodes of each kind" in printed(evaluate)
    assert "read literally" in printed(evaluate)
    for name in ("way to the dock", "speed", "current", "thrust"):
        assert name in printed(show)
    assert "the state differs from its prototype by" in printed(why)
    report = folder / "runs" / "dock" / "explanation" / "report.html"
    assert report.name in explain.outputs[-1].data["text/plain"]
    assert "way to the dock" in report.read_text()
    assert list((report.parent / "scenes").glob("expert-*.png"))


def test_one_worker_and_two_learn_the_same(executed: tuple[Path, list[Any]]) -> None:
    assert printed(executed[1][-2]).strip() == "True"


def test_a_fault_names_type_and_lines_of_the_cell(executed: tuple[Path, list[Any]]) -> None:
    said = printed(executed[1][-1])
    assert "Leaky-v0: RuntimeError: the boat is full of water" in said
    assert "return self.sink(super().step(action))" in said
    assert 'raise RuntimeError("the boat is full of water")' in said

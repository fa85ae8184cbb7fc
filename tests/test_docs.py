"""README and docs: the pages build, their Python runs, their commands are commands.

One rule makes the Python of the pages quick: `moie.train` trains with the settings of `tests.tiny`,
for two iterations, and reports have no figures. A block that is not run at all says why, in a
comment before it: `<!-- not run: REASON -->`. The blocks of a page run in order, as in a notebook.
"""

import contextlib
import functools
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import moie
from moie import api
from moie.api import policies
from moie.cli import commands
from moie.cli.main import main
from moie.errors import InputError
from moie.explanation import figures
from moie.learn import registry
from moie.runs.config import RunConfig, settings_of
from moie.studies import interface
from tests import tiny
from tests.simulators import installed

DOCS = tiny.ROOT / "docs"
PAGES = [tiny.ROOT / "README.md", tiny.ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^(<!-- not run: .+ -->\n+)?```python\n(.*?)^```$", re.M | re.S)
FENCED = re.compile(r"^```\w*\n.*?^```$", re.M | re.S)
COMMAND = re.compile(r"^ {4,}(moie (?=[a-z-])(?:[^\n]*\\\n)*[^\n]*)$", re.M)
CODE = re.compile(r"`([^`]+)`")
OF_OTHERS = {"--constraint", "--strict", "--help"}
"""Options of other programs, and the one that every command has."""
MEANT = {
    "TASK": "pendulum",
    "K": "5",
    "N": "500",
    "SEED": "0",
    "$task": "pendulum",
    "$algorithm": "ppo",
    "$seed": "0",
    "$SEED": "0",
}
"""A value for each word that stands for one."""


def name_of(page: Path) -> str:
    return str(page.relative_to(tiny.ROOT))


def blocks(page: Path) -> list[str]:
    """The Python that is run."""
    return [code for skipped, code in BLOCK.findall(page.read_text()) if not skipped]


def mentions(page: Path) -> list[str]:
    """What stands between backticks in running text."""
    return [" ".join(text.split()) for text in CODE.findall(FENCED.sub("", page.read_text()))]


# --- the site ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    options: dict[str, Any] = {"cwd": tiny.ROOT, "capture_output": True, "text": True}
    done = subprocess.run(words, env=tiny.environment(NO_MKDOCS_2_WARNING="1"), **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def test_every_page_is_built_and_asks_for_nothing_from_the_network(site: Path) -> None:
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    assert {path.with_name("index") if path.name == "README" else path for path in pages} <= built
    loaded = re.compile(r'(?:src|<link[^>]* href)="(?:https?:)?//[^"]*"|url\((?:https?:)?//')
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert loaded.findall(path.read_text()) == [], path


def test_reference_pages_have_every_name_setting_and_command(site: Path) -> None:
    reference = (site / "api.html").read_text()
    assert [name for name in moie.__all__ if f'id="moie.{name}"' not in reference] == []
    settings = (site / "settings.html").read_text()
    names = set(settings_of(RunConfig)) - {"task"}
    assert {name for name in names if f"<code>{name}</code>" not in settings} == set()
    usage = (site / "commands.html").read_text()
    assert [name for name in commands.COMMANDS if f"moie {name}" not in usage] == []


def test_files_that_pages_name_exist() -> None:
    homes = [tiny.ROOT, tiny.ROOT / "src" / "moie"]
    for page in PAGES:
        named = [
            text for text in mentions(page) if re.fullmatch(r"[\w-]+(/[\w-]+)*/[\w-]+\.py", text)
        ]
        missing = [text for text in named if not any((home / text).exists() for home in homes)]
        assert missing == [], page


def test_pictures_that_pages_show_exist() -> None:
    for page in PAGES:
        shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
        assert [name for name in shown if not (page.parent / name).is_file()] == [], page


# --- Python --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a reader of the pages may be: with docs, a study, a fault and modules as described."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_known", dict(registry._known))  # a page adds an algorithm
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / "runs" / "smoke").mkdir(parents=True)
    measured = DOCS / "results" / "smoke" / "evaluations.parquet"
    shutil.copy(measured, tmp_path / "runs" / "smoke" / "curves.parquet")
    (tmp_path / "runs" / "mine").mkdir()
    fault = {"seed": 0, "actions": [[0.5], [1.0]]}
    (tmp_path / "runs" / "mine" / "fault.json").write_text(json.dumps(fault))
    (tmp_path / "boat.py").write_text(blocks(DOCS / "tutorial.md")[0])
    (tmp_path / "my_module.py").write_text(blocks(DOCS / "environments.md")[0])
    toml = re.search(r"^```toml\n(.*?)^```$", (DOCS / "studies.md").read_text(), re.M | re.S)
    assert toml is not None
    (tmp_path / "mine.toml").write_text(toml[1])
    known, path = set(gymnasium.registry), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(gymnasium.registry) - known:
        del gymnasium.registry[name]
    for name in ("boat", "my_module"):
        sys.modules.pop(name, None)


def small(train: Callable[..., Any]) -> Callable[..., Any]:
    """`moie.train` or `moie.swarm` with the settings of the tests, whatever a page asks for."""

    @functools.wraps(train)
    def trained(task: str, *, steps: int | None = None, **settings: Any) -> Any:
        quick = {"iterations": 2, "workers": 2, "quiet": True}
        return train(task, **(settings | tiny.SETTINGS | quick))

    return trained


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_the_python_of_a_page_runs(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in (moie.train, moie.swarm):
        monkeypatch.setattr(moie, function.__name__, small(function))
    monkeypatch.setattr(figures, "FIGURES", {})
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(page):
        exec(compile(code, str(page), "exec"), names)


def test_few_blocks_are_not_run() -> None:
    found = [skipped for page in PAGES for skipped, _ in BLOCK.findall(page.read_text())]
    assert len([skipped for skipped in found if skipped]) <= 2
    assert len(found) >= 10


# --- commands ------------------------------------------------------------------------------------


@functools.cache
def options_of(command: str) -> set[str]:
    """Every option that its help names."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main([command, *(["pendulum"] if command == "train" else []), "--help"]) == 0
    return set(re.findall(r"--[a-z][\w-]*", said.getvalue()))


def options_of_script(name: str) -> set[str]:
    """Every option that a file of `benchmarks`, or a package of it, declares."""
    file = tiny.ROOT / "benchmarks" / f"{name}.py"
    file = file if file.exists() else file.with_suffix("") / "__main__.py"
    return set(re.findall(r'"(--[a-z][\w-]*)"', file.read_text()))


def options_for(text: str) -> set[str]:
    """The options that a command in the text may have; without a command, those of all."""
    if command := re.match(r"moie ([a-z]+)", text):
        return options_of(command[1])
    if script := re.match(r"python (?:-m benchmarks\.|benchmarks/)(\w+)", text):
        return options_of_script(script[1])
    return OF_OTHERS.union(*map(options_of, commands.COMMANDS))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_options_in_the_text_exist(page: Path) -> None:
    for text in mentions(page):
        used = set(re.findall(r"(?<!\S)--[a-z][\w-]*", text))
        assert used - {"--help"} <= options_for(text), text


class Reached(Exception):  # noqa: N818  not an error
    """The command line was understood: from here on it would be carried out."""


def reached(*_: Any, **__: Any) -> None:
    raise Reached


@pytest.mark.parametrize("page", [p for p in PAGES if COMMAND.search(p.read_text())], ids=name_of)
def test_command_lines_are_understood_and_quick_ones_run(
    page: Path, folder: Path, pendulum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = ("resume", "evaluate", "datasheet", "explain", "prune", "edit", "export", "studio")
    for name in ("train_config", "swarm_config", *others, "check_export"):
        monkeypatch.setattr(api, name, reached)
    monkeypatch.setattr(interface, "compare", reached)
    monkeypatch.setattr(api, "load", lambda path, load=api.load: load(pendulum))
    monkeypatch.setattr(policies, "load", api.load)
    Path("state.json").write_text("[1.0, 0.0, 0.0]")
    for line in COMMAND.findall(page.read_text()):
        line = line.replace("\\\n", "")
        words = [MEANT.get(word, word) for word in shlex.split(line, comments=True)[1:]]
        words = words[: words.index(">")] if ">" in words else words
        words += ["--status"] if words[0] == "study" else []
        try:
            commands.run(words)
        except Reached:
            pass
        except InputError as error:
            is_missing = str(error).endswith("'moie[bullet]'") and not installed(["hopper"])
            if not is_missing:
                raise

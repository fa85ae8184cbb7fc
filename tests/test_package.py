"""What is published: a source archive with everything in it, and the wheel that is made of it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import tiny

FOLDERS = ("src", "tests", "docs", "benchmarks")
FILES = ("pyproject.toml", "MANIFEST.in", "Makefile", "constraints.txt", "mkdocs.yml", "LICENSE")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
BUILD = "import setuptools.build_meta as b, sys; getattr(b, sys.argv[1])(sys.argv[2])"
LOOK = """
import moie
from moie.comparison import page
from moie.explanation import report
from moie.present import html
from moie.studies.toml_file import shipped
from moie.zoo import entries
print(moie.__file__)
assert html.STYLE_SHEET.read_text()
assert (html.STYLE_SHEET.parent / "page.html").read_text()
assert (report.TEMPLATES / "report.html").read_text()
assert (page.TEMPLATES / "comparison.html").read_text()
assert "smoke" in shipped()
assert all(moie.load(f"zoo:{entry.name}").task == entry.task for entry in entries())
"""


def files(folder: Path) -> set[str]:
    """Names of all files below, but for what Python and setuptools leave."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if ".egg-info" not in str(path)}


def build(kind: str, source: Path, out: Path) -> Path:
    """The archive that setuptools makes of a source tree."""
    words = [sys.executable, "-c", BUILD, kind, str(out)]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.iterdir())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this repository, in which setuptools may write."""
    pytest.importorskip("setuptools", minversion="77", reason="setuptools is older than 77")
    copy = tmp_path_factory.mktemp("tree")
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    for name in FOLDERS:
        shutil.copytree(tiny.ROOT / name, copy / name, ignore=unwanted)
    for name in (*FILES, *PAGES):
        shutil.copy(tiny.ROOT / name, copy)
    return copy


@pytest.fixture(scope="module")
def unpacked(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the source archive has in it."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("build_sdist", tree, folder / "archive")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return next((folder / "unpacked").iterdir())


def test_the_source_archive_has_everything(tree: Path, unpacked: Path) -> None:
    assert files(tree) <= files(unpacked)


def test_a_wheel_of_the_source_archive_has_templates_studies_and_the_zoo(
    unpacked: Path, tmp_path: Path
) -> None:
    wheel = build("build_wheel", unpacked, tmp_path / "archive")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert files(site / "moie") == files(unpacked / "src" / "moie")
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOOK],
        env=os.environ | {"PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{site / 'moie' / '__init__.py'}\n"

"""Progress can be read in a window of 80 columns."""

import io
import re

import pytest
from rich.console import Console

from moie.runs import progress
from moie.runs.config import RunConfig, with_settings

ROW = {"return_batch": 1812.3, "return_sampled": 1790.1, "kl": 0.0149, "experts_in_use": 10}


def shown(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that stay in a terminal of that width."""
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, width=width)
    monkeypatch.setattr(progress, "console", lambda quiet: terminal)
    there = progress.Progress()
    config = with_settings(RunConfig("Pendulum-v1"), {"iterations": 1000})
    with there.of(config, 0):
        for iteration in range(120):
            there.show({"iteration": iteration, **ROW})
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue()).replace("\r", "\n")
    return [line for line in text.splitlines() if line.strip()][-2:]


def test_all_that_is_known_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    bar, facts = shown(80, monkeypatch)
    assert re.fullmatch(r"iteration 120/1000 .+ [\d,]+ steps/s  [\d:]+ left\s*", bar)
    assert facts.strip() == "return 1812.3  evaluation 1790.1  KL 0.0149  experts 10"


def test_a_narrower_window_cuts_what_is_known_first(monkeypatch: pytest.MonkeyPatch) -> None:
    bar, facts = shown(50, monkeypatch)
    assert bar.startswith("iteration 120/1000 ")
    assert facts.startswith("return 1812.3  evaluation")
    assert len(facts) <= 50

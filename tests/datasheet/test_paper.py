"""The page in a browser: one sheet of A4, sealed, readable on a small screen."""

import re
from pathlib import Path
from typing import Any

import pytest

import moie
from moie.sheet import branching
from tests.browser import Opened, browser

__all__ = ["browser"]


@pytest.mark.parametrize("name", ["zoo:ant", "zoo:bipedal-walker"])
def test_it_prints_on_one_sheet(
    name: str, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branching, "WORK", 1e6)
    file = tmp_path / "sheet.html"
    file.write_bytes(moie.datasheet(name).html())
    opened = Opened(browser, 900, "light")
    opened.page.goto(file.as_uri())
    opened.check_colours()
    pdf = opened.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    assert opened.complaints == []
    assert opened.requests == [file.as_uri()]

"""The documentation site builds without a warning, has every page in its navigation, and loads nothing from other hosts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from doc_pages import ROOT, Page, pages

LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]+")
ITEM = re.compile(r"^(?:[-*+]|\d+\.) ")


def test_the_navigation_has_every_page() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert sorted(_paths(site["nav"])) == sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))


def _paths(entry: object) -> list[str]:
    """Return the paths of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [path for part in parts for path in _paths(part)]


def test_the_site_builds_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run([program, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    built = sorted((tmp_path / "out" / "docs").rglob("*.html"))
    assert len(built) >= len(list((ROOT / "docs").rglob("*.md")))
    assert {page.name: found for page in built if (found := LOADED.findall(page.read_text()))} == {}
    assert LOADED.findall('<script src="https://unpkg.com/iframe-worker/shim"></script>')


def list_errors(page: Page) -> list[str]:
    """Return lists that directly follow a paragraph: the site generator does not recognize them."""
    found = []
    for number, (before, line) in enumerate(zip(page.prose, page.prose[1:], strict=False), 2):
        if ITEM.match(line) and before and not ITEM.match(before) and not before.startswith((" ", "#")):
            found.append(f"{page.name}:{number}: put an empty line before the list")
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_list_follows_an_empty_line(page: Page) -> None:
    assert list_errors(page) == []


def test_a_list_without_an_empty_line_is_reported() -> None:
    assert list_errors(Page(Path("page.md"), "Text:\n- one\n- two\n  more\n- three\n")) == ["page.md:2: put an empty line before the list"]

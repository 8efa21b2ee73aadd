"""Every link inside the repository leads to a file, and to a heading of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import ROOT, Page, pages


def errors(page: Page) -> list[str]:
    """Return one line per broken link of a page."""
    found = []
    for link in page.links():
        if "://" in link.text or link.text.startswith("mailto:"):
            continue
        name, _, anchor = link.text.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if not target.exists():
            found.append(f"{page.name}:{link.line}: {link.text}: there is no such file")
        elif page.path.is_relative_to(ROOT / "docs") and not target.is_relative_to(ROOT / "docs"):
            found.append(f"{page.name}:{link.line}: {link.text}: the file is not in docs, so the built site lacks it")
        elif anchor and anchor not in (page if target == page.path else Page(target)).anchors():
            found.append(f"{page.name}:{link.line}: {link.text}: there is no such heading")
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Page) -> None:
    assert errors(page) == []


def test_a_broken_link_is_reported() -> None:
    text = "# A title\n[a](nothing.md) [b](README.md) [c](#a-title) [d](#b) [e](https://example.com)\n"
    found = errors(Page(Path("docs/index.md").absolute(), text))
    assert [line.partition(": ")[2] for line in found] == [
        "nothing.md: there is no such file",
        "README.md: there is no such file",
        "#b: there is no such heading",
    ]

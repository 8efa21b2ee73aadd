"""docs/real-control-plane.md lists the same overrides as the module."""

from __future__ import annotations

from pathlib import Path

from rehearsal.local_cluster import overrides

DOCUMENT = (Path(__file__).parents[3] / "docs" / "real-control-plane.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a line of headings."""
    lines = DOCUMENT[DOCUMENT.index(f"| {heading} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_lists_every_overridden_flag_with_its_reason() -> None:
    assert rows("program") == [[one.program, f"`--{one.flag}`", one.change, one.why] for one in overrides.FLAGS]


def test_the_document_lists_every_unit_that_is_not_run_with_its_reason() -> None:
    assert rows("unit") == [[name, why] for name, why in overrides.NOT_RUN.items()]

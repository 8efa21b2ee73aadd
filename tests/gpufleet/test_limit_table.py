"""Limits can be read in a terminal of any width: names wrap, and no number, unit or name is cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from components.plan.limit import Limit, LimitRow, amount, compare, ordered, tightest
from components.plan.limits import check
from gpufleet.limit_table import FEWEST, bound, draw, headroom, least_headroom, left_over, wrapped
from stacks.load import load_plan

ROWS = check(load_plan("southcentralus"))
WIDTHS = (40, 60, 80, 100, 120, 160, 240)
TABLE_FROM = 100


def drawn(rows: list[LimitRow], width: int) -> list[str]:
    """Lines on a console of a width."""
    out = io.StringIO()
    draw(Console(file=out, width=width, highlight=False), rows)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [tightest(ROWS), ordered(ROWS)], ids=["tightest", "all"])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(rows: list[LimitRow], width: int) -> None:
    lines = drawn(rows, width)
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]
    words = " ".join(lines).split()
    for item in rows:
        for part in (*item.limit.split(), *item.unit.split(), amount(item.use), headroom(item).split()[0]):
            assert part.rstrip(":") in {word.rstrip(":,") for word in words}, (item, part)


@pytest.mark.parametrize("width", [width for width in WIDTHS if width >= TABLE_FROM])
def test_a_wide_terminal_gets_a_table_with_every_number_on_its_row(width: int) -> None:
    lines, rows = drawn(tightest(ROWS), width), tightest(ROWS)
    assert lines[0].split() == ["limit", "where", "use", "bound", "unit", "headroom"]
    numbers = [line for line in lines[1:] if line.endswith(("%", "kept", "unknown"))]
    for line, item in zip(numbers, rows, strict=True):
        assert (
            line.split()[-len(f"{bound(item)} {item.unit} {headroom(item)}".split()) :]
            == f"{bound(item)} {item.unit} {headroom(item)}".split()
        )


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_headroom_and_name_then_the_numbers(width: int) -> None:
    lines = drawn(tightest(ROWS), width)
    assert lines[0] == "       0%  nodes per cluster: frontier"
    assert lines[1] == "           7,500 of 7,500 nodes"
    assert "           1,920,000 of 1,930,000 vCPU" in lines
    assert "           800 of at least 256 connections" in lines
    assert "           50 Mbit/s, bound not declared" in lines


def test_a_narrow_terminal_gets_the_limits_that_matter_and_the_number_of_the_others() -> None:
    rows = tightest(ROWS)
    shown = least_headroom(rows)
    assert shown[:FEWEST] == rows[:FEWEST]
    assert [row.limit for row in shown[FEWEST:]] == [row.limit for row in rows if row.bound is None]
    first = next(row for row in rows if row not in shown)
    assert left_over(rows, shown) == (
        f"{len(rows) - len(shown)} more limits have at least {headroom(first)} headroom, or their rule is kept; "
        "--all prints every limit in every place"
    )
    assert len(drawn(shown, 80)) < len(drawn(rows, 80)) / 3
    assert left_over(rows, rows) == ""


def test_a_narrow_terminal_gets_every_exceeded_limit() -> None:
    broken = [compare(Limit(f"things {number}", 10, "things", "", "", ""), "here", 11 + number) for number in range(FEWEST + 5)]
    rows = ordered([*ROWS, *broken])
    assert [row for row in least_headroom(rows) if row.broken] == [row for row in rows if row.broken]
    assert len([row for row in least_headroom(rows) if row.headroom is not None and not row.broken]) == FEWEST


@given(st.lists(st.text("abc/", min_size=1, max_size=12), min_size=1, max_size=8).map(" ".join), st.integers(1, 30))
def test_wrapping_keeps_every_character_and_the_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert max(map(len, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("use", "words"), [(500, "0%"), (497.5, "0.5%"), (450.2, "9.9%"), (450, "10%"), (449, "10%"), (1, "100%"), (501, "broken")]
)
def test_headroom_that_is_coloured_as_tight_never_reads_as_a_tenth(use: float, words: str) -> None:
    assert headroom(compare(Limit("things", 500, "things", "", "", ""), "here", use)) == words

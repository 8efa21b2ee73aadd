"""The page of times to rotate has the rows, seeds and assumptions of its program, and one of its rows is simulated again."""

from __future__ import annotations

import pytest

from bench.time_to_rotate import AFTER, BUDGETS, FAILING, GANGS, HEADINGS, NODES, PAGE, TEXT, Cell, Row, cells, measure, page, read_rows

SMALL = Cell(NODES[0], BUDGETS[-1], FAILING[0], GANGS[0])
"""The row that takes the least time."""
TOLERANCE = 0.15
"""The decision core may become a little faster or slower before the page must be rendered again."""


def test_the_page_has_the_texts_and_rows_of_its_program() -> None:
    text = PAGE.read_text()
    assert text.startswith(TEXT.strip())
    assert text.endswith(AFTER)
    assert f"| {' | '.join(HEADINGS)} |" in text
    expected = [(f"{one.nodes:,}", f"{one.budget} %", f"{one.failing} %", f"{one.gangs} %") for one in cells()]
    rows = list(read_rows(text))
    assert [row[:4] for row in rows] == expected
    assert all(float(row[4]) >= float(row[5]) > 0 for row in rows), "no row is faster than its bound"


def test_a_row_is_simulated_again() -> None:
    (stored,) = (row for row in read_rows(PAGE.read_text()) if row[:4] == ("1,000", "10 %", "0 %", "30 %"))
    again = measure(SMALL)
    assert again.hours == pytest.approx(float(stored[4]), rel=TOLERANCE), "run python -m bench.time_to_rotate"
    assert again.bound == pytest.approx(float(stored[5]), rel=TOLERANCE)


def test_rows_are_read_back_from_a_page() -> None:
    rows = [Row(SMALL, 3.0, 2.0, 1_234.4, 20.0)]
    assert list(read_rows(page(rows))) == [("1,000", "10 %", "0 %", "30 %", "3.00", "2.00", "1.50", "1,234", "20")]

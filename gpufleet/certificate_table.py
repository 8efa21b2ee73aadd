"""Decides how certificates are drawn in a terminal of any width: a table, and a few lines for each where no table fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufleet.certificate_report import Row
from gpufleet.limit_table import GAP, wrapped

HEADS = ("days", "ends", "cluster", "certificate", "for", "held by", "to do")
INDENT = 6


def draw(console: Console, rows: Sequence[Row], now_due: frozenset[str]) -> None:
    """Print the rows; now_due are serials of certificates that somebody must see to."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEADS, *cells, strict=True)]
    if sum(widths) + GAP * (len(HEADS) - 1) > console.width:
        for row in rows:
            for line in _lines(row, console.width):
                console.print(Text(line, style=_style(row, now_due)), soft_wrap=True)
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for head in HEADS:
        table.add_column(head, justify="right" if head == "days" else "left", no_wrap=True)
    for row, texts in zip(rows, cells, strict=True):
        table.add_row(*texts, style=_style(row, now_due))
    console.print(table)


def machines(row: Row) -> str:
    """Who holds a certificate."""
    return ", ".join(row.machines) or "no machine"


def _cells(row: Row) -> tuple[str, ...]:
    return (f"{row.days_left:,.0f}", f"{row.ends:%Y-%m-%d}", row.cluster, row.name, row.purpose, machines(row), row.todo)


def _lines(row: Row, width: int) -> Iterator[str]:
    """One row without a table: days left and name, the rest below, wrapped."""
    room = max(width - INDENT - GAP, 1)
    yield f"{row.days_left:>{INDENT},.0f}{' ' * GAP}{row.cluster}/{row.name}"[:width]
    for text in (f"{row.purpose}; ends {row.ends:%Y-%m-%d}", f"held by {machines(row)}", row.todo):
        yield from (" " * (INDENT + GAP) + line for line in wrapped(text, room))


def _style(row: Row, now_due: frozenset[str]) -> str:
    return "bold red" if row.days_left < 0 else "yellow" if row.serial in now_due else ""

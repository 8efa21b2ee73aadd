"""Output of limits in a terminal of any width: a table with wrapped names, or two lines per row if no table fits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.plan.limit import LimitRow, amount, tight

HEADS = ("limit", "where", "use", "bound", "unit", "headroom")
NUMBERS = ("use", "bound", "headroom")
NARROW = 120
"""Columns of a terminal below which the rows take more lines than a screen has."""
FEWEST = 10
"""Rows with a headroom that a narrow terminal gets."""
GAP = 2
"""Columns between two cells."""
ASIDE = 9
"""Width of the headroom column without a table: that of its longest text, "rule kept"."""
BREAKS = re.compile(r"(?<=[ /])")
"""Positions at which a name may wrap: after a space or a slash."""


def draw(console: Console, rows: Sequence[LimitRow]) -> None:
    """Print the rows; a terminal of 40 columns or more shows every number, unit and name in full."""
    cells = [(row.limit, row.where, amount(row.use), bound(row), row.unit, headroom(row)) for row in rows]
    fixed = [max(map(len, column)) for column in list(zip(HEADS, *cells, strict=True))[2:]]
    room = console.width - sum(fixed) - GAP * len(fixed) - GAP
    split = _split([(limit, where) for limit, where, *_ in cells], room)
    if split is None:
        for row in rows:
            for line in beside(row, console.width):
                console.print(Text(line, style=style(row)), soft_wrap=True)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in HEADS:
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=True)
    for row, (limit, where, *rest) in zip(rows, cells, strict=True):
        table.add_row("\n".join(wrapped(limit, split[0])), "\n".join(wrapped(where, split[1])), *rest, style=style(row))
    console.print(table)


def least_headroom(rows: Sequence[LimitRow]) -> list[LimitRow]:
    """Return the rows for a narrow terminal, in their order: all exceeded ones, the next FEWEST by headroom, and those without bound.

    rows are sorted by headroom, as components.plan.limit.ordered does.
    """
    least = [row for row in rows if not row.broken and row.headroom is not None][:FEWEST]
    return [row for row in rows if row.broken or row.bound is None or row in least]


def left_over(rows: Sequence[LimitRow], shown: Sequence[LimitRow]) -> str:
    """Return a line on the rows that are not shown, with the smallest of their headrooms; empty if all are shown."""
    left = [row for row in rows if row not in shown]
    if not left:
        return ""
    measured = [row for row in left if row.headroom is not None]
    rules = ", or their rule is kept" if len(measured) < len(left) else ""
    least = f"at least {headroom(measured[0])} headroom" if measured else "a rule that is kept"
    return f"{len(left)} more limits have {least}{rules}; --all prints every limit in every place"


def style(row: LimitRow) -> str:
    """Return the style of a row."""
    return "bold red" if row.broken else "yellow" if tight(row) else ""


def bound(row: LimitRow) -> str:
    """Format a row's bound."""
    return "not declared" if row.bound is None else f"{'≥ ' if row.at_least else ''}{amount(row.bound)}"


def headroom(row: LimitRow) -> str:
    """Format a row's headroom: percent (a tight one rounded down to a tenth), "broken", "rule kept" or "unknown"."""
    if row.broken:
        return "broken"
    if row.bound is None:
        return "unknown"
    if row.headroom is None:
        return "rule kept"
    if tight(row):
        return f"{math.floor(round(row.headroom * 1_000, 6)) / 10:g}%"
    return f"{row.headroom:.0%}"


def beside(row: LimitRow, width: int) -> Iterator[str]:
    """Format a row without a table: headroom and name, then the numbers, both wrapped."""
    room = max(width - ASIDE - GAP, 1)
    first, *rest = wrapped(f"{row.limit}: {row.where}", room)
    yield f"{headroom(row):>{ASIDE}}{' ' * GAP}{first}"
    if row.bound is None:
        numbers = f"{amount(row.use)} {row.unit}, bound not declared"
    else:
        numbers = f"{amount(row.use)} of {'at least ' if row.at_least else ''}{amount(row.bound)} {row.unit}"
    for line in (*rest, *wrapped(numbers, room)):
        yield " " * (ASIDE + GAP) + line


def wrapped(text: str, width: int) -> list[str]:
    """Wrap a name to `width` characters, after spaces and slashes; elsewhere only if a part is longer."""
    lines = [""]
    for part in BREAKS.split(text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [line.rstrip() for line in lines]


def _split(names: Sequence[tuple[str, str]], room: int) -> tuple[int, int] | None:
    """Return the widths of the columns limit and where with the fewest lines; None if a part of a name does not fit into `room` columns."""
    least = [max(len(part.rstrip()) for name in column for part in BREAKS.split(name)) for column in zip(*names, strict=True)]
    widest = max(len(limit) for limit, _ in names)
    best: tuple[int, int] | None = None
    for width in range(least[0], min(widest, room - least[1]) + 1):
        lines = sum(max(len(wrapped(limit, width)), len(wrapped(where, room - width))) for limit, where in names)
        if best is None or lines < best[0]:
            best = (lines, width)
    return None if best is None else (best[1], room - best[1])

"""Limits of a plan in reading order: exceeded limits, then by headroom, then rules without headroom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.plan.limit import TIGHT, ordered, tight
from components.plan.limits import LimitRow

__all__ = ["BAR_WIDTH", "TIGHT", "LimitLine", "LimitLines", "limit_lines"]

BAR_WIDTH = 180.0


@dataclass(frozen=True)
class LimitLine:
    """One limit where it is tightest; places is the number of objects that it applies to, length that of its bar, look its CSS class."""

    row: LimitRow
    places: int
    length: float
    look: str

    @property
    def bound_note(self) -> str:
        """Return the words before the bound: a minimum is marked."""
        if self.row.bound is None:
            return ""
        return "at least " if (self.row.use > self.row.bound) != self.row.broken and self.row.use != self.row.bound else ""


@dataclass(frozen=True)
class LimitLines:
    """Lines in reading order: each exceeded limit, then one line per limit by headroom, rules that are met, and uses without a bound."""

    broken: tuple[LimitLine, ...]
    measured: tuple[LimitLine, ...]
    rules: tuple[LimitLine, ...]
    unbounded: tuple[LimitLine, ...]


def limit_lines(rows: Sequence[LimitRow]) -> LimitLines:
    """Return a plan's rows as lines: every exceeded row, and of each other limit the tightest row, the first among equals."""
    unbroken = [row for row in ordered(rows) if not row.broken]
    return LimitLines(
        broken=tuple(_line(row, 1) for row in ordered(rows) if row.broken),
        measured=_one_per_limit([row for row in unbroken if row.headroom is not None]),
        rules=_one_per_limit([row for row in unbroken if row.headroom is None and row.bound is not None]),
        unbounded=tuple(_line(row, 1) for row in unbroken if row.bound is None),
    )


def _one_per_limit(rows: Sequence[LimitRow]) -> tuple[LimitLine, ...]:
    first: dict[str, LimitRow] = {}
    places: dict[str, int] = {}
    for row in rows:
        first.setdefault(row.limit, row)
        places[row.limit] = places.get(row.limit, 0) + 1
    return tuple(_line(row, places[name]) for name, row in first.items())


def _line(row: LimitRow, places: int) -> LimitLine:
    used = 1.0 - (row.headroom if row.headroom is not None else 0.0)
    look = "broken" if row.broken else "tight" if tight(row) else "kept"
    return LimitLine(row, places, round(min(max(used, 0.0), 1.0) * BAR_WIDTH, 1), look)

"""Decides in which order limits are told, at which place each, and which of them are tight; the terminal and the report agree by it."""

from __future__ import annotations

from collections.abc import Iterable

from components.plan.limit import Row

TIGHT = 0.1
"""Share of headroom below which a limit is tight."""
EXACT_DIGITS = 9
"""Decimals to which a share is compared: 450 of 500 leaves exactly a tenth, which binary fractions miss by less than this."""


def tight(row: Row) -> bool:
    """Whether a row that is not broken has less than TIGHT headroom."""
    return not row.broken and row.headroom is not None and round(row.headroom, EXACT_DIGITS) < TIGHT


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Broken rows first, then by headroom, then kept rules and uses without bound; equals by limit and place."""
    return sorted(rows, key=lambda row: (not row.broken, row.headroom is None, row.headroom or 0.0, row.limit, row.where))


def tightest(rows: Iterable[Row]) -> list[Row]:
    """Each limit once, at its tightest place, the first by name among equals; vCPUs for each family, and of broken rows all."""
    shown: dict[str, Row] = {}
    for row in ordered(rows):
        key = f"{row.limit}/{row.where}" if row.broken or ("/" in row.where and row.unit == "vCPU") else row.limit
        if row.broken or row.limit not in shown:
            shown.setdefault(key, row)
    return list(shown.values())

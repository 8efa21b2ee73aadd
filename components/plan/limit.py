"""Limits, the rows that compare a use with a limit, and their order by headroom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One limit: bound in unit, None if the plan or the region file gives it; reason explains a breach, remedy says what to do.

    at_least inverts the comparison: the use must reach the bound. rule marks a bound that a plan may reach exactly, so that low headroom is
    not reported.
    """

    name: str
    bound: float | None
    unit: str
    source: str
    reason: str
    remedy: str
    at_least: bool = False
    rule: bool = False


@dataclass(frozen=True)
class LimitRow:
    """The use of one limit in one scope.

    use and bound are in unit; bound is None if undeclared. headroom is the unused share of the bound, negative if exceeded, None for
    a satisfied rule and for a use without bound. at_least marks a bound that the use must reach.
    """

    limit: str
    where: str
    use: float
    bound: float | None
    unit: str
    source: str
    reason: str
    remedy: str
    broken: bool
    headroom: float | None
    at_least: bool = False

    def sentence(self) -> str:
        """Return one line: scope, value, bound, reason and remedy."""
        bound = "no declared bound" if self.bound is None else f"the bound of {amount(self.bound)}"
        side = "is under" if self.bound is not None and self.use < self.bound else "is over"
        return f"{self.where}: {self.limit}: {amount(self.use)} {self.unit} {side} {bound}: {self.reason}; {self.remedy}"


def amount(value: float) -> str:
    """Return a number as text with thousands separators and at most two decimals."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0")


def compare(limit: Limit, where: str, use: float, bound: float | None = None, reason: str = "", remedy: str = "") -> LimitRow:
    """Return the row of a use and a limit; bound applies if the limit has none, reason and remedy replace the limit's."""
    limited = limit.bound if limit.bound is not None else bound
    broken, headroom = False, None
    if limited is not None:
        small, large = (limited, use) if limit.at_least else (use, limited)
        broken = small > large
        headroom = None if limit.rule and not broken else 1 - small / large if large else float(small == 0) - 1
    return LimitRow(
        limit=limit.name,
        where=where,
        use=use,
        bound=limited,
        unit=limit.unit,
        source=limit.source,
        reason=reason or limit.reason,
        remedy=remedy or limit.remedy,
        broken=broken,
        headroom=headroom,
        at_least=limit.at_least,
    )


TIGHT = 0.1
"""Share of headroom below which a limit is tight."""
EXACT_DIGITS = 9
"""Decimals in comparisons of shares: 450 of 500 leaves exactly a tenth, which floating point misses by less than this."""


def tight(row: LimitRow) -> bool:
    """Return True if a row is not broken and has less than TIGHT headroom."""
    return not row.broken and row.headroom is not None and round(row.headroom, EXACT_DIGITS) < TIGHT


def ordered(rows: Iterable[LimitRow]) -> list[LimitRow]:
    """Return rows in order: broken ones, then by headroom, then satisfied rules and uses without bound; ties by limit and scope."""
    return sorted(rows, key=lambda row: (not row.broken, row.headroom is None, row.headroom or 0.0, row.limit, row.where))


def tightest(rows: Iterable[LimitRow]) -> list[LimitRow]:
    """Return one row per limit, that of its tightest scope; for vCPUs one row per family, and all broken rows."""
    shown: dict[str, LimitRow] = {}
    for row in ordered(rows):
        key = f"{row.limit}/{row.where}" if row.broken or ("/" in row.where and row.unit == "vCPU") else row.limit
        if row.broken or row.limit not in shown:
            shown.setdefault(key, row)
    return list(shown.values())

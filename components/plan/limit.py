"""What a limit is: a bound, who says so, what a breach means and what to do about it; and one use of it in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One limit: bound in unit, None where the plan or the region file gives it; reason says what a breach means, remedy what to do.

    at_least turns the comparison round: the use must reach the bound. rule marks a bound that a plan is meant to sit at, so that
    nearness says nothing.
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
    """The use of one limit in one place.

    use and bound are in unit; bound is None where nobody has declared it; headroom is the unused share of the bound, negative when broken,
    None for a rule that is kept and for a use without bound; at_least marks a bound that the use must reach.
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
        """One line for a person: where, value, bound, reason and remedy."""
        bound = "no declared bound" if self.bound is None else f"the bound of {amount(self.bound)}"
        side = "is under" if self.bound is not None and self.use < self.bound else "is over"
        return f"{self.where}: {self.limit}: {amount(self.use)} {self.unit} {side} {bound}: {self.reason}; {self.remedy}"


def amount(value: float) -> str:
    """A number for a person: thousands separated, at most two decimals."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0")


def compare(limit: Limit, where: str, use: float, bound: float | None = None, reason: str = "", remedy: str = "") -> LimitRow:
    """Compare a use with a limit; bound, reason and remedy stand in where the table leaves them open, or knows less than the plan."""
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
"""Decimals to which a share is compared: 450 of 500 leaves exactly a tenth, which binary fractions miss by less than this."""


def tight(row: LimitRow) -> bool:
    """Whether a row that is not broken has less than TIGHT headroom."""
    return not row.broken and row.headroom is not None and round(row.headroom, EXACT_DIGITS) < TIGHT


def ordered(rows: Iterable[LimitRow]) -> list[LimitRow]:
    """Broken rows first, then by headroom, then kept rules and uses without bound; equals by limit and place."""
    return sorted(rows, key=lambda row: (not row.broken, row.headroom is None, row.headroom or 0.0, row.limit, row.where))


def tightest(rows: Iterable[LimitRow]) -> list[LimitRow]:
    """Each limit once, at its tightest place, the first by name among equals; vCPUs for each family, and of broken rows all."""
    shown: dict[str, LimitRow] = {}
    for row in ordered(rows):
        key = f"{row.limit}/{row.where}" if row.broken or ("/" in row.where and row.unit == "vCPU") else row.limit
        if row.broken or row.limit not in shown:
            shown.setdefault(key, row)
    return list(shown.values())

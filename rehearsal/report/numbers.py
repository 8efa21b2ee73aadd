"""Number formats of the report."""

from __future__ import annotations


def number(value: float | None) -> str:
    """Return a number with thousands separated, at most two decimals; a dash for none."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(share: float | None) -> str:
    """Return a share in percent: one decimal below ten, so that a small headroom is not written as none; a dash for none."""
    if share is None:
        return "–"
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:,.0f} %"

"""Number formats of the report."""

from __future__ import annotations

import math


def number(value: float | None) -> str:
    """Return a number with thousands separated, at most two decimals; a dash for none."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(share: float | None) -> str:
    """Return a share in percent: one decimal below ten, so that a small share is not written as none; a dash for none."""
    if share is None:
        return "–"
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 9.95 else f"{value:,.0f} %"


def spare(share: float | None) -> str:
    """Return a headroom in percent: below ten rounded down to a tenth, as gpufleet check prints it; a dash for none."""
    if share is not None and 0 < share < 0.1:
        return f"{math.floor(round(share * 1_000, 6)) / 10:.1f} %"
    return percent(share)

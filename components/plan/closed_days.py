"""Days on which no rotation can start, because freezes cover every window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from components.spec.tenancy import Day, Freeze, Window

WEEK = 7
MINUTES_PER_DAY = 1_440


@dataclass(frozen=True)
class ClosedDays:
    """Consecutive days without any time at which rotation may start, both included, and the index of the freeze that ends last."""

    first: date
    last: date
    freeze: int

    @property
    def days(self) -> int:
        """Number of days."""
        return (self.last - self.first).days + 1


def closed_days(windows: Sequence[Window], freezes: Sequence[Freeze]) -> tuple[ClosedDays, ...]:
    """Return the closed days around each freeze, in order, joined where no window opens between two freezes.

    Changes between winter and summer time are ignored: they move the end of a window by an hour.
    """
    found: list[ClosedDays] = []
    for index, freeze in sorted(enumerate(freezes), key=lambda entry: entry[1].first):
        first, last = _widened(windows, freeze)
        if found and (first - found[-1].last).days <= 1:
            before = found.pop()
            latest = index if freeze.last > freezes[before.freeze].last else before.freeze
            found.append(ClosedDays(before.first, max(before.last, last), latest))
        else:
            found.append(ClosedDays(first, last, index))
    return tuple(found)


def _widened(windows: Sequence[Window], freeze: Freeze) -> tuple[date, date]:
    """Return the first and last of a freeze's days and of the days without a window that precede and follow it."""
    first, last = freeze.first.toordinal(), freeze.last.toordinal()
    # A window recurs every week, so a day with an opening is at most a week away.
    while freeze.first.toordinal() - first < WEEK and not _opens(windows, first - 1):
        first -= 1
    while last - freeze.last.toordinal() < WEEK and not _opens(windows, last + 1):
        last += 1
    return date.fromordinal(first), date.fromordinal(last)


def _opens(windows: Sequence[Window], ordinal: int) -> bool:
    """Return True if a window covers a part of the day with an ordinal number, without freezes."""
    today = tuple(Day)[(ordinal - 1) % WEEK]
    yesterday = tuple(Day)[(ordinal - 2) % WEEK]
    return not windows or any(today in window.days or (yesterday in window.days and _crosses_midnight(window)) for window in windows)


def _crosses_midnight(window: Window) -> bool:
    """Return True if a window lasts into the next day."""
    hours, minutes = map(int, window.opens.split(":"))
    return hours * 60 + minutes + window.hours * 60 > MINUTES_PER_DAY

"""Times at which rotation may start on nodes: weekly windows in a time zone, without frozen days."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from itertools import pairwise
from zoneinfo import ZoneInfo

DAYS_AHEAD = 400
"""Days in which an opening is searched; a weekly window opens in them unless a freeze lasts longer."""


@dataclass(frozen=True)
class WeeklyWindow:
    """A window that opens at a local time on some weekdays (Monday is 0), for a number of elapsed hours."""

    weekdays: frozenset[int]
    opens: time
    hours: int


@dataclass(frozen=True)
class Freeze:
    """Local days without starts, both included, and the reason."""

    first: date
    last: date
    reason: str


@dataclass(frozen=True)
class Calendar:
    """Windows and frozen days in a time zone; without windows rotation may always start, except on frozen days.

    A window that opens at a local time which the change to summer time skips opens at the same moment as one hour later would.
    """

    windows: tuple[WeeklyWindow, ...] = ()
    freezes: tuple[Freeze, ...] = ()
    time_zone: str = "UTC"

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def day(self, now: float) -> date:
        """Return the local date."""
        return datetime.fromtimestamp(now, self._zone).date()

    def freeze(self, now: float) -> Freeze | None:
        """Return the freeze of the local day; None without one."""
        if not self.freezes:
            return None
        day = self.day(now)
        return next((one for one in self.freezes if one.first <= day <= one.last), None)

    def midnight(self, day: date) -> float:
        """Return the time at which a local day begins."""
        return datetime.combine(day, time(), self._zone).astimezone(UTC).timestamp()

    def tomorrow(self, now: float) -> float:
        """Return the time at which the next local day begins."""
        return self.midnight(self.day(now) + timedelta(days=1))

    def span(self, now: float) -> tuple[bool, float]:
        """Return whether starts are allowed now, and the next time at which this can change.

        The time is infinite if it never changes. A closed calendar that never opens again within DAYS_AHEAD days returns (False, inf).
        """
        if not self.windows and not self.freezes:
            return True, float("inf")
        for begins, ends in self._open_spans(self.day(now) - timedelta(days=2)):
            if ends <= now:
                continue
            return (True, ends) if begins <= now else (False, begins)
        return False, float("inf")

    def _open_spans(self, first: date) -> Iterator[tuple[float, float]]:
        """Yield the spans in which starts are allowed from a local day, in order, joined where they touch."""
        current: tuple[float, float] | None = None
        for begins, ends in self._pieces(first):
            if current is not None and begins <= current[1]:
                current = current[0], max(current[1], ends)
                continue
            if current is not None:
                yield current
            current = begins, ends
        if current is not None:
            yield current

    def _pieces(self, first: date) -> Iterator[tuple[float, float]]:
        """Yield windows without frozen days, in the order of their beginning."""
        pieces = []
        for number in range(DAYS_AHEAD):
            day = first + timedelta(days=number)
            pieces += [piece for window in self._windows_of(day) for piece in self._without_freezes(*window)]
            # A window lasts at most a day, so that those of later days begin after these.
            pieces.sort()
            limit = self.midnight(day)
            while pieces and pieces[0][0] < limit:
                yield pieces.pop(0)
        yield from pieces

    def _windows_of(self, day: date) -> Iterator[tuple[float, float]]:
        if not self.windows:
            yield self.midnight(day), self.midnight(day + timedelta(days=1))
        for window in self.windows:
            if day.weekday() in window.weekdays:
                begins = datetime.combine(day, window.opens, self._zone).astimezone(UTC).timestamp()
                yield begins, begins + window.hours * 3_600.0

    def _without_freezes(self, begins: float, ends: float) -> Iterator[tuple[float, float]]:
        """Yield the parts of a span that are on no frozen day; a span lasts at most a day and touches at most three."""
        edges = {begins, ends}
        for number in range(-1, 3):
            edges.add(min(max(self.midnight(self.day(begins) + timedelta(days=number)), begins), ends))
        ordered = sorted(edges)
        for start, end in pairwise(ordered):
            if self.freeze(start) is None:
                yield start, end

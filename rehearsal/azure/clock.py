"""Virtual time: a queue of events, ordered by time and then by creation."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""Second at which virtual time starts, so that dates of a rehearsal do not depend on the day of its run."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Planned event of a resource: seconds since 1970, creation order, the resource's key, event name, and plain JSON arguments."""

    at: float
    number: int
    key: str = field(compare=False)
    name: str = field(compare=False)
    args: tuple[Any, ...] = field(compare=False, default=())


class Events:
    """Planned events and the current time. Nothing here waits: the caller advances the time."""

    def __init__(self, now: float = EPOCH) -> None:
        self.now = now
        self._heap: list[Event] = []
        self._made = 0

    def after(self, seconds: float, key: str, name: str, *args: Any) -> Event:
        """Plan an event after a number of seconds, at least 0."""
        return self.at(self.now + max(0.0, seconds), key, name, *args)

    def at(self, moment: float, key: str, name: str, *args: Any) -> Event:
        """Plan an event for a time; a past time means now."""
        self._made += 1
        event = Event(max(moment, self.now), self._made, key, name, args)
        heapq.heappush(self._heap, event)
        return event

    def next_at(self) -> float | None:
        """Return the time of the next event; None without events."""
        return self._heap[0].at if self._heap else None

    def pop_due(self, until: float) -> Event | None:
        """Return the next event due by a time and advance to it; without one, advance to that time and return None."""
        if self._heap and self._heap[0].at <= until:
            event = heapq.heappop(self._heap)
            self.now = max(self.now, event.at)
            return event
        self.now = max(self.now, until)
        return None

    def __len__(self) -> int:
        return len(self._heap)

    def dump(self) -> dict[str, Any]:
        """Return all planned events as plain JSON."""
        events = [[event.at, event.number, event.key, event.name, list(event.args)] for event in sorted(self._heap)]
        return {"now": self.now, "made": self._made, "events": events}

    @classmethod
    def load(cls, data: dict[str, Any]) -> Events:
        """Return the queue that dump described."""
        queue = cls(data["now"])
        queue._made = data["made"]
        queue._heap = [Event(at, number, key, name, tuple(args)) for at, number, key, name, args in data["events"]]
        return queue


def stamp(moment: float) -> str:
    """Return a time in Azure's format."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "0Z")

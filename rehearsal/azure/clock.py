"""Decides the order in time of what will happen: a queue of events by time, and by the order of their making at one time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""Second at which virtual time begins, so that a rehearsal's dates do not depend on the day that it runs."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that will happen to a resource: seconds since 1970, order of making, the resource's key, what, and plain JSON arguments."""

    at: float
    number: int
    key: str = field(compare=False)
    name: str = field(compare=False)
    args: tuple[Any, ...] = field(compare=False, default=())


class Events:
    """The events to come and the present moment; nothing here waits: whoever holds it says how far time goes."""

    def __init__(self, now: float = EPOCH) -> None:
        self.now = now
        self._heap: list[Event] = []
        self._made = 0

    def after(self, seconds: float, key: str, name: str, *args: Any) -> Event:
        """Plan an event; seconds are at least 0."""
        return self.at(self.now + max(0.0, seconds), key, name, *args)

    def at(self, moment: float, key: str, name: str, *args: Any) -> Event:
        """Plan an event for a moment, which is now where it lies in the past."""
        self._made += 1
        event = Event(max(moment, self.now), self._made, key, name, args)
        heapq.heappush(self._heap, event)
        return event

    def next_at(self) -> float | None:
        """When the next event is due; None where none is planned."""
        return self._heap[0].at if self._heap else None

    def pop_due(self, until: float) -> Event | None:
        """The next event due by a moment, with the present moved to it; without one the present moves to the moment itself."""
        if self._heap and self._heap[0].at <= until:
            event = heapq.heappop(self._heap)
            self.now = max(self.now, event.at)
            return event
        self.now = max(self.now, until)
        return None

    def __len__(self) -> int:
        return len(self._heap)

    def dump(self) -> dict[str, Any]:
        """Plain JSON of all that is to come."""
        events = [[event.at, event.number, event.key, event.name, list(event.args)] for event in sorted(self._heap)]
        return {"now": self.now, "made": self._made, "events": events}

    @classmethod
    def load(cls, data: dict[str, Any]) -> Events:
        """The queue that dump told of."""
        queue = cls(data["now"])
        queue._made = data["made"]
        queue._heap = [Event(at, number, key, name, tuple(args)) for at, number, key, name, args in data["events"]]
        return queue


def stamp(moment: float) -> str:
    """A moment as Azure writes it."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "0Z")

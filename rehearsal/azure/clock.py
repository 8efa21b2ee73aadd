"""Virtual time: a queue of events, ordered by time and then by creation."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

REFERENCE_START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""Start of a model without another start, and of every state without a stored start. Draws use moments relative to it."""


def current_second() -> float:
    """Return this machine's time in whole seconds since 1970, so that fractions of a second do not depend on the start."""
    return float(int(time.time()))


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Planned event of a resource: seconds since 1970, creation order, the resource's key, event name, and plain JSON arguments."""

    at: float
    number: int
    key: str = field(compare=False)
    name: str = field(compare=False)
    args: tuple[Any, ...] = field(compare=False, default=())


class Events:
    """Planned events, the start of the model and the current time. Nothing here waits: the caller advances the time."""

    def __init__(self, now: float = REFERENCE_START) -> None:
        self.start = self.now = now
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

    def postpone(self, key: str, seconds: float) -> None:
        """Plan all events of a key later by a number of seconds."""
        self._heap = [replace(event, at=event.at + seconds) if event.key == key else event for event in self._heap]
        heapq.heapify(self._heap)

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
        return {"start": self.start, "now": self.now, "made": self._made, "events": events}

    @classmethod
    def load(cls, data: dict[str, Any]) -> Events:
        """Return the queue that dump described."""
        queue = cls(data.get("start", REFERENCE_START))
        queue.now = data["now"]
        queue._made = data["made"]
        queue._heap = [Event(at, number, key, name, tuple(args)) for at, number, key, name, args in data["events"]]
        return queue


@lru_cache(maxsize=16_384)
def stamp(moment: float) -> str:
    """Return a time in Azure's format."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "0Z")

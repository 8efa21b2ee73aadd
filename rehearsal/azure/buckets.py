"""Token buckets that are refilled at the end of each period, computed on access.

The published example of Microsoft.Compute is one of its tests: https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.call_rates import Rate

PRUNED_AT = 50_000
"""Number of buckets from which those that must be full again are removed."""
FULL_AFTER = 3_600.0
"""Seconds without calls after which every bucket of the table is full again, whatever a scenario's factors are."""

Key = tuple[str, ...]


@dataclass(slots=True)
class Bucket:
    """Tokens left, the start of the current period in seconds since 1970, and calls since the last refill."""

    tokens: int
    since: float
    asked: int = 0

    def refill(self, rate: Rate, now: float) -> None:
        """Add the tokens of the periods since the last refill."""
        periods = int((now - self.since) // rate.period)
        if periods > 0:
            self.tokens = min(rate.capacity, self.tokens + periods * rate.refill)
            self.since += periods * rate.period
            self.asked = 0

    def wait(self, rate: Rate, now: float) -> int:
        """Return the whole seconds until the next refill, at least one."""
        return max(1, math.ceil(self.since + rate.period - now))


@dataclass(frozen=True, slots=True)
class Level:
    """One bucket that counts a call: its key, its rate, and its name in headers and errors."""

    key: Key
    rate: Rate
    name: str


class Buckets:
    """Buckets by key, each full at first."""

    def __init__(self) -> None:
        self._buckets: dict[Key, Bucket] = {}

    def at(self, level: Level, now: float) -> Bucket:
        """Return a bucket with its current tokens."""
        bucket = self._buckets.get(level.key)
        if bucket is None:
            if len(self._buckets) >= PRUNED_AT:
                # A full bucket is as good as none.
                self._buckets = {key: one for key, one in self._buckets.items() if now - one.since < FULL_AFTER}
            bucket = self._buckets[level.key] = Bucket(level.rate.capacity, now)
        bucket.refill(level.rate, now)
        return bucket

    def take(self, levels: list[Level], now: float) -> Level | None:
        """Take one token from every bucket. If any bucket is empty, take none and return its level."""
        met = [(level, self.at(level, now)) for level in levels]
        empty = None
        for level, bucket in met:
            bucket.asked += 1
            if bucket.tokens < 1:
                empty = empty or level
        if empty is None:
            for _, bucket in met:
                bucket.tokens -= 1
        return empty

    def dump(self) -> list[Any]:
        """Return every bucket as plain JSON."""
        return [[list(key), one.tokens, one.since, one.asked] for key, one in self._buckets.items()]

    def load(self, data: list[Any]) -> None:
        """Restore the state that dump returned."""
        self._buckets = {tuple(key): Bucket(tokens, since, asked) for key, tokens, since, asked in data}

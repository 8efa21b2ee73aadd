"""Calls of one rotation to Azure, counted against the published rates, and repeated in order when Azure allows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rehearsal.azure.buckets import Buckets, Level
from rehearsal.azure.call_rates import COMPUTE, SETS
from rehearsal.azure.scenario import Throttling
from rehearsal.azure.throttle import arm_levels, levels_of

PLACE = ("subscription", "location")
"""Key of the buckets: one rotation has one principal, subscription and location."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request on instances of a scale set: the verb as in COMPUTE, and what its acceptance starts."""

    verb: str
    scale_set: str
    accepted: Callable[[], object]


class AzureCalls:
    """Calls in the order in which they were made; a refused call delays those behind it."""

    def __init__(self, throttling: Throttling) -> None:
        self._throttling = throttling
        self._buckets = Buckets()
        self._levels: dict[tuple[str, str], tuple[list[Level], list[Level]]] = {}
        self._queue: deque[Call] = deque()
        self.throttled_until = 0
        self.accepted = 0
        self.refused = 0

    def add(self, call: Call) -> None:
        """Append a call."""
        self._queue.append(call)

    def send(self, now: int) -> int | None:
        """Send the waiting calls that Azure accepts now; return the time to continue at, None if no call is left."""
        if now < self.throttled_until:
            return self.throttled_until if self._queue else None
        while self._queue:
            wait = self._refusal(self._queue[0], now)
            if wait:
                self.refused += 1
                self.throttled_until = now + wait
                return self.throttled_until
            self.accepted += 1
            self._queue.popleft().accepted()
        return None

    def _refusal(self, call: Call, now: int) -> int:
        """Return the seconds after which a call can be repeated, 0 if it is accepted. Azure Resource Manager counts refused calls too."""
        if not self._throttling.enabled:
            return 0
        for levels in self._levels_of(call):
            refused = self._buckets.take(levels, now)
            if refused is not None:
                return self._buckets.at(refused, now).wait(refused.rate, now)
        return 0

    def _levels_of(self, call: Call) -> tuple[list[Level], list[Level]]:
        """Return the buckets of Azure Resource Manager and those of Microsoft.Compute."""
        key = (call.verb, call.scale_set)
        if key not in self._levels:
            policy, per_resource = COMPUTE[SETS, call.verb]
            arm = arm_levels("writes", PLACE[0], "rotation", self._throttling.arm)
            target = call.scale_set if per_resource else ""
            self._levels[key] = (arm, levels_of(policy, PLACE, target, self._throttling.compute))
        return self._levels[key]

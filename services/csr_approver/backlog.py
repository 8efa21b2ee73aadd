"""Which signing request is decided next, when not all can be at once: bounded, and open to new requests however many old ones wait."""

from __future__ import annotations

import heapq
from collections import OrderedDict, defaultdict
from dataclasses import dataclass

from services.csr_approver.approver import NODE_USER, SigningRequest

PER_SENDER = 4
"""Undecided requests kept of one sender; a kubelet has one, and asks anew after a quarter of an hour."""
IN_ALL = 10_000
"""Undecided requests kept in all: more than a cluster of 7,500 nodes sends at once; 40 MB at the longest request that is read."""
FIRST_DELAY_SECONDS = 2.0
LONGEST_DELAY_SECONDS = 60.0


@dataclass
class _Entry:
    """One undecided request: when it is due, in seconds, and how often it was postponed."""

    request: SigningRequest
    due: float
    tries: int = 0


class Backlog:
    """Undecided requests, earliest due first.

    A sender's oldest gives way to its newest. When all places are taken, the request that has waited longest gives way: it was looked at at
    least once, and comes back with the next listing, so that requests that wait for ever cannot keep new ones out.
    """

    def __init__(self, in_all: int = IN_ALL) -> None:
        self._in_all = in_all
        self._entries: dict[str, _Entry] = {}
        self._by_sender: dict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)
        self._postponed: OrderedDict[str, None] = OrderedDict()
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def offer(self, request: SigningRequest) -> bool:
        """Take a request that is not yet held; False when there is no place because all held ones are as new."""
        if request.name in self._entries:
            return True
        own = self._by_sender[request.username]
        if len(own) >= PER_SENDER:
            self.discard(next(iter(own)))
        elif len(self._entries) >= self._in_all:
            if not self._postponed:
                return False
            self.discard(next(iter(self._postponed)))
        self._by_sender[request.username][request.name] = None
        self._entries[request.name] = _Entry(request, request.seen)
        heapq.heappush(self._heap, (request.seen, request.name))
        return True

    def discard(self, name: str) -> None:
        """Forget a request, held or not."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        self._postponed.pop(name, None)
        own = self._by_sender[entry.request.username]
        del own[name]
        if not own:
            del self._by_sender[entry.request.username]

    def due(self, now: float) -> SigningRequest | None:
        """The request that is longest due, which stays held until it is discarded or postponed."""
        while self._heap and self._heap[0][0] <= now:
            at, name = self._heap[0]
            entry = self._entries.get(name)
            if entry is not None and entry.due == at:
                return entry.request
            heapq.heappop(self._heap)
        return None

    def postpone(self, name: str, now: float) -> bool:
        """Look at a held request again later, each time after twice the delay; True the first time."""
        entry = self._entries[name]
        entry.due = now + min(FIRST_DELAY_SECONDS * float(1 << min(entry.tries, 10)), LONGEST_DELAY_SECONDS)
        entry.tries += 1
        self._postponed[name] = None
        heapq.heappush(self._heap, (entry.due, name))
        return entry.tries == 1

    def hasten(self, now: float, scale_set: str = "") -> None:
        """Make postponed requests due, of one scale set's machines or of all: Azure has just said what they wait for."""
        senders = f"{NODE_USER}{scale_set}-" if scale_set else ""
        for name in self._postponed:
            entry = self._entries[name]
            if entry.due > now and entry.request.username.startswith(senders):
                entry.due = now
                heapq.heappush(self._heap, (now, name))

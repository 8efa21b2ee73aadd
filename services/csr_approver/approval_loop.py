"""Which signing request is decided next, when not all can be at once: bounded, and open to new requests however many old ones wait."""

from __future__ import annotations

import functools
import heapq
import logging
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from services.csr_approver.verdicts import (
    NODE_USER,
    Approve,
    Deny,
    Instance,
    InstanceList,
    NodeClaim,
    Postpone,
    ScaleSetList,
    SigningRequest,
    claim_of,
    judge,
)

PER_SENDER = 4
"""Undecided requests kept of one sender; a kubelet has one, and asks anew after a quarter of an hour."""
CAPACITY = 10_000
"""Undecided requests kept in all: more than a cluster of 7,500 nodes sends at once; 40 MB at the longest request that is read."""
FIRST_DELAY_SECONDS = 2.0
LONGEST_DELAY_SECONDS = 60.0


@dataclass
class _QueuedRequest:
    """One undecided request: when it is due, in seconds, and how often it was postponed."""

    request: SigningRequest
    due: float
    tries: int = 0


class Backlog:
    """Undecided requests, earliest due first.

    A sender's oldest gives way to its newest. When all places are taken, the request that has waited longest gives way: it was looked at at
    least once, and comes back with the next listing, so that requests that wait for ever cannot keep new ones out.
    """

    def __init__(self, in_all: int = CAPACITY) -> None:
        self._in_all = in_all
        self._entries: dict[str, _QueuedRequest] = {}
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
        self._entries[request.name] = _QueuedRequest(request, request.seen)
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


QUESTION_SPACING_SECONDS = 2.0
"""Least time between two questions: 30 a minute, of the 360 lists a minute that a subscription has for all that look at its scale sets.

https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
"""
REPEAT_SECONDS = 15.0
"""Least time between two readings of one scale set, and between two of the list of scale sets."""
LONGEST_BACK_OFF_SECONDS = 300.0


class InstanceCache:
    """Azure's last answers, and the questions that decisions wait for.

    A scale set is asked about only if Azure listed it, so that invented names cost at most readings of the list. Times in seconds.
    """

    def __init__(self) -> None:
        self.sets: ScaleSetList | None = None
        self._instances: dict[str, InstanceList] = {}
        self._wanted: dict[str, float] = {}
        self._sets_wanted: float | None = None
        self._asked: dict[str | None, float] = {}
        self._not_before = float("-inf")
        self._failures = 0

    def instances(self, scale_set: str) -> InstanceList | None:
        """Last reading of a scale set."""
        return self._instances.get(scale_set)

    def want(self, scale_set: str, after: float) -> None:
        """Have the scale set read by a reading that begins at or after `after`; the list of scale sets first, if it does not name it."""
        if self.sets is None or scale_set not in self.sets.names:
            self._sets_wanted = max(after, self._sets_wanted or after)
        else:
            self._wanted[scale_set] = max(after, self._wanted.get(scale_set, after))

    def question(self, now: float) -> tuple[bool, str | None]:
        """Whether to ask now, and what: a scale set, or None for the list; of several the one asked about longest ago.

        The question counts as asked from this call on.
        """
        if now < self._not_before:
            return False, None
        candidates: list[str | None] = list(self._wanted)
        if self._sets_wanted is not None:
            candidates.append(None)
        ready = [name for name in candidates if now - self._asked.get(name, float("-inf")) >= REPEAT_SECONDS]
        if not ready:
            return False, None
        chosen = min(ready, key=lambda name: (self._asked.get(name, float("-inf")), name or ""))
        self._asked[chosen] = now
        self._not_before = now + QUESTION_SPACING_SECONDS
        return True, chosen

    def keep_sets(self, names: frozenset[str], read_at: float) -> None:
        """Take Azure's answer to the question for the list, asked at read_at; what is no longer listed is forgotten."""
        self._failures = 0
        self.sets = ScaleSetList(read_at, names)
        if self._sets_wanted is not None and self._sets_wanted <= read_at:
            self._sets_wanted = None
        for mapping in (self._instances, self._wanted):
            for gone in set(mapping) - names:
                del mapping[gone]
        self._asked = {name: at for name, at in self._asked.items() if name is None or name in names}

    def keep_instances(self, scale_set: str, machines: tuple[Instance, ...], read_at: float) -> None:
        """Take Azure's answer to the question for a scale set, asked at read_at."""
        self._failures = 0
        self._instances[scale_set] = InstanceList(read_at, {machine.name: machine for machine in machines})
        if self._wanted.get(scale_set, read_at + 1) <= read_at:
            del self._wanted[scale_set]

    def failed(self, now: float, retry_after: float | None) -> float:
        """Azure gave no answer: ask nothing for as long as it said, or for twice as long as last time; returns that time."""
        self._failures += 1
        doubled = QUESTION_SPACING_SECONDS * float(1 << min(self._failures, 10))
        pause = min(max(doubled, retry_after or 0.0), LONGEST_BACK_OFF_SECONDS)
        self._not_before = now + pause
        return pause


LOG = logging.getLogger("gpufleet.csr-approver")
DECISIONS_PER_STEP = 200
"""Requests looked at between two questions to Azure, so that neither waits for all of the other."""
IDLE_SECONDS = 1.0
known_claim = functools.lru_cache(maxsize=CAPACITY)(claim_of)
"""claim_of, which need not verify a signature again each time that a request is looked at."""


class ServiceUnreachableError(Exception):
    """A service did not answer, or not fully; retry_after in seconds where it said when to ask again."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class RequestChangedError(Exception):
    """The request was changed, decided or deleted by someone else since it was seen."""


class InstanceLookup(Protocol):
    """What Azure says of the cluster's scale sets; every method raises NoAnswer instead of answering in part."""

    def scale_sets(self) -> frozenset[str]:
        """Names of all scale sets of the cluster."""
        ...

    def instances(self, scale_set: str) -> tuple[Instance, ...]:
        """Machines of one scale set; none if Azure says that it does not exist."""
        ...


class DecisionWriter(Protocol):
    """Where decisions are written; both methods raise NoAnswer, or Overtaken."""

    def approve(self, request: SigningRequest, reason: str) -> None:
        """Approve a request."""
        ...

    def deny(self, request: SigningRequest, reason: str) -> None:
        """Deny a request."""
        ...


@dataclass
class ApprovalLoop:
    """Decides the requests that it is offered; single-threaded, with the time passed in, in seconds."""

    scale_set_prefix: str
    lookup: InstanceLookup
    decisions: DecisionWriter
    backlog: Backlog = field(default_factory=Backlog)
    cache: InstanceCache = field(default_factory=InstanceCache)

    def offer(self, request: SigningRequest) -> None:
        """Take a request to decide."""
        if not self.backlog.offer(request):
            LOG.warning("left csr=%s for the next listing: %d requests are undecided", request.name, len(self.backlog))

    def step(self, now: float) -> float:
        """Decide what is due, ask Azure one question if one is open; returns for how long nothing is to be done, in seconds."""
        looked = 0
        while looked < DECISIONS_PER_STEP and (request := self.backlog.due(now)) is not None:
            self._decide(request, now)
            looked += 1
        asked = self._ask(now)
        return 0.0 if asked or looked == DECISIONS_PER_STEP else IDLE_SECONDS

    def _decide(self, request: SigningRequest, now: float) -> None:
        """Look at one request."""
        claim = known_claim(request, self.scale_set_prefix)
        verdict = (
            judge(claim, request.seen, self.cache.sets, self.cache.instances(claim.scale_set), now)
            if isinstance(claim, NodeClaim)
            else claim
        )
        if isinstance(claim, NodeClaim) and isinstance(verdict, Postpone):
            self.cache.want(claim.scale_set, verdict.after)
            self._postpone(request, verdict.reason, now)
            return
        try:
            if isinstance(verdict, Approve):
                self.decisions.approve(request, verdict.reason)
            elif isinstance(verdict, Deny):
                self.decisions.deny(request, verdict.reason)
        except ServiceUnreachableError as missing:
            self._postpone(request, f"the decision could not be written: {missing}", now)
            return
        except RequestChangedError as overtaken:
            LOG.info("left csr=%s sender=%s: %s", request.name, ascii(request.username), overtaken)
        else:
            LOG.info("%s csr=%s sender=%s: %s", type(verdict).__name__.lower(), request.name, ascii(request.username), verdict.reason)
        self.backlog.discard(request.name)

    def _postpone(self, request: SigningRequest, reason: str, now: float) -> None:
        """Look at a request again later; says so the first time only."""
        if self.backlog.postpone(request.name, now):
            LOG.info("wait csr=%s sender=%s: %s", request.name, ascii(request.username), reason)

    def _ask(self, now: float) -> bool:
        """Ask Azure the next question, if one is open and it is time; False if none was asked."""
        asking, scale_set = self.cache.question(now)
        if not asking:
            return False
        try:
            if scale_set is None:
                self.cache.keep_sets(self.lookup.scale_sets(), now)
            else:
                self.cache.keep_instances(scale_set, self.lookup.instances(scale_set), now)
            self.backlog.hasten(now, scale_set or "")
        except ServiceUnreachableError as missing:
            pause = self.cache.failed(now, missing.retry_after)
            LOG.warning("no answer from Azure on %s: %s; asking again in %.0f s", scale_set or "the scale sets", missing, pause)
        return True

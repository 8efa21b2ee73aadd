"""Queue of signing requests, cache of Azure's readings, and the loop between them.

The loop decides a batch of requests, writes its decisions at the same time, and sends at most one query to Azure between two batches.
"""

from __future__ import annotations

import functools
import heapq
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Protocol

from services.csr_approver.attested_data import AttestedMachine
from services.csr_approver.verdicts import (
    NODE_USER,
    Approve,
    Deny,
    FirstClaim,
    Instance,
    InstanceList,
    Postpone,
    ScaleSetList,
    SigningRequest,
    Verdict,
    claim_of,
    judge,
    judge_machine,
)

PER_SENDER = 4
"""Undecided requests per sender; a kubelet has one, and sends a new one after a quarter of an hour."""
CAPACITY = 10_000
"""Undecided requests in all: more than a cluster of 7,500 nodes sends at once; 40 MB at the maximum length of a request."""
FIRST_DELAY_SECONDS = 2.0
LONGEST_DELAY_SECONDS = 60.0


@dataclass
class _QueuedRequest:
    """One undecided request: its sender, due time in seconds, and number of postponements."""

    request: SigningRequest
    sender: str
    due: float
    tries: int = 0


class Backlog:
    """Queue of undecided requests, earliest due first.

    A sender's newest request replaces its oldest. In a full queue, a new request replaces the one that was postponed first. That one was
    checked at least once and returns with the next listing. Requests that wait for ever therefore cannot block new ones.
    """

    def __init__(self, in_all: int = CAPACITY) -> None:
        self._in_all = in_all
        self._entries: dict[str, _QueuedRequest] = {}
        self._by_sender: dict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)
        self._postponed: OrderedDict[str, None] = OrderedDict()
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def offer(self, request: SigningRequest, sender: str = "") -> bool:
        """Add a request; False where the queue is full of requests that have not been checked yet. sender is its user by default."""
        if request.name in self._entries:
            return True
        sender = sender or request.username
        own = self._by_sender[sender]
        if len(own) >= PER_SENDER:
            self.discard(next(iter(own)))
        elif len(self._entries) >= self._in_all:
            if not self._postponed:
                return False
            self.discard(next(iter(self._postponed)))
        self._by_sender[sender][request.name] = None
        self._entries[request.name] = _QueuedRequest(request, sender, request.seen)
        heapq.heappush(self._heap, (request.seen, request.name))
        return True

    def discard(self, name: str) -> None:
        """Remove a request, if it is queued."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        self._postponed.pop(name, None)
        own = self._by_sender[entry.sender]
        del own[name]
        if not own:
            del self._by_sender[entry.sender]

    def take(self, now: float, most: int) -> list[SigningRequest]:
        """Return at most that many due requests, longest due first, and one per sender; the caller discards or postpones each of them.

        One per sender, because the decision on one request of a machine depends on the decision on its previous one.
        """
        taken: dict[str, SigningRequest] = {}
        later: list[tuple[float, str]] = []
        while len(taken) < most and self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            entry = self._entries.get(name)
            if entry is None or entry.due != at:
                continue
            if taken.setdefault(entry.sender, entry.request) is not entry.request:
                later.append((at, name))
        for item in later:
            heapq.heappush(self._heap, item)
        return list(taken.values())

    def postpone(self, name: str, now: float) -> bool:
        """Check a queued request again later, with a doubled delay each time; True the first time."""
        entry = self._entries[name]
        entry.due = now + min(FIRST_DELAY_SECONDS * float(1 << min(entry.tries, 10)), LONGEST_DELAY_SECONDS)
        entry.tries += 1
        self._postponed[name] = None
        heapq.heappush(self._heap, (entry.due, name))
        return entry.tries == 1

    def hasten(self, now: float, scale_set: str = "") -> None:
        """Make postponed requests due, of one scale set's machines or of all, after a new reading of Azure."""
        senders = f"{NODE_USER}{scale_set}-" if scale_set else ""
        for name in self._postponed:
            entry = self._entries[name]
            if entry.due > now and entry.sender.startswith(senders):
                entry.due = now
                heapq.heappush(self._heap, (now, name))


QUERY_SPACING_SECONDS = 2.0
"""Shortest time between two queries: 30 per minute, of the 360 lists per minute that a subscription allows to all clients.

https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits
"""
REPEAT_SECONDS = 15.0
"""Shortest time between two readings of one scale set, and between two of the list of scale sets."""
LONGEST_BACK_OFF_SECONDS = 300.0


class InstanceCache:
    """Last readings of Azure, and the queries that decisions wait for.

    A scale set is queried only if Azure lists it, so that invented names cost at most readings of the list. Times in seconds.
    """

    def __init__(self) -> None:
        self.sets: ScaleSetList | None = None
        self._instances: dict[str, InstanceList] = {}
        self._requested_after: dict[str, float] = {}
        self._list_requested_after: float | None = None
        self._queried_at: dict[str | None, float] = {}
        self._not_before = float("-inf")
        self._failures = 0

    def instances(self, scale_set: str) -> InstanceList | None:
        """Return the last reading of a scale set."""
        return self._instances.get(scale_set)

    def request_reading(self, scale_set: str, after: float) -> None:
        """Request a reading of a scale set that begins at or after `after`; first of the list of scale sets, if it does not contain the
        set."""
        if self.sets is None or scale_set not in self.sets.names:
            self._list_requested_after = max(after, self._list_requested_after or after)
        else:
            self._requested_after[scale_set] = max(after, self._requested_after.get(scale_set, after))

    def next_query(self, now: float) -> tuple[bool, str | None]:
        """Return whether to query now, and what: a scale set, or None for the list; of several the one queried longest ago.

        The query counts as sent from this call on.
        """
        if now < self._not_before:
            return False, None
        candidates: list[str | None] = list(self._requested_after)
        if self._list_requested_after is not None:
            candidates.append(None)
        ready = [name for name in candidates if now - self._queried_at.get(name, float("-inf")) >= REPEAT_SECONDS]
        if not ready:
            return False, None
        chosen = min(ready, key=lambda name: (self._queried_at.get(name, float("-inf")), name or ""))
        self._queried_at[chosen] = now
        self._not_before = now + QUERY_SPACING_SECONDS
        return True, chosen

    def store_sets(self, names: frozenset[str], read_at: float) -> None:
        """Store the list of scale sets, read at read_at; scale sets that are no longer listed are removed."""
        self._failures = 0
        self.sets = ScaleSetList(read_at, names)
        if self._list_requested_after is not None and self._list_requested_after <= read_at:
            self._list_requested_after = None
        for mapping in (self._instances, self._requested_after):
            for gone in set(mapping) - names:
                del mapping[gone]
        self._queried_at = {name: at for name, at in self._queried_at.items() if name is None or name in names}

    def store_instances(self, scale_set: str, machines: tuple[Instance, ...], read_at: float) -> None:
        """Store the machines of a scale set, read at read_at."""
        self._failures = 0
        self._instances[scale_set] = InstanceList(read_at, {machine.name: machine for machine in machines})
        if self._requested_after.get(scale_set, read_at + 1) <= read_at:
            del self._requested_after[scale_set]

    def failed(self, now: float, retry_after: float | None) -> float:
        """Pause all queries after a failure, for Azure's Retry-After or a doubled time; return that time."""
        self._failures += 1
        doubled = QUERY_SPACING_SECONDS * float(1 << min(self._failures, 10))
        pause = min(max(doubled, retry_after or 0.0), LONGEST_BACK_OFF_SECONDS)
        self._not_before = now + pause
        return pause


LOG = logging.getLogger("gpufleet.csr-approver")
DECISIONS_PER_STEP = 200
"""Requests that are checked between two queries to Azure, so that neither delays the other too long."""
IDLE_SECONDS = 1.0
known_claim = functools.lru_cache(maxsize=CAPACITY)(claim_of)
"""claim_of with a cache, so that a signature is verified once."""


class ServiceUnreachableError(Exception):
    """A service did not respond, or not completely; retry_after in seconds from its response."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class RequestChangedError(Exception):
    """Another client changed, decided or deleted the request since it was read."""


class InstanceLookup(Protocol):
    """Readings of the cluster's scale sets; every method raises ServiceUnreachableError instead of returning a part."""

    def scale_sets(self) -> frozenset[str]:
        """Return the names of all scale sets of the cluster."""
        ...

    def instances(self, scale_set: str) -> tuple[Instance, ...]:
        """Return the machines of one scale set; none if Azure has no such scale set."""
        ...


class DecisionWriter(Protocol):
    """Writer of decisions; both methods raise ServiceUnreachableError or RequestChangedError."""

    def approve(self, request: SigningRequest, reason: str) -> None:
        """Approve a request."""
        ...

    def deny(self, request: SigningRequest, reason: str) -> None:
        """Deny a request."""
        ...


class FirstRequestChecks(Protocol):
    """Checks of machines without a certificate; see first_requests.py."""

    def check(self, claim: FirstClaim) -> AttestedMachine | Deny:
        """Return the machine that sent a request, or a verdict if its document does not prove one."""
        ...

    def permit(self, claim: FirstClaim, machine: AttestedMachine) -> Verdict:
        """Approve a proven request after recording it; raise ServiceUnreachableError or RequestChangedError."""
        ...

    def forget_sets(self, names: Set[str]) -> None:
        """Remove the records of machines whose scale set Azure does not list; raise ServiceUnreachableError."""
        ...

    def forget_machines(self, scale_set: str, vm_ids: Set[str]) -> None:
        """Remove the records of machines that Azure does not list in their scale set; raise ServiceUnreachableError."""
        ...


@dataclass(frozen=True)
class _Proven:
    """A first request that Azure's readings confirm; only the record of issues can still prevent its approval."""

    claim: FirstClaim
    machine: AttestedMachine


_Outcome = Verdict | ServiceUnreachableError | RequestChangedError


@dataclass
class ApprovalLoop:
    """Loop that decides requests, with the time as an argument, in seconds.

    run applies a function to each request of a batch: map in turn, an executor's map at the same time. Only calls of the API server are
    made by it, of different senders: an overloaded server answers each call after seconds.
    """

    scale_set_prefix: str
    lookup: InstanceLookup
    decisions: DecisionWriter
    first: FirstRequestChecks
    backlog: Backlog = field(default_factory=Backlog)
    cache: InstanceCache = field(default_factory=InstanceCache)
    run: Callable[..., Iterable[_Outcome]] = map

    def offer(self, request: SigningRequest) -> None:
        """Add a request to decide."""
        if not self.backlog.offer(request, self._sender_of(request)):
            LOG.warning("left csr=%s for the next listing: %d requests are undecided", request.name, len(self.backlog))

    def _sender_of(self, request: SigningRequest) -> str:
        """Return the sender by which requests are limited: machines without a certificate share one user, so it is the proven machine, and
        the request itself without a proof, which is denied at its turn."""
        if request.username.startswith(NODE_USER):
            return request.username
        claim = known_claim(request, self.scale_set_prefix)
        proven = isinstance(claim, FirstClaim) and isinstance(self.first.check(claim), AttestedMachine)
        return f"{NODE_USER}{claim.node}" if proven and isinstance(claim, FirstClaim) else f"csr:{request.name}"

    def step(self, now: float) -> float:
        """Decide the due requests and send one query to Azure if one is open; return the idle time until the next step in seconds."""
        batch = self.backlog.take(now, DECISIONS_PER_STEP)
        verdicts = [self._verdict(request, now) for request in batch]
        for request, outcome in zip(batch, self.run(self._write, batch, verdicts), strict=True):
            self._settle(request, outcome, now)
        queried = self._query(now)
        return 0.0 if queried or len(batch) == DECISIONS_PER_STEP else IDLE_SECONDS

    def _verdict(self, request: SigningRequest, now: float) -> Verdict | _Proven:
        """Return the verdict on a request by the last readings of Azure; without any I/O."""
        claim = known_claim(request, self.scale_set_prefix)
        if isinstance(claim, Deny):
            return claim
        machine = self.first.check(claim) if isinstance(claim, FirstClaim) else None
        if isinstance(machine, Deny):
            return machine
        instances = self.cache.instances(claim.scale_set)
        verdict = judge(claim, request.seen, self.cache.sets, instances, now)
        if isinstance(claim, FirstClaim) and machine is not None and instances is not None and isinstance(verdict, Approve):
            verdict = judge_machine(claim, machine.vm_id, request.seen, instances)
            if isinstance(verdict, Approve):
                return _Proven(claim, machine)
        if isinstance(verdict, Postpone) and verdict.after is not None:
            self.cache.request_reading(claim.scale_set, verdict.after)
        return verdict

    def _write(self, request: SigningRequest, verdict: Verdict | _Proven) -> _Outcome:
        """Write a decision, for a first certificate after recording its issue; return what was decided, or why it was not written."""
        try:
            if isinstance(verdict, _Proven):
                verdict = self.first.permit(verdict.claim, verdict.machine)
            if isinstance(verdict, Approve):
                self.decisions.approve(request, verdict.reason)
            elif isinstance(verdict, Deny):
                self.decisions.deny(request, verdict.reason)
        except (ServiceUnreachableError, RequestChangedError) as error:
            return error
        return verdict

    def _settle(self, request: SigningRequest, outcome: _Outcome, now: float) -> None:
        """Remove a decided request from the queue, or postpone it."""
        if isinstance(outcome, Postpone):
            self._postpone(request, outcome.reason, now)
            return
        if isinstance(outcome, ServiceUnreachableError):
            self._postpone(request, f"the decision could not be written: {outcome}", now)
            return
        if isinstance(outcome, RequestChangedError):
            LOG.info("left csr=%s sender=%s: %s", request.name, ascii(request.username), outcome)
        else:
            LOG.info("%s csr=%s sender=%s: %s", type(outcome).__name__.lower(), request.name, ascii(request.username), outcome.reason)
        self.backlog.discard(request.name)

    def _postpone(self, request: SigningRequest, reason: str, now: float) -> None:
        """Check a request again later; log only the first time."""
        if self.backlog.postpone(request.name, now):
            LOG.info("wait csr=%s sender=%s: %s", request.name, ascii(request.username), reason)

    def _query(self, now: float) -> bool:
        """Send the next query to Azure, if one is open and the time has come; False if none was sent."""
        due, scale_set = self.cache.next_query(now)
        if not due:
            return False
        try:
            if scale_set is None:
                names = self.lookup.scale_sets()
                self.cache.store_sets(names, now)
                self._forget(lambda: self.first.forget_sets(names))
            else:
                machines = self.lookup.instances(scale_set)
                self.cache.store_instances(scale_set, machines, now)
                self._forget(lambda: self.first.forget_machines(scale_set, {one.vm_id for one in machines}))
            self.backlog.hasten(now, scale_set or "")
        except ServiceUnreachableError as missing:
            pause = self.cache.failed(now, missing.retry_after)
            LOG.warning("no response from Azure for %s: %s; next query in %.0f s", scale_set or "the scale sets", missing, pause)
        return True

    def _forget(self, remove: Callable[[], None]) -> None:
        """Remove records; those that remain are removed after a later reading."""
        try:
            remove()
        except ServiceUnreachableError as missing:
            LOG.warning("records of deleted machines were not removed: %s", missing)

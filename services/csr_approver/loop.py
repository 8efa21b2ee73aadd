"""How requests, Azure's answers and decisions meet: one request after the other, and one question to Azure between them."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, field
from typing import Protocol

from services.csr_approver.approver import Approve, Claim, Deny, Instance, SigningRequest, Wait, claim_of, judge
from services.csr_approver.backlog import IN_ALL, Backlog
from services.csr_approver.instance_cache import InstanceCache

LOG = logging.getLogger("gpufleet.csr-approver")
DECISIONS_PER_STEP = 200
"""Requests looked at between two questions to Azure, so that neither waits for all of the other."""
IDLE_SECONDS = 1.0
known_claim = functools.lru_cache(maxsize=IN_ALL)(claim_of)
"""claim_of, which need not verify a signature again each time that a request is looked at."""


class ApiServerUnreachableError(Exception):
    """A service did not answer, or not fully; retry_after in seconds where it said when to ask again."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class LeadershipLostError(Exception):
    """The request was changed, decided or deleted by someone else since it was seen."""


class Lookup(Protocol):
    """What Azure says of the cluster's scale sets; every method raises NoAnswer instead of answering in part."""

    def scale_sets(self) -> frozenset[str]:
        """Names of all scale sets of the cluster."""
        ...

    def instances(self, scale_set: str) -> tuple[Instance, ...]:
        """Machines of one scale set; none if Azure says that it does not exist."""
        ...


class Decisions(Protocol):
    """Where decisions are written; both methods raise NoAnswer, or Overtaken."""

    def approve(self, request: SigningRequest, reason: str) -> None:
        """Approve a request."""
        ...

    def deny(self, request: SigningRequest, reason: str) -> None:
        """Deny a request."""
        ...


@dataclass
class Approver:
    """Decides the requests that it is offered; single-threaded, with the time passed in, in seconds."""

    scale_set_prefix: str
    lookup: Lookup
    decisions: Decisions
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
            judge(claim, request.seen, self.cache.sets, self.cache.instances(claim.scale_set), now) if isinstance(claim, Claim) else claim
        )
        if isinstance(claim, Claim) and isinstance(verdict, Wait):
            self.cache.want(claim.scale_set, verdict.after)
            self._postpone(request, verdict.reason, now)
            return
        try:
            if isinstance(verdict, Approve):
                self.decisions.approve(request, verdict.reason)
            elif isinstance(verdict, Deny):
                self.decisions.deny(request, verdict.reason)
        except ApiServerUnreachableError as missing:
            self._postpone(request, f"the decision could not be written: {missing}", now)
            return
        except LeadershipLostError as overtaken:
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
        except ApiServerUnreachableError as missing:
            pause = self.cache.failed(now, missing.retry_after)
            LOG.warning("no answer from Azure on %s: %s; asking again in %.0f s", scale_set or "the scale sets", missing, pause)
        return True

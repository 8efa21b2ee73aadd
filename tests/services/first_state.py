"""Nodes and records in memory, and first requests with attested data."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import attestation_chain as chain
import signing_requests as made
from cryptography.hazmat.primitives.asymmetric import ec

from components.plan.access import BOOTSTRAP_GROUP
from rehearsal.arm.attested_data import Signer
from services.csr_approver.approval_loop import RequestChangedError
from services.csr_approver.first_requests import FirstRequests, IssueRecord, NodeState
from services.csr_approver.verdicts import CLIENT_SIGNER, SigningRequest

CLIENT_USAGES = frozenset({"digital signature", "client auth"})
TOKEN_USER = "system:bootstrap:gpuf0a"  # noqa: S105 - a user


@dataclass
class Nodes:
    """Nodes by name."""

    states: dict[str, NodeState] = field(default_factory=dict)

    def state(self, node: str) -> NodeState | None:
        return self.states.get(node)


@dataclass
class Records:
    """Records by vmId; a write of another version than the stored one fails, as on an API server."""

    stored: dict[str, IssueRecord] = field(default_factory=dict)
    writes: int = 0
    crash: Callable[[], None] = lambda: None

    def find(self, vm_id: str) -> IssueRecord | None:
        return self.stored.get(vm_id)

    def write(self, record: IssueRecord) -> None:
        present = self.stored.get(record.vm_id)
        if record.version != (present.version if present else ""):
            raise RequestChangedError("another approver changed the record")
        self.writes += 1
        self.stored[record.vm_id] = replace(record, version=str(self.writes))
        self.crash()

    def all(self) -> tuple[IssueRecord, ...]:
        return tuple(self.stored.values())

    def remove(self, record: IssueRecord) -> None:
        del self.stored[record.vm_id]


@dataclass
class Clock:
    """A time of day that a test moves."""

    now: datetime.datetime = chain.NOW

    def __call__(self) -> datetime.datetime:
        return self.now


def checks(nodes: Nodes | None = None, records: Records | None = None, clock: Clock | None = None) -> FirstRequests:
    """Return the checks of first requests with a state in memory."""
    return FirstRequests(chain.SUBSCRIPTION, chain.trust(), nodes or Nodes(), records or Records(), clock or Clock())


def first_request(
    node: str = made.NODE,
    key: ec.EllipticCurvePrivateKey = chain.KEY,
    document: bytes | None = None,
    *,
    name: str = "node-csr-1",
    seen: float = 0.0,
    signer: Signer | None = None,
) -> SigningRequest:
    """Return a first request of a machine for a node's name; the document is one for its key by default."""
    text = made.pem(None, made.subject(f"system:node:{node}"), key)
    own = chain.document(signer, chain.content(key=key)) if document is None else document
    groups = (BOOTSTRAP_GROUP, "system:bootstrappers", "system:authenticated")
    request = made.request(text, username=TOKEN_USER, groups=groups, usages=CLIENT_USAGES, signer=CLIENT_SIGNER, name=name, seen=seen)
    return replace(request, document=own)

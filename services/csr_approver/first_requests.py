"""Decision on a machine's first client certificate: attested data proves the machine, and a record of each issue prevents a second one.

Every process of a machine can read its attested data. While the node is Ready, its kubelet has a certificate, so that a further request is
suspicious: it stays pending, because a denial would be final. Afterwards a machine gets another certificate only after a recorded reimage,
or if its Node was deleted. The same key may be certified again, because only its holder can use the certificate.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Protocol

from services.csr_approver import attested_data
from services.csr_approver.attested_data import AttestedMachine, DocumentRefusedError, Trust
from services.csr_approver.verdicts import Approve, Deny, FirstClaim, Postpone, Verdict

DOCUMENT_ANNOTATION = "gpufleet.io/attested-data"
"""Annotation of a signing request: attested data of the machine that sends it, in base64."""
ISSUERS_ANNOTATION = "gpufleet.io/attested-data-issuers"
"""Annotation of a signing request: certificates in PEM that the chain of the attested data's signer lacks."""
FORGET_AFTER = datetime.timedelta(hours=1)
"""Age of a record below which it is not removed: Azure's lists may lack a machine that was just created."""
KNOWN_DOCUMENTS = 10_000


@dataclass(frozen=True)
class NodeState:
    """The state of a Node: whether it is Ready, its creation, and the recorded reimage, if there is one."""

    ready: bool
    created: datetime.datetime
    reimaged: datetime.datetime | None


@dataclass(frozen=True)
class IssueRecord:
    """The last first certificate of a machine: node, scale set, SHA-256 of the public key, time; version is the resourceVersion."""

    vm_id: str
    node: str
    scale_set: str
    key: str
    issued: datetime.datetime
    version: str = ""


class NodeStates(Protocol):
    """Reader of Nodes."""

    def state(self, node: str) -> NodeState | None:
        """Return the state of a Node, None if there is none; raise ServiceUnreachableError."""
        ...


class IssueRecords(Protocol):
    """Records of issues by vmId; every method raises ServiceUnreachableError without a response."""

    def find(self, vm_id: str) -> IssueRecord | None:
        """Return the record of a machine."""
        ...

    def write(self, record: IssueRecord) -> None:
        """Create a record, or replace the version that it names; raise RequestChangedError if another approver was faster."""
        ...

    def all(self) -> tuple[IssueRecord, ...]:
        """Return all records."""
        ...

    def remove(self, record: IssueRecord) -> None:
        """Remove a record, if it has not changed."""
        ...


def refusal(claim: FirstClaim, record: IssueRecord | None, node: NodeState | None) -> str | None:
    """Return why a proven machine gets no certificate now, or None if it may have one."""
    if node is not None and node.ready:
        return f"node {claim.node} is Ready, so that its machine has a certificate"
    if node is None or (record is not None and record.key == claim.key):
        return None
    last = max(node.created, record.issued) if record is not None else node.created
    if node.reimaged is not None and node.reimaged > last:
        return None
    return (
        f"machine {claim.node} had a certificate for another key at {last.isoformat()}, and neither was a reimage recorded since then, "
        f"nor its Node deleted; if you trust the machine, delete Node {claim.node}"
    )


def check_machine(claim: FirstClaim, machine: AttestedMachine, subscription: str) -> str | None:
    """Return why a verified document does not prove a claim, or None if it does, apart from the machine's name."""
    if machine.nonce != claim.nonce:
        return "the attested data is bound to another key"
    if machine.subscription != subscription.lower():
        return f"the attested data is of subscription {machine.subscription!a}, not of {subscription}"
    return None


@dataclass
class FirstRequests:
    """Checks of first requests; clock returns the time of day."""

    subscription: str
    trust: Trust
    nodes: NodeStates
    records: IssueRecords
    clock: Callable[[], datetime.datetime]
    _verified: OrderedDict[tuple[bytes, bytes], AttestedMachine | Deny] = field(default_factory=OrderedDict, init=False)

    def check(self, claim: FirstClaim) -> AttestedMachine | Deny:
        """Return the machine that sent a request, or a verdict if its document does not prove one."""
        if not claim.document:
            return Deny(f"the request has no attested data in annotation {DOCUMENT_ANNOTATION}")
        found = self._verify(claim.document, claim.issuers)
        if isinstance(found, Deny):
            return found
        problem = check_machine(claim, found, self.subscription)
        try:
            attested_data.check_times(found, self.clock())
        except DocumentRefusedError as refused:
            problem = problem or f"the attested data is refused: {refused}"
        return found if problem is None else Deny(problem)

    def _verify(self, document: bytes, issuers: bytes) -> AttestedMachine | Deny:
        """Verify a document once."""
        found = self._verified.get((document, issuers))
        if found is None:
            try:
                found = attested_data.verify(document, self.trust, self.clock(), issuers)
            except DocumentRefusedError as refused:
                found = Deny(f"the attested data is refused: {refused}")
            self._verified[document, issuers] = found
            if len(self._verified) > KNOWN_DOCUMENTS:
                self._verified.popitem(last=False)
        return found

    def permit(self, claim: FirstClaim, machine: AttestedMachine) -> Verdict:
        """Approve a proven request after recording it; raise ServiceUnreachableError or RequestChangedError."""
        node, record = self.nodes.state(claim.node), self.records.find(machine.vm_id)
        problem = refusal(claim, record, node)
        if problem is not None:
            return Postpone(problem, None)
        if record is None or record.key != claim.key:
            version = record.version if record is not None else ""
            self.records.write(IssueRecord(machine.vm_id, claim.node, claim.scale_set, claim.key, self.clock(), version))
        return Approve(f"Azure attests that the sender is machine {claim.node}, vmId {machine.vm_id}")

    def forget_sets(self, names: Set[str]) -> None:
        """Remove the records of machines whose scale set Azure does not list."""
        self._forget(lambda record: record.scale_set not in names)

    def forget_machines(self, scale_set: str, vm_ids: Set[str]) -> None:
        """Remove the records of machines that Azure does not list in their scale set."""
        self._forget(lambda record: record.scale_set == scale_set and record.vm_id not in vm_ids)

    def _forget(self, gone: Callable[[IssueRecord], bool]) -> None:
        before = self.clock() - FORGET_AFTER
        for record in self.records.all():
            if record.issued < before and gone(record):
                self.records.remove(record)

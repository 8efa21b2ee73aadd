"""A machine gets its own node's first certificate, once, and nobody gets another node's."""

from __future__ import annotations

import datetime
from dataclasses import replace

import attestation_chain as chain
import pytest
import signing_requests as made
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from first_state import CLIENT_USAGES, TOKEN_USER, Clock, Nodes, Records, checks, first_request
from hypothesis import given
from hypothesis import strategies as st
from test_csr_loop import Book, Fleet, run

from services.csr_approver.approval_loop import ApprovalLoop, ServiceUnreachableError
from services.csr_approver.attested_data import nonce_of
from services.csr_approver.first_requests import FirstRequests, NodeState, refusal
from services.csr_approver.verdicts import CLIENT_SIGNER, NODE_USER, FirstClaim, Instance, SigningRequest, claim_of

OTHER = f"{made.SCALE_SET}-00000b"
OTHER_VM = "99999999-2222-3333-4444-555555555555"
MINUTE = datetime.timedelta(minutes=1)
MACHINES = (
    Instance(made.NODE, frozenset({made.ADDRESS}), "succeeded", chain.VM_ID),
    Instance(OTHER, frozenset({"10.12.0.9"}), "succeeded", OTHER_VM),
)


def approver(first: FirstRequests | None = None, book: Book | None = None) -> tuple[ApprovalLoop, Book]:
    """Return an approver of two machines, and its decisions."""
    decisions = book or Book()
    return ApprovalLoop(made.PREFIX, Fleet({made.SCALE_SET: MACHINES}), decisions, first or checks()), decisions


def decided(request: SigningRequest, first: FirstRequests | None = None, until: float = 30.0) -> str:
    """Return the reason of the decision on a request, "pending" without one."""
    loop, book = approver(first)
    loop.offer(request)
    run(loop, until)
    approved, denied = book.approved.get(request.name), book.denied.get(request.name)
    return f"approved: {approved}" if approved else f"denied: {denied}" if denied else "pending"


def ready(at: datetime.datetime = chain.NOW, *, is_ready: bool = True, reimaged: datetime.datetime | None = None) -> Nodes:
    """Return the node that the machine registered."""
    return Nodes({made.NODE: NodeState(is_ready, at, reimaged)})


def test_a_machine_gets_a_certificate_of_its_own_name() -> None:
    records = Records()
    assert decided(first_request(), checks(records=records)).startswith("approved: Azure attests that the sender is machine")
    (record,) = records.all()
    assert (record.vm_id, record.node, record.scale_set) == (chain.VM_ID, made.NODE, made.SCALE_SET)


def test_a_machine_does_not_get_a_certificate_of_another_machines_name() -> None:
    assert decided(first_request(OTHER)) == (
        f"denied: the attested data is of vmId '{chain.VM_ID}', and machine {OTHER} has vmId {OTHER_VM}"
    )


def test_a_token_without_a_document_gets_nothing() -> None:
    assert "no attested data" in decided(first_request(document=b""))


def test_a_document_of_another_key_is_refused_as_a_replay_or_a_cached_nonce() -> None:
    assert decided(first_request(key=chain.OTHER_KEY, document=chain.document())) == "denied: the attested data is bound to another key"


def test_a_document_of_another_subscription_is_refused() -> None:
    text = chain.content(subscription="00000000-0000-0000-0000-000000000000")
    assert "is of subscription" in decided(first_request(document=chain.document(text=text)))


def test_a_document_of_another_authority_is_refused() -> None:
    stranger = chain.signer(label="stranger")
    document = stranger.sign(chain.content(), (stranger.issuer, stranger.root))
    assert "no valid chain to a trusted root" in decided(first_request(document=document))


def test_a_document_that_expires_while_the_request_waits_is_refused() -> None:
    clock = Clock()
    loop, book = approver(checks(ready(), clock=clock))
    loop.offer(first_request())
    now = run(loop, 30.0)
    assert not book.denied
    clock.now += datetime.timedelta(hours=6)
    run(loop, 200.0, now)
    assert "expired" in book.denied["node-csr-1"]


@pytest.mark.parametrize(
    "changed",
    [
        {"groups": frozenset({"system:bootstrappers", "system:authenticated"})},
        {"usages": frozenset({"digital signature", "client auth", "server auth"})},
        {"usages": frozenset({"client auth"})},
        {"pem": made.pem(key=chain.KEY)},
        {"pem": made.pem(None, made.subject(organization="system:masters"), chain.KEY)},
        {"pem": made.pem(None, made.subject("system:admin"), chain.KEY)},
        {"pem": made.pem(None, None, chain.KEY, x509.BasicConstraints(ca=True, path_length=None))},
        {"pem": made.pem(None, made.subject(f"{NODE_USER}{made.NODE.upper()}"), chain.KEY)},
        {"pem": made.pem(None, made.subject("system:node:frontier-api-0"), chain.KEY)},
    ],
)
def test_a_request_of_another_shape_is_denied(changed: dict[str, object]) -> None:
    assert decided(replace(first_request(), **changed)).startswith("denied: ")  # type: ignore[arg-type]


def test_a_node_renews_its_own_certificate_while_azure_lists_the_machine() -> None:
    text = made.pem(None, key=chain.OTHER_KEY)
    renewal = made.request(text, usages=CLIENT_USAGES, signer=CLIENT_SIGNER)
    assert decided(renewal) == f"approved: the name is that of machine {made.NODE}"
    assert "not the sender's own" in decided(replace(renewal, username=f"{NODE_USER}{OTHER}"))
    gone = made.request(made.pem(None, made.subject(f"{NODE_USER}{made.SCALE_SET}-0000zz")), node=f"{made.SCALE_SET}-0000zz")
    assert "Azure has no machine" in decided(replace(gone, usages=CLIENT_USAGES, signer=CLIENT_SIGNER), until=400.0)


def test_while_the_node_is_ready_a_first_request_stays_pending() -> None:
    assert decided(first_request(), checks(ready()), until=600.0) == "pending"


def test_the_same_key_is_certified_again_and_another_is_not() -> None:
    nodes, records, clock = Nodes(), Records(), Clock()
    first = checks(nodes, records, clock)
    assert decided(first_request(), first).startswith("approved")
    nodes.states = ready(is_ready=False).states
    assert decided(first_request(name="again"), first).startswith("approved")
    assert decided(first_request(key=chain.OTHER_KEY), first, until=600.0) == "pending"
    assert records.writes == 1


@pytest.mark.parametrize("event", ["reimaged", "deleted"])
def test_a_reimaged_machine_or_one_without_its_node_gets_its_name_again(event: str) -> None:
    records, clock = Records(), Clock()
    assert decided(first_request(), checks(Nodes(), records, clock)).startswith("approved")
    clock.now += MINUTE
    reimaged = ready(is_ready=False, reimaged=clock.now)
    nodes = Nodes() if event == "deleted" else reimaged
    again = first_request(key=chain.OTHER_KEY)
    assert decided(again, checks(nodes, records, clock)).startswith("approved")
    # The record of the reimage is used up.
    nodes = ready(is_ready=False, reimaged=clock.now - MINUTE)
    third = ec.derive_private_key(13, ec.SECP256R1())
    assert decided(first_request(key=third), checks(nodes, records, clock), until=100.0) == "pending"


def test_a_node_from_before_the_records_needs_a_reimage_too() -> None:
    assert decided(first_request(), checks(ready(is_ready=False)), until=100.0) == "pending"


def test_after_a_crash_between_record_and_approval_the_same_key_gets_its_certificate() -> None:
    records = Records()

    def crash() -> None:
        raise ServiceUnreachableError("the process ends")

    records.crash = crash
    assert decided(first_request(), checks(records=records), until=1.0) == "pending"
    records.crash = lambda: None
    assert decided(first_request(), checks(records=records)).startswith("approved")
    assert records.writes == 1


def test_of_two_approvers_with_two_keys_one_records_the_issue() -> None:
    records = Records()
    slow = Records()
    assert decided(first_request(), checks(records=records)).startswith("approved")
    # The second has read the records before the first wrote.
    slow.find = lambda _vm_id: None  # type: ignore[method-assign]
    slow.stored = records.stored
    assert decided(first_request(key=chain.OTHER_KEY), checks(records=slow), until=10.0) == "pending"


def test_records_of_machines_that_azure_no_longer_lists_are_removed_after_an_hour() -> None:
    records, clock = Records(), Clock()
    first = checks(records=records, clock=clock)
    assert decided(first_request(), first).startswith("approved")
    first.forget_machines(made.SCALE_SET, {OTHER_VM})
    assert records.all()
    clock.now += datetime.timedelta(hours=2)
    first.forget_machines(made.SCALE_SET, {chain.VM_ID})
    first.forget_machines("frontier-h100-001", set())
    first.forget_sets({made.SCALE_SET})
    assert records.all()
    first.forget_machines(made.SCALE_SET, {OTHER_VM})
    assert not records.all()


def test_requests_without_proof_do_not_displace_those_of_a_machine() -> None:
    loop, book = approver(checks(ready(is_ready=False, reimaged=chain.NOW + MINUTE)))
    for number in range(50):
        loop.offer(first_request(document=b"none", name=f"bogus-{number}"))
    loop.offer(first_request())
    for number in range(50, 100):
        loop.offer(first_request(document=b"none", name=f"bogus-{number}"))
    run(loop, 30.0)
    assert set(book.approved) == {"node-csr-1"}
    assert len(book.denied) == 100


def test_a_machine_has_at_most_four_undecided_requests() -> None:
    loop, _ = approver(checks(ready()))
    for number in range(10):
        key = ec.derive_private_key(100 + number, ec.SECP256R1())
        loop.offer(first_request(key=key, name=f"csr-{number}"))
    assert len(loop.backlog) == 4


TIMES = st.one_of(st.none(), st.integers(-100, 100).map(lambda minutes: chain.NOW + minutes * MINUTE))


@given(ready_now=st.booleans(), reimaged=TIMES, created=st.integers(-100, 100))
def test_another_key_is_certified_only_after_a_reimage_while_the_node_exists(
    *, ready_now: bool, reimaged: datetime.datetime | None, created: int
) -> None:
    records = Records()
    assert decided(first_request(), checks(records=records)).startswith("approved")
    claim = claim_of(first_request(key=chain.OTHER_KEY), made.PREFIX)
    assert isinstance(claim, FirstClaim)
    assert claim.nonce == nonce_of(chain.OTHER_KEY.public_key())
    node = NodeState(ready_now, chain.NOW + created * MINUTE, reimaged)
    allowed = refusal(claim, records.find(chain.VM_ID), node) is None
    assert allowed == (not ready_now and reimaged is not None and reimaged > max(chain.NOW, node.created))


def test_a_token_user_does_not_renew() -> None:
    request = replace(first_request(document=b""), username=TOKEN_USER)
    assert "no attested data" in decided(request)

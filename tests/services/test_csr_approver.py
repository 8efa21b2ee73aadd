"""Approve only a kubelet's own name and its own machine's addresses."""

from __future__ import annotations

import base64

import pytest
import signing_requests as made
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from components.plan import naming
from services.csr_approver.verdicts import (
    APPEARANCE_SECONDS,
    FRESH_SECONDS,
    PEM_BYTES,
    Approve,
    Deny,
    InstanceList,
    NodeClaim,
    Postpone,
    ScaleSetList,
    SigningRequest,
    Verdict,
    claim_of,
    judge,
)
from stacks.load import load_plan

NOW = 20.0
DER = x509.load_pem_x509_csr(made.pem()).public_bytes(serialization.Encoding.DER)


def verdict(
    request: SigningRequest,
    sets: ScaleSetList | None = made.scale_sets(),  # noqa: B008 - frozen
    instances: InstanceList | None = made.machines(),  # noqa: B008 - frozen
    now: float = NOW,
) -> Verdict:
    """Return the verdict on a request for the last readings of Azure."""
    claim = claim_of(request, made.PREFIX)
    return judge(claim, request.seen, sets, instances, now) if isinstance(claim, NodeClaim) else claim


def denial(request: SigningRequest) -> str:
    """Why a request is denied without asking Azure."""
    claim = claim_of(request, made.PREFIX)
    assert isinstance(claim, Deny), claim
    assert "\n" not in claim.reason
    return claim.reason


def test_what_a_kubelet_asks_for_its_own_machine_is_approved() -> None:
    assert verdict(made.request()) == Approve(f"name and addresses are those of machine {made.NODE}")


@pytest.mark.parametrize("names", [(made.address(made.ADDRESS),), (x509.DNSName(made.NODE),)])
def test_a_part_of_the_machines_own_names_is_approved(names: tuple[x509.GeneralName, ...]) -> None:
    assert isinstance(verdict(made.request(made.pem(names))), Approve)


def test_a_kubelet_with_an_rsa_key_and_its_usages_is_approved() -> None:
    key = rsa.generate_private_key(65_537, 2_048)
    usages = made.KUBELET_USAGES | {"key encipherment"}
    assert isinstance(verdict(made.request(made.pem(key=key), usages=usages)), Approve)


def test_a_machine_that_is_still_being_created_is_approved_because_it_boots_before_azure_is_done() -> None:
    assert isinstance(verdict(made.request(), instances=made.machines(state="creating")), Approve)


def test_the_request_of_another_signer_is_never_approved() -> None:
    assert "signer" in denial(made.request(signer="kubernetes.io/kube-apiserver-client"))


@pytest.mark.parametrize(
    ("username", "groups"),
    [
        ("system:serviceaccount:default:default", ("system:serviceaccounts",)),
        (f"system:node:{made.NODE}", ("system:authenticated",)),
        ("system:bootstrap:abcdef", ("system:bootstrappers", "system:nodes")),
        ("", ("system:nodes",)),
    ],
)
def test_a_sender_that_is_no_node_is_denied(username: str, groups: tuple[str, ...]) -> None:
    assert "is not a node" in denial(made.request(username=username, groups=groups))


@pytest.mark.parametrize(
    "own_subject",
    [
        made.subject("system:node:frontier-h100-000-00000b"),
        made.subject(organization="system:masters"),
        x509.Name([*made.subject(), x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:masters")]),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"system:node:{made.NODE}")]),
        x509.Name([]),
    ],
)
def test_a_subject_other_than_the_senders_own_is_denied(own_subject: x509.Name) -> None:
    assert "not the sender's own" in denial(made.request(made.pem(own_subject=own_subject)))


@pytest.mark.parametrize(
    "name",
    [
        x509.RFC822Name("root@fleet.internal"),
        x509.UniformResourceIdentifier("spiffe://fleet.internal/node"),
        x509.DirectoryName(made.subject()),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4")),
        x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x0c\x01a"),
    ],
)
def test_a_name_that_is_neither_dns_nor_address_is_denied(name: x509.GeneralName) -> None:
    assert "neither" in denial(made.request(made.pem((*made.KUBELET_NAMES, name))))


@pytest.mark.parametrize(
    "dns", ["frontier-h100-000-00000b", f"{made.NODE}.fleet.internal", "kubernetes.default.svc", "*", made.NODE.upper(), f"{made.NODE}."]
)
def test_a_dns_name_other_than_the_nodes_own_is_denied(dns: str) -> None:
    assert "is not the node's own name" in denial(made.request(made.pem((x509.DNSName(dns), made.address(made.ADDRESS)))))


@pytest.mark.parametrize("names", [None, ()])
def test_a_request_that_asks_for_no_name_is_denied(names: tuple[x509.GeneralName, ...] | None) -> None:
    assert "no name" in denial(made.request(made.pem(names)))


def test_a_request_with_another_extension_is_denied() -> None:
    assert "extensions" in denial(made.request(made.pem(extra=x509.BasicConstraints(ca=True, path_length=None))))


@pytest.mark.parametrize(
    "usages", [(), ("server auth",), ("digital signature", "client auth"), (*made.KUBELET_USAGES, "client auth"), ("any",)]
)
def test_usages_that_a_kubelet_does_not_ask_for_are_denied(usages: tuple[str, ...]) -> None:
    assert "usages" in denial(made.request(usages=usages))


def test_a_weak_key_is_denied() -> None:
    weak = rsa.generate_private_key(65_537, 1_024)  # noqa: S505 - to be denied
    assert "1024 bits" in denial(made.request(made.pem(key=weak)))


def test_a_key_of_a_kind_that_kubelets_do_not_make_is_denied() -> None:
    key = dsa.generate_private_key(2_048)
    builder = x509.CertificateSigningRequestBuilder().subject_name(made.subject())
    text = builder.add_extension(x509.SubjectAlternativeName(made.KUBELET_NAMES), False).sign(key, hashes.SHA256())
    assert "kind" in denial(made.request(text.public_bytes(serialization.Encoding.PEM)))


def as_pem(der: bytes) -> bytes:
    """DER bytes in the frame of a certificate request."""
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE REQUEST-----\n"


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public key's bytes, as a request holds them."""
    return key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def test_a_request_for_a_key_that_the_sender_does_not_hold_is_denied() -> None:
    stolen = DER.replace(point(made.KEY), point(ec.generate_private_key(ec.SECP256R1())))
    assert stolen != DER
    assert "own key" in denial(made.request(as_pem(stolen)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello",
        made.pem() + made.pem(),
        b"x" + made.pem(),
        made.pem() + b"-----BEGIN CERTIFICATE REQUEST-----",
        made.pem().replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"),
        as_pem(b"\x30\x03\x02\x01\x05"),
        b" " * (PEM_BYTES + 1),
    ],
    ids=["nothing", "a word", "two", "something before", "a beginning behind", "other words", "no request", "too long"],
)
def test_a_text_that_is_not_exactly_one_request_is_denied(text: bytes) -> None:
    assert denial(made.request(text))


@pytest.mark.parametrize(
    "node",
    [
        "frontier",
        "frontier-api-000001",
        "frontier-h100-000-0000",
        "frontier-h100-000-00000A",
        "research-a-h100-000-00000a",
        "frontier_x-00000a",
    ],
)
def test_a_node_whose_name_is_no_machine_of_a_scale_set_of_the_cluster_is_denied(node: str) -> None:
    assert "is not the name of a machine" in denial(made.request(node=node))


def test_an_address_of_another_machine_is_denied() -> None:
    foreign = made.request(made.pem((*made.KUBELET_NAMES, made.address("10.12.0.40"))))
    assert verdict(foreign) == Deny(f"address 10.12.0.40 is not one of {made.NODE}, which has {made.ADDRESS}")


def test_a_pods_address_on_the_own_machine_is_denied() -> None:
    assert isinstance(verdict(made.request(made.pem((made.address(made.POD_ADDRESS),)))), Deny)


@pytest.mark.parametrize("state", ["deleting", "deleted"])
def test_a_machine_that_is_being_deleted_is_denied(state: str) -> None:
    assert verdict(made.request(), instances=made.machines(state=state)) == Deny(f"machine {made.NODE} is {state}")


@pytest.mark.parametrize("state", ["failed", "canceled", "none", ""])
def test_a_machine_in_a_state_that_says_neither_waits(state: str) -> None:
    assert isinstance(verdict(made.request(), instances=made.machines(state=state)), Postpone)


def test_nothing_is_decided_before_azure_has_said_anything() -> None:
    assert isinstance(verdict(made.request(), sets=None, instances=None), Postpone)
    assert isinstance(verdict(made.request(), instances=None), Postpone)


def test_an_old_answer_of_azure_is_no_answer() -> None:
    late = 10.0 + FRESH_SECONDS
    assert isinstance(verdict(made.request(), now=late), Approve)
    assert isinstance(verdict(made.request(), now=late + 1), Postpone)


def test_nothing_is_denied_on_an_answer_that_is_older_than_the_request() -> None:
    foreign = made.request(made.pem((made.address("10.12.0.40"),)), seen=11.0)
    assert verdict(foreign) == Postpone("the reading of Azure is older than the request", 11.0)
    assert isinstance(verdict(foreign, instances=made.machines(read_at=11.0)), Deny)


def test_a_machine_or_scale_set_that_azure_does_not_list_waits_until_it_must_have_appeared() -> None:
    young, old = 10.0, APPEARANCE_SECONDS
    for read_at, expected in ((young, Postpone), (old, Deny)):
        empty = InstanceList(read_at, {})
        assert isinstance(verdict(made.request(), instances=empty, now=read_at), expected)
        assert isinstance(verdict(made.request(), sets=made.scale_sets(read_at, ()), instances=None, now=read_at), expected)


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-."
DNS = st.one_of(st.just(made.NODE), st.text(LETTERS, min_size=1, max_size=30))
ADDRESSES = st.one_of(st.just(made.ADDRESS), st.just(made.POD_ADDRESS), st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str))
NAMES = st.lists(st.one_of(DNS.map(x509.DNSName), ADDRESSES.map(made.address)), min_size=1, max_size=4)


@given(NAMES, st.sets(ADDRESSES, max_size=3))
def test_a_foreign_name_or_address_is_never_approved_and_an_own_one_always(names: list[x509.GeneralName], own: set[str]) -> None:
    requested = {str(name.value) for name in names}
    found = verdict(made.request(made.pem(names)), instances=made.machines(addresses=own))
    assert isinstance(found, Approve) is (requested <= {made.NODE, *own})
    assert isinstance(found, Approve | Deny)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_in_the_frame_of_a_request_are_denied_and_never_a_fault(der: bytes) -> None:
    assert isinstance(claim_of(made.request(as_pem(der)), made.PREFIX), Deny)


@given(st.data())
def test_a_request_with_any_byte_changed_is_denied(data: st.DataObject) -> None:
    der = bytearray(DER)
    place = data.draw(st.integers(0, len(der) - 1))
    der[place] ^= data.draw(st.integers(1, 255))
    assert isinstance(claim_of(made.request(as_pem(bytes(der))), made.PREFIX), Deny)


@given(st.text(max_size=40), st.frozensets(st.text(max_size=12), max_size=3), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_whatever_the_senders_name_and_the_times_are_there_is_a_verdict(
    username: str, groups: frozenset[str], read_at: float, seen: float, now: float
) -> None:
    request = made.request(made.pem(), username=username, groups=groups, seen=seen)
    assert isinstance(verdict(request, made.scale_sets(read_at), made.machines(read_at), now), Approve | Deny | Postpone)


@given(st.floats(0, 1_000), st.floats(0, 1_000), st.floats(0, 1_000))
def test_a_wait_names_a_time_from_which_an_answer_helps(read_at: float, seen: float, now: float) -> None:
    found = verdict(made.request(seen=seen), made.scale_sets(read_at), made.machines(read_at), now)
    if isinstance(found, Postpone):
        assert found.after is not None
        assert found.after <= max(now, seen)
        assert isinstance(
            verdict(made.request(seen=seen), made.scale_sets(found.after), made.machines(found.after), max(found.after, now)), Approve
        )


@pytest.mark.parametrize("name", ["dev", "southcentralus", "swedencentral"])
def test_every_planned_pool_machine_may_ask_and_no_api_server(name: str) -> None:
    for cluster in load_plan(name).clusters:
        for scale_set in (scale_set for pool in cluster.pools for scale_set in pool.scale_sets):
            assert naming.pool_scale_set_of(f"{scale_set.computer_name_prefix}00000z") == scale_set.name
        assert naming.pool_scale_set_of(f"{cluster.api_servers.computer_name_prefix}000001") is None

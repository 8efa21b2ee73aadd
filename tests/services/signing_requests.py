"""Real certificate requests, as kubelets and others make them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from services.csr_approver.verdicts import NODE_USER, NODES_GROUP, SIGNER, Instance, InstanceList, ScaleSetList, SigningRequest

PREFIX = "frontier-"
SCALE_SET = "frontier-h100-000"
NODE = f"{SCALE_SET}-00000a"
ADDRESS = "10.12.0.4"
POD_ADDRESS = "10.12.0.5"
KEY = ec.generate_private_key(ec.SECP256R1())
KUBELET_USAGES = frozenset({"digital signature", "server auth"})

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def subject(name: str = f"{NODE_USER}{NODE}", organization: str = NODES_GROUP) -> x509.Name:
    """Subject of a kubelet's request."""
    return x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, organization), x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def address(text: str) -> x509.IPAddress:
    """Return an address as a requested name."""
    return x509.IPAddress(ipaddress.ip_address(text))


KUBELET_NAMES: tuple[x509.GeneralName, ...] = (x509.DNSName(NODE), address(ADDRESS))


def pem(
    names: Iterable[x509.GeneralName] | None = KUBELET_NAMES,
    own_subject: x509.Name | None = None,
    key: Key = KEY,
    extra: x509.ExtensionType | None = None,
) -> bytes:
    """Return a request in PEM, signed with its own key; without names where names is None."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject() if own_subject is None else own_subject)
    if names is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if extra is not None:
        builder = builder.add_extension(extra, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def request(
    text: bytes | None = None,
    *,
    node: str = NODE,
    username: str | None = None,
    groups: Iterable[str] = (NODES_GROUP, "system:authenticated"),
    usages: Iterable[str] = KUBELET_USAGES,
    signer: str = SIGNER,
    name: str = "csr-1",
    seen: float = 0.0,
) -> SigningRequest:
    """A request as the API server shows it; without a text, what node's kubelet sends."""
    own = pem((x509.DNSName(node), address(ADDRESS)), subject(f"{NODE_USER}{node}")) if text is None else text
    return SigningRequest(
        name=name,
        version="1",
        signer=signer,
        username=f"{NODE_USER}{node}" if username is None else username,
        groups=frozenset(groups),
        usages=frozenset(usages),
        pem=own,
        seen=seen,
    )


def scale_sets(read_at: float = 10.0, names: Iterable[str] = (SCALE_SET,)) -> ScaleSetList:
    """Return a list of scale sets as Azure returns it."""
    return ScaleSetList(read_at, frozenset(names))


def machines(read_at: float = 10.0, state: str = "succeeded", addresses: Iterable[str] = (ADDRESS,), name: str = NODE) -> InstanceList:
    """Return Azure's list of the machines of one scale set, which has one machine."""
    return InstanceList(read_at, {name: Instance(name, frozenset(addresses), state)})

"""Verdict on a kubelet's request for a certificate: only for its own name, and for serving only for its own machine's addresses.

The module is pure: a certificate signing request and the last reading of Azure become Approve, Deny or Postpone. A wrong approval lets one
machine impersonate another. Therefore everything that differs from the request of a kubelet of this cluster is denied, and everything that
Azure has not confirmed is postponed. A machine's first client certificate also needs a proof: see first_requests.py.
The signers' own requirements: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from components.plan import naming
from components.plan.access import BOOTSTRAP_GROUP
from services.csr_approver.attested_data import key_digest, nonce_of

SIGNER = "kubernetes.io/kubelet-serving"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
NODES_GROUP = "system:nodes"
NODE_USER = "system:node:"
PEM_BYTES = 4_096
"""Maximum length of a request; a kubelet's has about 600 bytes, one with an RSA key of 4,096 bits 1,800."""
PEM = re.compile(rb"\s*-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=]+\r?\n)+-----END CERTIFICATE REQUEST-----\s*")
USAGES = {SIGNER: frozenset({"digital signature", "server auth"}), CLIENT_SIGNER: frozenset({"digital signature", "client auth"})}
"""Usages that a kubelet requests, by signer; with an RSA key also key encipherment."""
RSA_USAGE = "key encipherment"
RSA_BITS = 2_048
FRESH_SECONDS = 120.0
"""Age beyond which a reading of Azure is not used."""
APPEARANCE_SECONDS = 300.0
"""Time in which a new machine must appear in Azure's lists, from the first sight of its request."""
GONE_STATES = frozenset({"deleting", "deleted"})
ALIVE_STATES = frozenset({"creating", "updating", "succeeded", "migrating"})
"""Provisioning states of a machine that belongs to its scale set; a machine boots and sends its request while it is still being created."""

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion)


@dataclass(frozen=True)
class SigningRequest:
    """One CertificateSigningRequest; the API server sets username and groups, version is the resourceVersion that was read.

    seen is the local time of the first sight in seconds, because the API server's clock may differ.
    """

    name: str
    version: str
    signer: str
    username: str
    groups: frozenset[str]
    usages: frozenset[str]
    pem: bytes
    seen: float
    document: bytes = b""
    """Attested data from the request's annotation."""
    issuers: bytes = b""
    """Certificates in PEM from the request's annotation, which the chain of the attested data's signer lacks."""


@dataclass(frozen=True)
class Instance:
    """One machine of a scale set: name in lower case, primary private addresses of its NICs, provisioning state and vmId in lower case."""

    name: str
    addresses: frozenset[str]
    state: str
    vm_id: str = ""


@dataclass(frozen=True)
class ScaleSetList:
    """Names of the cluster's scale sets, from a reading of Azure that began at read_at."""

    read_at: float
    names: frozenset[str]


@dataclass(frozen=True)
class InstanceList:
    """Machines of one scale set by name, from a reading of Azure that began at read_at."""

    read_at: float
    by_name: Mapping[str, Instance]


@dataclass(frozen=True)
class NodeClaim:
    """Claim of a well-formed request on its sender, not yet checked against Azure."""

    node: str
    scale_set: str
    addresses: frozenset[str]


@dataclass(frozen=True)
class FirstClaim(NodeClaim):
    """Claim of a machine without a certificate on a node's name: document must prove it for nonce, and key is the public key's SHA-256."""

    nonce: str
    key: str
    document: bytes
    issuers: bytes


@dataclass(frozen=True)
class Approve:
    """The certificate may be issued."""

    reason: str


@dataclass(frozen=True)
class Deny:
    """No kubelet of this cluster may have the requested certificate."""

    reason: str


@dataclass(frozen=True)
class Postpone:
    """No decision yet; a reading of Azure that begins at or after `after` may allow one, or none where it is None."""

    reason: str
    after: float | None


Verdict = Approve | Deny | Postpone


class _DeniedError(Exception):
    """A request that differs from those of kubelets."""


def _sender(request: SigningRequest) -> str:
    """Return the node that sent the request, according to the API server."""
    if NODES_GROUP not in request.groups or not request.username.startswith(NODE_USER):
        raise _DeniedError(f"{request.username!a} is not a node")
    return request.username.removeprefix(NODE_USER)


def _parse(pem: bytes) -> x509.CertificateSigningRequest:
    """Parse the request and verify that the sender has its key; the text must contain exactly one request, so that every reader finds the
    same."""
    if len(pem) > PEM_BYTES:
        raise _DeniedError(f"the request is longer than {PEM_BYTES} bytes")
    if not PEM.fullmatch(pem):
        raise _DeniedError("the request is not exactly one certificate request in PEM")
    parsed = x509.load_pem_x509_csr(pem)
    if not parsed.is_signature_valid:
        raise _DeniedError("the request is not signed with its own key")
    # The signature comes last, after the number of its unused bits: with 1 unused bit, the same signature would also be valid.
    if parsed.public_bytes(serialization.Encoding.DER)[-len(parsed.signature) - 1] != 0:
        raise _DeniedError("the request's signature does not end with a whole byte")
    return parsed


def _check_key(parsed: x509.CertificateSigningRequest, usages: frozenset[str], expected: frozenset[str]) -> None:
    """Reject weak keys, and usages that a kubelet does not request for its type of key."""
    key = parsed.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS:
            raise _DeniedError(f"the RSA key has {key.key_size} bits, fewer than {RSA_BITS}")
    elif not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise _DeniedError(f"kubelets do not create keys of this kind: {type(key).__name__}")
    if usages not in (expected, expected | {RSA_USAGE}):
        raise _DeniedError(f"the usages are {sorted(usages)}, not those of a kubelet's certificate of this signer")


def _check_subject(parsed: x509.CertificateSigningRequest, node: str) -> None:
    """Reject a subject other than the sender's own."""
    found = sorted((attribute.oid.dotted_string, attribute.value) for attribute in parsed.subject)
    own = sorted(
        [
            (x509.NameOID.COMMON_NAME.dotted_string, f"{NODE_USER}{node}"),
            (x509.NameOID.ORGANIZATION_NAME.dotted_string, NODES_GROUP),
        ]
    )
    if found != own:
        raise _DeniedError(f"the subject is {parsed.subject.rfc4514_string()!a}, not the sender's own")


def _names(parsed: x509.CertificateSigningRequest) -> tuple[frozenset[str], frozenset[str]]:
    """Return the requested DNS names and IP addresses; reject every other type of name, and every other extension."""
    if [extension.oid for extension in parsed.extensions] != [x509.SubjectAlternativeName.oid]:
        raise _DeniedError("the request has no names, or extensions other than names")
    dns: set[str] = set()
    addresses: set[str] = set()
    for name in parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value:
        if isinstance(name, x509.DNSName):
            dns.add(name.value)
        elif isinstance(name, x509.IPAddress):
            addresses.add(str(name.value))
        else:
            raise _DeniedError(f"a name is neither a DNS name nor an address: {type(name).__name__}")
    if not dns | addresses:
        raise _DeniedError("the request contains no name")
    return frozenset(dns), frozenset(addresses)


def _requested_node(parsed: x509.CertificateSigningRequest) -> str:
    """Return the node's name in the subject of a machine without a certificate."""
    names = [str(one.value) for one in parsed.subject if one.oid == x509.NameOID.COMMON_NAME]
    if len(names) != 1 or not names[0].startswith(NODE_USER):
        raise _DeniedError(f"the subject {parsed.subject.rfc4514_string()!a} is not that of a node")
    return names[0].removeprefix(NODE_USER)


def _claim(request: SigningRequest) -> NodeClaim:
    """Return the claim of a request without its scale set."""
    if request.signer not in USAGES:
        raise _DeniedError(f"the signer is {request.signer!a}, none of {', '.join(USAGES)}")
    first = request.signer == CLIENT_SIGNER and BOOTSTRAP_GROUP in request.groups
    node = "" if first else _sender(request)
    parsed = _parse(request.pem)
    node = node or _requested_node(parsed)
    _check_key(parsed, request.usages, USAGES[request.signer])
    _check_subject(parsed, node)
    if request.signer == CLIENT_SIGNER and len(parsed.extensions):
        raise _DeniedError("the request has extensions, unlike a kubelet's for a client certificate")
    if first:
        key = parsed.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
            raise _DeniedError(f"gpufleet-node does not create keys of this kind: {type(key).__name__}")
        return FirstClaim(node, "", frozenset(), nonce_of(key), key_digest(key), request.document, request.issuers)
    dns, addresses = _names(parsed) if request.signer == SIGNER else (frozenset[str](), frozenset[str]())
    if dns - {node}:
        raise _DeniedError(f"DNS name {min(dns - {node})!a} is not the node's own name {node!a}")
    return NodeClaim(node, "", addresses)


def claim_of(request: SigningRequest, scale_set_prefix: str) -> NodeClaim | Deny:
    """Return the claim of a request, or the reason why it is not from a kubelet of this cluster; without any I/O.

    scale_set_prefix begins the names of the cluster's scale sets, for example "frontier-". A FirstClaim is not proven yet.
    """
    try:
        claim = _claim(request)
    except _DeniedError as refused:
        return Deny(str(refused))
    except _UNREADABLE as error:
        return Deny(f"the request cannot be read: {type(error).__name__}")
    scale_set = naming.pool_scale_set_of(claim.node)
    if scale_set is None or not scale_set.startswith(scale_set_prefix):
        return Deny(f"{claim.node!a} is not the name of a machine of a pool's scale set {scale_set_prefix}*")
    return replace(claim, scale_set=scale_set)


def _not_listed(what: str, read_at: float, seen: float, now: float) -> Deny | Postpone:
    """Deny a claim on something that a late enough reading of Azure does not list; postpone it before that."""
    if read_at >= seen + APPEARANCE_SECONDS:
        return Deny(f"Azure has no {what}")
    return Postpone(f"Azure does not list {what} yet", now)


def judge(claim: NodeClaim, seen: float, sets: ScaleSetList | None, instances: InstanceList | None, now: float) -> Verdict:
    """Decide a claim by the last readings of the cluster's scale sets and of the claim's own; times in seconds.

    A reading older than FRESH_SECONDS is not used. A claim is not denied on a reading that began before the request was seen.
    """
    oldest = now - FRESH_SECONDS
    if sets is None or (claim.scale_set not in sets.names and sets.read_at < seen):
        return Postpone("the scale sets have not been read from Azure", seen)
    if claim.scale_set not in sets.names:
        return _not_listed(f"scale set {claim.scale_set}", sets.read_at, seen, now)
    if instances is None or instances.read_at < oldest:
        return Postpone(f"the machines of {claim.scale_set} have not been read from Azure lately", oldest)
    instance = instances.by_name.get(claim.node)
    if instance is None:
        return _not_listed(f"machine {claim.node} in {claim.scale_set}", instances.read_at, seen, now)
    foreign = claim.addresses - instance.addresses
    if instance.state in GONE_STATES or foreign:
        if instances.read_at < seen:
            return Postpone("the reading of Azure is older than the request", seen)
        if foreign:
            return Deny(f"address {min(foreign)} is not one of {claim.node}, which has {', '.join(sorted(instance.addresses)) or 'none'}")
        return Deny(f"machine {claim.node} is {instance.state}")
    if instance.state not in ALIVE_STATES:
        return Postpone(f"machine {claim.node} is {instance.state!a}", now)
    return Approve(f"{'name and addresses are those' if claim.addresses else 'the name is that'} of machine {claim.node}")


def judge_machine(claim: NodeClaim, vm_id: str, seen: float, instances: InstanceList) -> Verdict:
    """Decide whether the attested machine is the one that has the claimed name in Azure; a machine of that name is listed."""
    listed = instances.by_name[claim.node].vm_id
    if vm_id == listed:
        return Approve(f"vmId {vm_id} is that of machine {claim.node}")
    if instances.read_at < seen:
        return Postpone("the reading of Azure is older than the request", seen)
    return Deny(f"the attested data is of vmId {vm_id!a}, and machine {claim.node} has vmId {listed or 'none'}")

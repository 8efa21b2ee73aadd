"""Whether a kubelet gets the serving certificate that it asks for: only for its own name and its own machine's addresses.

Pure: a certificate signing request, and what Azure last said, become Approve, Deny or Wait. A wrong approval lets one machine pass for
another towards the API servers, so everything that is not exactly what a kubelet of this cluster asks is denied, and what Azure did not say
waits.
The signer's own demands: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from components.plan import naming

SIGNER = "kubernetes.io/kubelet-serving"
NODES_GROUP = "system:nodes"
NODE_USER = "system:node:"
PEM_BYTES = 4_096
"""Longest request that is read; a kubelet's has about 600 bytes, one with an RSA key of 4,096 bits 1,800."""
PEM = re.compile(rb"\s*-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=]+\r?\n)+-----END CERTIFICATE REQUEST-----\s*")
USAGES = frozenset({"digital signature", "server auth"})
RSA_USAGES = USAGES | {"key encipherment"}
RSA_BITS = 2_048
FRESH_SECONDS = 120.0
"""Age beyond which what Azure said is no answer any more."""
APPEARANCE_SECONDS = 300.0
"""Time that a new machine has to appear in Azure's lists, counted from when its request was first seen."""
GONE_STATES = frozenset({"deleting", "deleted"})
ALIVE_STATES = frozenset({"creating", "updating", "succeeded", "migrating"})
"""Provisioning states in which the machine is its scale set's; a machine boots, and asks, while it is still being created."""

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion)


@dataclass(frozen=True)
class SigningRequest:
    """One CertificateSigningRequest; username and groups are who the API server says asked, version the resourceVersion that was seen.

    seen is the time in seconds, by our own clock, when it was first seen: the API server's clock may differ from ours.
    """

    name: str
    version: str
    signer: str
    username: str
    groups: frozenset[str]
    usages: frozenset[str]
    pem: bytes
    seen: float


@dataclass(frozen=True)
class Instance:
    """One machine of a scale set: its name in lower case, its NICs' primary private addresses, its provisioning state in lower case."""

    name: str
    addresses: frozenset[str]
    state: str


@dataclass(frozen=True)
class ScaleSetList:
    """Names of the cluster's scale sets, as Azure said them in a reading that began at read_at."""

    read_at: float
    names: frozenset[str]


@dataclass(frozen=True)
class InstanceList:
    """Machines of one scale set by name, as Azure said them in a reading that began at read_at."""

    read_at: float
    by_name: Mapping[str, Instance]


@dataclass(frozen=True)
class NodeClaim:
    """What a well-formed request says of its sender, as yet unchecked against Azure."""

    node: str
    scale_set: str
    addresses: frozenset[str]


@dataclass(frozen=True)
class Approve:
    """The certificate is the sender's due."""

    reason: str


@dataclass(frozen=True)
class Deny:
    """No kubelet of this cluster may have what is asked."""

    reason: str


@dataclass(frozen=True)
class Postpone:
    """Not decided; a reading of Azure that begins at or after `after` may decide it."""

    reason: str
    after: float


Verdict = Approve | Deny | Postpone


class _DeniedError(Exception):
    """A request that is not what a kubelet sends."""


def _sender(request: SigningRequest) -> str:
    """Node that the API server says has asked."""
    if request.signer != SIGNER:
        raise _DeniedError(f"the signer is {request.signer!a}, not {SIGNER}")
    if NODES_GROUP not in request.groups or not request.username.startswith(NODE_USER):
        raise _DeniedError(f"{request.username!a} is no node")
    return request.username.removeprefix(NODE_USER)


def _parse(pem: bytes) -> x509.CertificateSigningRequest:
    """The request, of which the sender holds the key; exactly one, so that no other reader finds another in the same text."""
    if len(pem) > PEM_BYTES:
        raise _DeniedError(f"the request is longer than {PEM_BYTES} bytes")
    if not PEM.fullmatch(pem):
        raise _DeniedError("the request is not exactly one certificate request in PEM")
    parsed = x509.load_pem_x509_csr(pem)
    if not parsed.is_signature_valid:
        raise _DeniedError("the request is not signed with its own key")
    # The signature comes last, behind the number of bits that do not belong to it: with one that says 1, the same signature would fit too.
    if parsed.public_bytes(serialization.Encoding.DER)[-len(parsed.signature) - 1] != 0:
        raise _DeniedError("the request's signature does not end with a whole byte")
    return parsed


def _check_key(parsed: x509.CertificateSigningRequest, usages: frozenset[str]) -> None:
    """Refuse weak keys, and usages that a kubelet does not ask for its kind of key."""
    key = parsed.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS:
            raise _DeniedError(f"the RSA key has {key.key_size} bits, fewer than {RSA_BITS}")
    elif not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise _DeniedError(f"the key is of a kind that kubelets do not make: {type(key).__name__}")
    if usages not in (USAGES, RSA_USAGES):
        raise _DeniedError(f"the usages are {sorted(usages)}, not those of a kubelet's serving certificate")


def _check_subject(parsed: x509.CertificateSigningRequest, node: str) -> None:
    """Refuse a subject other than the sender's own."""
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
    """DNS names and IP addresses that are asked for; refuses every other kind of name, and every other extension."""
    if [extension.oid for extension in parsed.extensions] != [x509.SubjectAlternativeName.oid]:
        raise _DeniedError("the request has extensions other than the names that are asked for, or no names")
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
        raise _DeniedError("no name is asked for")
    return frozenset(dns), frozenset(addresses)


def claim_of(request: SigningRequest, scale_set_prefix: str) -> NodeClaim | Deny:
    """What a request claims, or why it is not what a kubelet of this cluster sends; asks nobody.

    scale_set_prefix begins the names of the cluster's scale sets, for example "frontier-".
    """
    try:
        node = _sender(request)
        parsed = _parse(request.pem)
        _check_key(parsed, request.usages)
        _check_subject(parsed, node)
        dns, addresses = _names(parsed)
    except _DeniedError as refused:
        return Deny(str(refused))
    except _UNREADABLE as error:
        return Deny(f"the request cannot be read: {type(error).__name__}")
    if dns - {node}:
        return Deny(f"DNS name {min(dns - {node})!a} is not the node's own name {node!a}")
    scale_set = naming.pool_scale_set_of(node)
    if scale_set is None or not scale_set.startswith(scale_set_prefix):
        return Deny(f"{node!a} is not the name of a machine of a pool's scale set {scale_set_prefix}*")
    return NodeClaim(node, scale_set, addresses)


def _not_listed(what: str, read_at: float, seen: float, now: float) -> Deny | Postpone:
    """What Azure did not list: denied once a reading late enough has not listed it either."""
    if read_at >= seen + APPEARANCE_SECONDS:
        return Deny(f"Azure knows no {what}")
    return Postpone(f"Azure does not list {what} yet", now)


def judge(claim: NodeClaim, seen: float, sets: ScaleSetList | None, instances: InstanceList | None, now: float) -> Verdict:
    """Decide a claim by what Azure last said of the cluster's scale sets, and of the claim's own; times in seconds.

    A reading older than FRESH_SECONDS, and none, is no answer. A claim is not denied on a reading that began before the request was seen.
    """
    oldest = now - FRESH_SECONDS
    if sets is None or (claim.scale_set not in sets.names and sets.read_at < seen):
        return Postpone("Azure has not said which scale sets there are", seen)
    if claim.scale_set not in sets.names:
        return _not_listed(f"scale set {claim.scale_set}", sets.read_at, seen, now)
    if instances is None or instances.read_at < oldest:
        return Postpone(f"Azure has not said lately which machines {claim.scale_set} has", oldest)
    instance = instances.by_name.get(claim.node)
    if instance is None:
        return _not_listed(f"machine {claim.node} in {claim.scale_set}", instances.read_at, seen, now)
    foreign = claim.addresses - instance.addresses
    if instance.state in GONE_STATES or foreign:
        if instances.read_at < seen:
            return Postpone("Azure's answer is older than the request", seen)
        if foreign:
            return Deny(f"address {min(foreign)} is not one of {claim.node}, which has {', '.join(sorted(instance.addresses)) or 'none'}")
        return Deny(f"machine {claim.node} is {instance.state}")
    if instance.state not in ALIVE_STATES:
        return Postpone(f"machine {claim.node} is {instance.state!a}", now)
    return Approve(f"name and addresses are those of machine {claim.node}")

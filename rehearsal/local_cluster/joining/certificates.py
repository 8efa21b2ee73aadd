"""Certificate signing requests as kubelet 1.36 sends them, and client certificates issued with the cluster authority's key."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from components.x509 import Authority, Subject, issue_leaf
from rehearsal.local_cluster.joining.node_object import NODE_USER, NODES_GROUP

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
USAGES = {CLIENT_SIGNER: ("digital signature", "client auth"), SERVING_SIGNER: ("digital signature", "server auth")}
"""Usages that a kubelet requests for its elliptic-curve keys:
https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers"""
LIFETIME = datetime.timedelta(days=2)


@dataclass(frozen=True)
class Identity:
    """A certificate chain and its private key, PEM."""

    certificate: bytes
    key: bytes


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key of the type that kubelets use."""
    return ec.generate_private_key(ec.SECP256R1())


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def subject(user: str, *groups: str) -> x509.Name:
    """Return the subject that the API server reads as a user with groups."""
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, user)])


def signing_request(key: ec.EllipticCurvePrivateKey, node: str, names: tuple[str, ...] = (), addresses: tuple[str, ...] = ()) -> bytes:
    """Return a node's certificate signing request (PEM); with names and addresses it is for serving."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject(f"{NODE_USER}{node}", NODES_GROUP))
    alternatives = [*map(x509.DNSName, names), *(x509.IPAddress(ipaddress.ip_address(one)) for one in addresses)]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


class Issuer:
    """Issuer of client certificates, from the cluster authority's certificate and key on a control-plane machine."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._authority = Authority(certificate.read_text(), key.read_text())

    def issue(self, user: str, *groups: str) -> Identity:
        """Issue a client certificate of a user in groups, valid for two days. Raises AuthorityExpiredError."""
        who = Subject(common_name=user, organizations=groups, dns_names=(), addresses=(), usages=("client",))
        issued = issue_leaf(who, self._authority, LIFETIME, datetime.datetime.now(datetime.UTC))
        return Identity(issued.certificate.encode(), issued.private_key.encode())


def client_context(authority: str, identity: Identity | None = None) -> ssl.SSLContext:
    """Return a TLS context for an API server of an authority (PEM), with a client certificate if an identity is given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority)
    if identity is not None:
        # Python reads a certificate and its key only from a file: this one is in memory, and disappears with its descriptor.
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                # Twice: after a single certificate OpenSSL sends its issuer, known from the authorities above, and the API server
                # then verifies three signatures per request instead of one. Kubelets send only their certificate.
                # https://docs.openssl.org/3.0/man3/SSL_CTX_add1_chain_cert/#notes
                file.write(identity.certificate + identity.certificate + identity.key)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    return context

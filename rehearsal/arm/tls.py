"""Makes the certificate authority and the server certificate of one embedded Azure, in its state directory."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=397)
"""Longest that clients accept of a server: https://support.apple.com/102028"""
SOON = timedelta(days=7)


@dataclass(frozen=True)
class Files:
    """Where the certificate authority, the server's certificate and its key lie."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def below(cls, folder: Path) -> Files:
        return cls(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")


def server_context(files: Files, host: str) -> ssl.SSLContext:
    """The TLS side of a server on a host; certificates are made where there are none, or where they end within a week."""
    if not _usable(files, host):
        _make(files, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    return context


def _usable(files: Files, host: str) -> bool:
    """Whether all three files are there, and the certificate is for the host and lasts."""
    if not all(path.is_file() for path in (files.authority, files.certificate, files.key)):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return _name(host) in names and certificate.not_valid_after_utc - datetime.now(UTC) > SOON


def _make(files: Files, host: str) -> None:
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpufleet embedded Azure")])
    authority = (
        _builder(issuer, issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    names = list(dict.fromkeys([_name(host), _name("127.0.0.1"), _name("localhost")]))
    server = (
        _builder(subject, issuer, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    files.authority.parent.mkdir(parents=True, exist_ok=True)
    files.authority.write_bytes(authority.public_bytes(pem))
    files.certificate.write_bytes(server.public_bytes(pem))
    files.key.touch(mode=0o600)
    private = server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.key.write_bytes(private)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

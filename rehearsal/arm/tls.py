"""Certificate authority and server certificate of an embedded Azure, in its state directory."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from components.x509 import Authority, Subject, issue_authority, issue_leaf

LIFETIME = timedelta(days=397)
"""Longest validity of a server certificate that clients accept: https://support.apple.com/102028"""
SOON = timedelta(days=7)


@dataclass(frozen=True)
class TlsFiles:
    """Paths of the certificate authority, the server's certificate and its key."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def below(cls, folder: Path) -> TlsFiles:
        return cls(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")


def server_context(files: TlsFiles, host: str) -> ssl.SSLContext:
    """Return the TLS context of a server on a host; certificates are created if there are none or they expire within a week."""
    if not _usable(files, host):
        _make(files, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    return context


def _usable(files: TlsFiles, host: str) -> bool:
    """Return whether all three files exist and the certificate is for the host and does not expire soon."""
    if not all(path.is_file() for path in (files.authority, files.certificate, files.key)):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    return _name(host) in names and certificate.not_valid_after_utc - datetime.now(UTC) > SOON


def _make(files: TlsFiles, host: str) -> None:
    now, hosts = datetime.now(UTC), dict.fromkeys((host, "127.0.0.1", "localhost"))
    addresses = tuple(one for one in hosts if isinstance(_name(one), x509.IPAddress))
    names = tuple(one for one in hosts if one not in addresses)
    authority = issue_authority("gpufleet embedded Azure", LIFETIME, now)
    issuer = Authority(authority.certificate, authority.private_key)
    server = issue_leaf(Subject(host, (), names, addresses, ("server",)), issuer, LIFETIME, now)
    files.authority.parent.mkdir(parents=True, exist_ok=True)
    files.authority.write_text(authority.certificate)
    files.certificate.write_text(server.certificate)
    files.key.touch(mode=0o600)
    files.key.write_text(server.private_key)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

"""X.509 authorities, leaf certificates and key pairs, with ECDSA on P-256, as PEM text."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from components.errors import GpufleetError

CLOCK_SKEW = timedelta(minutes=5)
"""Maximum delay of a machine's clock with which it accepts a new certificate."""
USAGES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


class AuthorityExpiredError(GpufleetError):
    """An authority's own certificate has run out, so that nothing can be issued under it."""

    def __init__(self, name: str, ended: datetime) -> None:
        self.name, self.ended = name, ended
        super().__init__(f"certificate authority {name} ended on {ended:%Y-%m-%d}; raise its generation to replace it")


@dataclass(frozen=True)
class Issued:
    """A certificate with its private key (PKCS #8), both PEM; times are ISO 8601 in UTC, whole seconds."""

    certificate: str
    private_key: str
    issued_at: str
    not_after: str


@dataclass(frozen=True)
class Subject:
    """Subject of a leaf; addresses are text, usages "server", "client" or both."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    addresses: tuple[str, ...]
    usages: tuple[str, ...]


@dataclass(frozen=True)
class Authority:
    """Certificate and private key of an authority, PEM."""

    certificate: str
    private_key: str


def new_private_key() -> str:
    """Return a new private key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def public_key(private_key: str) -> str:
    """Return the public key of a private key, PEM."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return _load_key(private_key).public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def issue_authority(common_name: str, lifetime: timedelta, now: datetime) -> Issued:
    """Return a self-signed authority that may issue leaves but no other authority."""
    pem = new_private_key()
    key, name, now = _load_key(pem), _name(common_name, ()), now.replace(microsecond=0)
    builder = _builder(name, name, key, now, now + lifetime)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return _signed(builder, key, pem, now)


def issue_leaf(subject: Subject, authority: Authority, lifetime: timedelta, now: datetime, private_key: str | None = None) -> Issued:
    """Return a leaf of an authority, valid at most as long as the authority, for a given private key (PEM) or a new one.

    Raise AuthorityExpiredError if the authority's certificate has expired.
    """
    ca, pem, now = (
        x509.load_pem_x509_certificate(authority.certificate.encode()),
        private_key or new_private_key(),
        now.replace(microsecond=0),
    )
    end = min(now + lifetime, ca.not_valid_after_utc)
    if end <= now:
        raise AuthorityExpiredError(ca.subject.rfc4514_string(), ca.not_valid_after_utc)
    issuer_key_id = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = _builder(_name(subject.common_name, subject.organizations), ca.subject, _load_key(pem), now, end)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([USAGES[usage] for usage in subject.usages]), critical=False)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in subject.dns_names]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in subject.addresses]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _signed(builder, _load_key(authority.private_key), pem, now)


def renewal_moment(issued_at: datetime, not_after: datetime) -> datetime:
    """Return the time at which two thirds of a certificate's lifetime have passed."""
    return not_after - (not_after - issued_at) / 3


def renewal_due(issued_at: str, not_after: str, now: datetime) -> bool:
    """Return True if less than a third of a certificate's lifetime remains."""
    return now > renewal_moment(datetime.fromisoformat(issued_at), datetime.fromisoformat(not_after))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    """Return a builder with names, key, key id, serial number and validity."""
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start - CLOCK_SKEW).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _signed(builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey, private_key: str, now: datetime) -> Issued:
    certificate = builder.sign(signer, hashes.SHA256())
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return Issued(pem, private_key, now.isoformat(), certificate.not_valid_after_utc.isoformat())


def _name(common_name: str, organizations: tuple[str, ...]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _load_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"private key is {type(key).__name__}; only elliptic-curve keys are supported")
    return key

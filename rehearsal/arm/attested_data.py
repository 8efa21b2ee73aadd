"""Attested data of the metadata service: documents that the embedded Azure signs with its own chain of certificates.

https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#attested-data. A root, an intermediate authority and a signer
named metadata.azure.com are created once per state directory, as for TLS. Only the root differs from Azure's for a program that verifies.
"""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from rehearsal.azure.resource import Json

SIGNER = "metadata.azure.com"
LIFETIME = timedelta(days=397)
VALIDITY = timedelta(hours=6)
"""https://github.com/MicrosoftDocs/azure-docs/issues/43938"""
TIME_FORMAT = "%m/%d/%y %H:%M:%S +0000"
RSA_BITS = 2_048
ISSUER_URL = "http://www.microsoft.com/pkiops/certs/gpufleet-embedded-azure.crt"
"""Where the signer's certificate says that its issuer's is; nothing is there, since documents contain the issuer's certificate."""

_ONE_AT_A_TIME = threading.Lock()
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Signer:
    """A chain of certificates for attested data: the signer's key and certificate, its issuer's and the root's certificate."""

    key: Key
    certificate: x509.Certificate
    issuer: x509.Certificate
    root: x509.Certificate

    def sign(self, content: bytes, others: tuple[x509.Certificate, ...] | None = None) -> bytes:
        """Return a PKCS#7 document in DER, as Azure's without signed attributes; others are the certificates beside the signer's own."""
        builder = pkcs7.PKCS7SignatureBuilder().set_data(content).add_signer(self.certificate, self.key, hashes.SHA256())
        for one in (self.issuer,) if others is None else others:
            builder = builder.add_certificate(one)
        return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary, pkcs7.PKCS7Options.NoAttributes])

    def document(self, compute: Json, nonce: str, now: float) -> Json:
        """Return the metadata service's response for the compute section of a machine's instance document; now is a POSIX time."""
        return {"encoding": "pkcs7", "signature": base64.b64encode(self.sign(content(compute, nonce, now))).decode()}

    def write(self, folder: Path) -> None:
        """Write root and signer below a folder."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        root_file(folder).write_bytes(self.root.public_bytes(serialization.Encoding.PEM))
        chain = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in (self.certificate, self.issuer, self.root))
        key = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file = folder / "attested-data.pem"
        file.touch(mode=0o600)
        file.write_bytes(key + chain)


def root_file(folder: Path) -> Path:
    """Return the path of the root's certificate below a server's folder."""
    return folder / "attested-data-root.pem"


def load_or_create(folder: Path) -> Signer:
    """Return the signer of a state directory; it is created if there is none or it ends within a week. Raises ValueError for an invalid
    file."""
    with _ONE_AT_A_TIME:
        return _load(folder) or _created(folder)


def _load(folder: Path) -> Signer | None:
    file = folder / "attested-data.pem"
    if file.is_file() and root_file(folder).is_file():
        content = file.read_bytes()
        certificate, issuer, root = x509.load_pem_x509_certificates(content)
        key = serialization.load_pem_private_key(content, None)
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise ValueError(f"{file} contains no RSA or elliptic-curve key; delete it")
        if certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=7):
            return Signer(key, certificate, issuer, root)
    return None


def _created(folder: Path) -> Signer:
    created = create(datetime.now(UTC))
    created.write(folder)
    return created


def create(now: datetime, name: str = SIGNER, issuer_url: str = ISSUER_URL) -> Signer:
    """Create a chain whose signer has a DNS name."""
    root_key, issuer_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    key = rsa.generate_private_key(public_exponent=65_537, key_size=RSA_BITS)
    root_name, issuer_name = (_name(f"gpufleet embedded Azure {role}") for role in ("root", "issuer"))
    root = _authority(root_name, root_key, root_name, root_key, 1, now)
    issuer = _authority(issuer_name, issuer_key, root_name, root_key, 0, now)
    builder = _builder(_name(name), key, issuer_name, issuer_key, now)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    access = x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(issuer_url))
    builder = builder.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
    return Signer(key, builder.sign(issuer_key, hashes.SHA256()), issuer, root)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, key: Key, issuer: x509.Name, issuer_key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    """Return a certificate with the extensions that all have."""
    own, issuing = key.public_key(), issuer_key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(own)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing), critical=False)
    )


def _authority(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    below: int,
    now: datetime,
) -> x509.Certificate:
    """Return the certificate of an authority with a number of authorities below it."""
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(subject, key, issuer, issuer_key, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=below), critical=True)
    return builder.add_extension(usage, critical=True).sign(issuer_key, hashes.SHA256())


def content(compute: Json, nonce: str, now: float) -> bytes:
    """Return the signed JSON for the compute section of a machine's instance document."""
    created = datetime.fromtimestamp(int(now), UTC)
    document = {
        "licenseType": "",
        "nonce": nonce or created.strftime("%Y%m%d%H%M%S"),
        "plan": compute["plan"],
        "sku": compute["sku"],
        "subscriptionId": compute["subscriptionId"],
        "timeStamp": {"createdOn": created.strftime(TIME_FORMAT), "expiresOn": (created + VALIDITY).strftime(TIME_FORMAT)},
        "vmId": compute["vmId"],
    }
    return json.dumps(document, separators=(",", ":")).encode()

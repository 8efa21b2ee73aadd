"""Verification of IMDS attested data: a PKCS#7 document in which Azure signs a machine's vmId, its subscription and a nonce.

https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#attested-data. The module is pure. It finds the certificate
that signed the document, verifies the signature with that certificate's key, and only then checks that certificate's chain and name. To
check another certificate of the document proves nothing: https://github.com/spiffe/spire/pull/6960.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509 import verification

SIGNER_DOMAIN = "metadata.azure.com"
"""The signer's certificate has this name or one below it:
https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#attested-data"""
DOCUMENT_BYTES = 32_768
"""Maximum length of a document; one with a chain of three certificates has about 6,000 bytes."""
ISSUER_BYTES = 32_768
"""Maximum length of the issuers' certificates that a machine sends beside a document; two have about 4,000 bytes."""
MOST_CERTIFICATES = 10
LONGEST_CHAIN = 4
"""Maximum number of certificates from the signer to below the root."""
RSA_BITS = 2_048
SKEW = datetime.timedelta(minutes=5)
"""Difference of clocks that is accepted for a document's creation."""
LONGEST_VALIDITY = datetime.timedelta(hours=24)
"""Maximum validity of a document; Azure's are valid for 6 hours: https://github.com/MicrosoftDocs/azure-docs/issues/43938"""
TIME_FORMAT = "%m/%d/%y %H:%M:%S %z"

_SIGNED_DATA, _DATA = bytes.fromhex("2a864886f70d010702"), bytes.fromhex("2a864886f70d010701")
_CONTENT_TYPE, _MESSAGE_DIGEST = bytes.fromhex("2a864886f70d010903"), bytes.fromhex("2a864886f70d010904")
_HASHES: dict[bytes, type[hashes.SHA256 | hashes.SHA384 | hashes.SHA512]] = {
    bytes.fromhex("608648016503040201"): hashes.SHA256,
    bytes.fromhex("608648016503040202"): hashes.SHA384,
    bytes.fromhex("608648016503040203"): hashes.SHA512,
    # Azure's published example names the signature's algorithm (RSA with SHA-2) in place of the digest's.
    bytes.fromhex("2a864886f70d01010b"): hashes.SHA256,
    bytes.fromhex("2a864886f70d01010c"): hashes.SHA384,
    bytes.fromhex("2a864886f70d01010d"): hashes.SHA512,
}
"""Digest algorithms by the content of their object identifier, without SHA-1."""
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion)
_INTEGER, _OCTETS, _OID, _SEQUENCE, _SET, _CONTEXT_0, _CONTEXT_1, _KEY_ID = 0x02, 0x04, 0x06, 0x30, 0x31, 0xA0, 0xA1, 0x80


class DocumentRefusedError(Exception):
    """A document that proves nothing."""


@dataclass(frozen=True)
class AttestedMachine:
    """What Azure has signed: ids in lower case, the nonce of the request, and the document's times."""

    vm_id: str
    subscription: str
    nonce: str
    created: datetime.datetime
    expires: datetime.datetime


@dataclass(frozen=True, eq=False)
class Trust:
    """Root certificates."""

    roots: tuple[x509.Certificate, ...]

    @cached_property
    def store(self) -> verification.Store:
        """Return the roots in the form that the library verifies with."""
        return verification.Store(list(self.roots))


@dataclass(frozen=True)
class SignedDocument:
    """A document whose signature is that of signer; certificates are all that it contains. The signer is not verified yet."""

    content: bytes
    signer: x509.Certificate
    certificates: tuple[x509.Certificate, ...]


@dataclass(frozen=True)
class _Element:
    """One DER element: tag, content, and the whole encoding."""

    tag: int
    content: bytes
    whole: bytes

    def children(self) -> Iterator[_Element]:
        """Yield the elements inside a constructed one."""
        rest = self.content
        while rest:
            element = _first(rest)
            yield element
            rest = rest[len(element.whole) :]


def _first(data: bytes) -> _Element:
    """Return the first DER element; only tags of one byte, and definite lengths in their shortest form."""
    if len(data) < 2 or data[0] & 0x1F == 0x1F:
        raise DocumentRefusedError("it is not DER")
    length, begin = data[1], 2
    if length >= 0x80:
        count = length & 0x7F
        encoded = data[2 : 2 + count]
        begin, length = 2 + count, int.from_bytes(encoded, "big")
        if not 1 <= count <= 3 or len(encoded) != count or length < 0x80 or encoded[0] == 0:
            raise DocumentRefusedError("it is not DER")
    if len(data) < begin + length:
        raise DocumentRefusedError("it is cut off")
    return _Element(data[0], data[begin : begin + length], data[: begin + length])


class _Reader:
    """Elements in their order; every method raises DocumentRefusedError if the element is not there."""

    def __init__(self, element: _Element) -> None:
        self._rest = list(element.children())

    def next(self, tag: int) -> _Element:
        """Return the next element, which must have this tag."""
        if not self._rest or self._rest[0].tag != tag:
            raise DocumentRefusedError("it is not a PKCS#7 document of the expected form")
        return self._rest.pop(0)

    def optional(self, tag: int) -> _Element | None:
        """Return the next element if it has this tag."""
        return self._rest.pop(0) if self._rest and self._rest[0].tag == tag else None

    def any(self) -> _Element:
        """Return the next element."""
        return self.next(self._rest[0].tag if self._rest else -1)

    def end(self) -> None:
        """Refuse further elements."""
        if self._rest:
            raise DocumentRefusedError("it has unexpected parts")


def read(document: bytes) -> SignedDocument:
    """Return the content of a PKCS#7 document, and the certificate whose key signed it; raise DocumentRefusedError."""
    if len(document) > DOCUMENT_BYTES:
        raise DocumentRefusedError(f"it is longer than {DOCUMENT_BYTES} bytes")
    outer = _first(document)
    if outer.tag != _SEQUENCE or len(outer.whole) != len(document):
        raise DocumentRefusedError("it is not exactly one PKCS#7 document")
    info = _Reader(outer)
    if info.next(_OID).content != _SIGNED_DATA:
        raise DocumentRefusedError("it is not signed data")
    wrapped = _Reader(info.next(_CONTEXT_0))
    info.end()
    signed = _Reader(wrapped.next(_SEQUENCE))
    wrapped.end()
    signed.next(_INTEGER)
    signed.next(_SET)
    content = _content(signed.next(_SEQUENCE))
    bag = signed.optional(_CONTEXT_0)
    signed.optional(_CONTEXT_1)
    signers = list(signed.next(_SET).children())
    signed.end()
    if bag is None or len(signers) != 1:
        raise DocumentRefusedError(f"it has {len(signers)} signatures and {'no' if bag is None else 'some'} certificates, not one and some")
    certificates = _certificates(bag)
    return SignedDocument(content, _signer(signers[0], certificates, content), certificates)


def _content(element: _Element) -> bytes:
    """Return the signed content."""
    inside = _Reader(element)
    if inside.next(_OID).content != _DATA:
        raise DocumentRefusedError("its content is not plain data")
    wrapped = _Reader(inside.next(_CONTEXT_0))
    inside.end()
    content = wrapped.next(_OCTETS).content
    wrapped.end()
    return content


def _certificates(bag: _Element) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a document in their order."""
    elements = list(bag.children())
    if len(elements) > MOST_CERTIFICATES:
        raise DocumentRefusedError(f"it has {len(elements)} certificates, more than {MOST_CERTIFICATES}")
    try:
        return tuple(x509.load_der_x509_certificate(one.whole) for one in elements)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DocumentRefusedError(f"a certificate cannot be read: {type(error).__name__}") from None


def _signer(element: _Element, certificates: tuple[x509.Certificate, ...], content: bytes) -> x509.Certificate:
    """Return the certificate that a signature names, after verifying the signature with its key."""
    if element.tag != _SEQUENCE:
        raise DocumentRefusedError("its signature is not of the expected form")
    info = _Reader(element)
    info.next(_INTEGER)
    named = [one for one in dict.fromkeys(certificates) if _names(info_id, one)] if (info_id := info.any()) else []
    if len(named) != 1:
        raise DocumentRefusedError(f"{len(named)} of its certificates are the one that its signature names")
    digest = _HASHES.get(_Reader(info.next(_SEQUENCE)).next(_OID).content)
    if digest is None:
        raise DocumentRefusedError("its digest is not SHA-2")
    attributes = info.optional(_CONTEXT_0)
    info.next(_SEQUENCE)
    signature = info.next(_OCTETS).content
    info.optional(_CONTEXT_1)
    info.end()
    message = content if attributes is None else _attributes(attributes, content, digest())
    _verify_signature(named[0], signature, message, digest())
    return named[0]


def _names(identifier: _Element, certificate: x509.Certificate) -> bool:
    """Return whether a signer's identifier (issuer and serial number, or key id) is that of a certificate."""
    if identifier.tag == _SEQUENCE:
        inside = _Reader(identifier)
        issuer, serial = inside.next(_SEQUENCE), inside.next(_INTEGER)
        inside.end()
        return certificate.issuer.public_bytes() == issuer.whole and certificate.serial_number == int.from_bytes(serial.content, "big")
    if identifier.tag != _KEY_ID:
        raise DocumentRefusedError("its signature names no certificate")
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return found.digest == identifier.content


def _attributes(element: _Element, content: bytes, digest: hashes.HashAlgorithm) -> bytes:
    """Return the signed attributes as they were signed, after checking that they contain the content's digest."""
    values: dict[bytes, bytes] = {}
    for one in element.children():
        attribute = _Reader(one)
        name, found = attribute.next(_OID).content, list(attribute.next(_SET).children())
        if name in values or not found:
            raise DocumentRefusedError("its signed attributes are repeated or empty")
        values[name] = found[0].content if len(found) == 1 else b""
    hashed = hashes.Hash(digest)
    hashed.update(content)
    if values.get(_CONTENT_TYPE) != _DATA or values.get(_MESSAGE_DIGEST) != hashed.finalize():
        raise DocumentRefusedError("its signed attributes are not those of its content")
    # The signature is over the attributes as a SET: https://www.rfc-editor.org/rfc/rfc5652#section-5.4
    return bytes([_SET]) + element.whole[1:]


def _verify_signature(certificate: x509.Certificate, signature: bytes, message: bytes, digest: hashes.HashAlgorithm) -> None:
    """Verify a signature with the key of a certificate."""
    try:
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey) and key.key_size >= RSA_BITS:
            key.verify(signature, message, padding.PKCS1v15(), digest)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(digest))
        else:
            raise DocumentRefusedError(f"the signer's key is neither RSA of at least {RSA_BITS} bits nor of an elliptic curve")
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        raise DocumentRefusedError("its signature is not that of the certificate that it names") from None


def signer_name(certificate: x509.Certificate) -> str | None:
    """Return the certificate's first DNS name that is SIGNER_DOMAIN or below it; a wildcard with a label in place of *."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        return None
    lowered = (name.lower() for name in names)
    name = next((name for name in lowered if name == SIGNER_DOMAIN or name.endswith(f".{SIGNER_DOMAIN}")), None)
    return f"any{name[1:]}" if name is not None and name.startswith("*.") else name


def issuers_in(text: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates in PEM that a machine sends beside its document, for building a chain; raise DocumentRefusedError.

    Nothing trusts them by themselves, so the machine may download them.
    """
    if not text:
        return ()
    if len(text) > ISSUER_BYTES:
        raise DocumentRefusedError(f"its issuers' certificates are longer than {ISSUER_BYTES} bytes")
    found = tuple(x509.load_pem_x509_certificates(text))
    if len(found) > MOST_CERTIFICATES:
        raise DocumentRefusedError(f"it has {len(found)} issuers' certificates, more than {MOST_CERTIFICATES}")
    return found


def verify_signer(document: SignedDocument, issuers: tuple[x509.Certificate, ...], trust: Trust, now: datetime.datetime) -> None:
    """Verify name and chain of the certificate that signed; raise DocumentRefusedError."""
    name = signer_name(document.signer)
    if name is None:
        raise DocumentRefusedError(f"it is signed by {document.signer.subject.rfc4514_string()!a}, not by {SIGNER_DOMAIN}")
    others = [*(one for one in document.certificates if one != document.signer), *issuers]
    try:
        verifier = verification.PolicyBuilder().store(trust.store).time(now).max_chain_depth(LONGEST_CHAIN)
        verifier.build_server_verifier(x509.DNSName(name)).verify(document.signer, others)
    except (verification.VerificationError, ValueError, UnsupportedAlgorithm) as error:
        raise DocumentRefusedError(f"its signer's certificate has no valid chain to a trusted root: {ascii(str(error))[:200]}") from None


def verify(document: bytes, trust: Trust, now: datetime.datetime, issuers: bytes = b"") -> AttestedMachine:
    """Return what Azure has signed in a document; issuers are certificates in PEM that its chain may need; raise DocumentRefusedError."""
    try:
        signed = read(document)
        verify_signer(signed, issuers_in(issuers), trust, now)
        machine = _machine(signed.content)
    except _UNREADABLE as error:
        # The library reads parts of a certificate only when they are used.
        raise DocumentRefusedError(f"a certificate cannot be read: {type(error).__name__}") from None
    check_times(machine, now)
    return machine


def _machine(content: bytes) -> AttestedMachine:
    """Return the fields of the signed JSON."""
    try:
        fields = json.loads(content)
        times = fields["timeStamp"]
        created, expires = (_time(times[key]) for key in ("createdOn", "expiresOn"))
        texts = [fields[key] for key in ("vmId", "subscriptionId", "nonce")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DocumentRefusedError(f"its content lacks a field: {type(error).__name__}") from None
    if not all(isinstance(one, str) and one for one in texts):
        raise DocumentRefusedError("vmId, subscriptionId or nonce is empty")
    return AttestedMachine(texts[0].lower(), texts[1].lower(), texts[2], created, expires)


def _time(text: str) -> datetime.datetime:
    """Convert a time of a document, which has an offset."""
    return datetime.datetime.strptime(text, TIME_FORMAT).astimezone(datetime.UTC)


def check_times(machine: AttestedMachine, now: datetime.datetime) -> None:
    """Refuse a document that is not valid now, or longer than Azure's are."""
    if now >= machine.expires:
        raise DocumentRefusedError(f"it expired at {machine.expires.isoformat()}")
    if now < machine.created - SKEW:
        raise DocumentRefusedError(f"it was created in the future, at {machine.created.isoformat()}")
    if machine.expires - machine.created > LONGEST_VALIDITY:
        raise DocumentRefusedError(f"it is valid for longer than {LONGEST_VALIDITY.total_seconds() / 3600:.0f} hours")


def key_digest(public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> str:
    """Return SHA-256 over a public key (DER SubjectPublicKeyInfo), as 64 hexadecimal digits."""
    hashed = hashes.Hash(hashes.SHA256())
    hashed.update(public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    return hashed.finalize().hex()


def nonce_of(public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> str:
    """Return the nonce that binds a document to a key: base32 of the first 160 bits of its digest, 32 letters and digits.

    https://github.com/Azure/azure-rest-api-specs/tree/main/specification/imds allows up to 32 alphanumeric characters.
    """
    return base64.b32encode(bytes.fromhex(key_digest(public_key))[:20]).decode()

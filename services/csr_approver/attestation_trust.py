"""Root certificates that attested data is verified with."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import certifi
from cryptography import x509

from services.csr_approver.attested_data import Trust

ROOTS = {
    "cb3ccbb76031e5e0138f8dd39a23f9de47ffc35e43c1144cea27d46a5ab1cb5f": "DigiCert Global Root G2",
    "31ad6648f8104138c738f39ea4320133393e3a18cc02296ef97c2ac9ef6731d0": "DigiCert Global Root G3",
    "018e13f0772532cf809bd1b17281867283fc48c6e13be9c69812854a490c1b05": "DigiCert TLS ECC P384 Root G5",
    "371a00dc0533b3721a7eeb40e8419e70799d2b0a0f2c1d80693165f7cec4ad75": "DigiCert TLS RSA4096 Root G5",
    "358df39d764af9e1b766e9c972df352ee15cfac227af6ad1d70e8e4a6edcba02": "Microsoft ECC Root Certificate Authority 2017",
    "c741f70f4b2a8d88bf2e71c14122ef53ef10eba0cfa5e64cfa20f418853073e0": "Microsoft RSA Root Certificate Authority 2017",
}
"""Root authorities of Azure's services by SHA-256 fingerprint: several, because Azure changes from one to another.

https://learn.microsoft.com/azure/security/fundamentals/azure-certificate-authority-details#root-certificate-authorities"""
_PEM = re.compile("-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


def azure_roots() -> Trust:
    """Return those of ROOTS that the package certifi contains; it has others that the library will no longer read."""
    blocks = (base64.b64decode(one) for one in _PEM.findall(Path(certifi.where()).read_text()))
    return Trust(tuple(x509.load_der_x509_certificate(one) for one in blocks if hashlib.sha256(one).hexdigest() in ROOTS))


def roots_in(file: Path) -> Trust:
    """Return the certificates of a PEM file as roots; raise ValueError if there is none, or OSError."""
    return Trust(tuple(x509.load_pem_x509_certificates(file.read_bytes())))

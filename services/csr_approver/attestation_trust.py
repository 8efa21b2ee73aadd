"""Certificates that attested data is verified with: Azure's roots, and issuers' certificates that a chain lacked."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import certifi
import urllib3
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from services.csr_approver.attested_data import MOST_CERTIFICATES, Trust, allowed_url

LOG = logging.getLogger("gpufleet.csr-approver")
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
DOWNLOAD_SECONDS = 10.0
CERTIFICATE_BYTES = 16_384
MOST_INTERMEDIATES = 50
RETRY_SECONDS = 600.0
"""Time after which a URL is tried again."""
MOST_URLS = 1_000
OK = 200
_PEM = re.compile("-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


def azure_roots() -> Trust:
    """Return those of ROOTS that the package certifi contains; it has others that the library will no longer read."""
    blocks = (base64.b64decode(one) for one in _PEM.findall(Path(certifi.where()).read_text()))
    return Trust(tuple(x509.load_der_x509_certificate(one) for one in blocks if hashlib.sha256(one).hexdigest() in ROOTS))


def roots_in(file: Path) -> Trust:
    """Return the certificates of a PEM file as roots; raise ValueError if there is none, or OSError."""
    return Trust(tuple(x509.load_pem_x509_certificates(file.read_bytes())))


def download(url: str) -> bytes:
    """Return the content at a URL; raise urllib3's HTTPError or ValueError. No redirect is followed, since it can lead to any host."""
    pool = urllib3.PoolManager(retries=False, timeout=DOWNLOAD_SECONDS)
    with pool.request("GET", url, redirect=False, preload_content=False) as response:
        content = response.read(CERTIFICATE_BYTES + 1)
        if response.status != OK:
            raise ValueError(f"HTTP {response.status}")
    if len(content) > CERTIFICATE_BYTES:
        raise ValueError(f"more than {CERTIFICATE_BYTES} bytes")
    return bytes(content)


class IssuerStore:
    """Roots, and the issuers' certificates that were downloaded; one download per step, and one per URL in RETRY_SECONDS."""

    def __init__(self, trust: Trust, load: Callable[[str], bytes] = download) -> None:
        self.trust = trust
        self._load = load
        self._wanted: dict[str, None] = {}
        self._tried: dict[str, float] = {}

    def want(self, url: str) -> None:
        """Request the download of an issuer's certificate."""
        if len(self._wanted) < MOST_CERTIFICATES:
            self._wanted[url] = None

    def step(self, now: float) -> bool:
        """Download the next certificate, if one is due; return whether the store has a new one. now is a monotonic time in seconds."""
        while self._wanted:
            url = next(iter(self._wanted))
            del self._wanted[url]
            if now >= self._tried.get(url, float("-inf")) + RETRY_SECONDS and allowed_url(url):
                if len(self._tried) >= MOST_URLS:
                    self._tried.clear()
                self._tried[url] = now
                return self._add(url)
        return False

    def _add(self, url: str) -> bool:
        try:
            content = self._load(url)
            pem = content.lstrip().startswith(b"-----BEGIN")
            found = x509.load_pem_x509_certificate(content) if pem else x509.load_der_x509_certificate(content)
        except (urllib3.exceptions.HTTPError, ValueError, UnsupportedAlgorithm, OSError) as error:
            LOG.warning("no issuer's certificate from %s: %s", ascii(url), ascii(str(error))[:200])
            return False
        if found in self.trust.intermediates:
            return False
        LOG.info("downloaded the certificate of %s from %s", ascii(found.subject.rfc4514_string()), ascii(url))
        self.trust = replace(self.trust, intermediates=(*self.trust.intermediates, found)[-MOST_INTERMEDIATES:])
        return True

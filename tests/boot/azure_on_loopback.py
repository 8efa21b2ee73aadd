"""An instance metadata service and a Key Vault on loopback, and a certificate that the vault serves with."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ACCESS = "access-of-the-machine"
LOOPBACK = ipaddress.IPv4Address("127.0.0.1")


def certificate(name: str = "localhost") -> tuple[str, str]:
    """A self-signed certificate for loopback and its private key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(LOOPBACK)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return built.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


@dataclass
class Azure:
    """Responses of the two services, and the requests that they received.

    failures maps a path to statuses that come first, one per request; redirects maps a path to where it sends the caller.
    """

    imds: str = ""
    vault: str = ""
    authority: str = ""
    secrets: dict[str, Any] = field(default_factory=dict)
    instance: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, list[int]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def answer(self, target: str, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and body for a GET."""
        parts = urlsplit(target)
        self.requests.append((target, headers))
        if self.failures.get(parts.path):
            return self.failures[parts.path].pop(0), {"error": {"code": "Planned", "message": f"you sent {headers}"}}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/metadata/"):
            if headers.get("Metadata") != "true":
                return 400, {"error": "no Metadata header"}
            if parts.path == "/metadata/identity/oauth2/token":
                known = query.get("resource") == "https://vault.azure.net" and query.get("msi_res_id", "").startswith("/subscriptions/")
                return (200, {"access_token": ACCESS}) if known else (400, {"error": "invalid_request"})
            return 200, self.instance
        if headers.get("Authorization") != f"Bearer {ACCESS}":
            return 401, {"error": "Unauthorized"}
        name = parts.path.removeprefix("/secrets/")
        return (200, {"value": self.secrets[name]}) if name in self.secrets else (404, {"error": "SecretNotFound"})


def _handler(azure: Azure) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            redirect = azure.redirects.get(urlsplit(self.path).path)
            status, body = (302, {}) if redirect else azure.answer(self.path, dict(self.headers))
            payload = json.dumps(body).encode()
            self.send_response(status)
            if redirect:
                self.send_header("Location", redirect)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
            """Say nothing."""

    return Handler


@contextmanager
def azure_on_loopback(folder: Path) -> Iterator[Azure]:
    """Both services, the vault over HTTPS with a certificate of its own, whose file is authority."""
    azure = Azure()
    public, private = certificate()
    authority, key = folder / "vault.pem", folder / "vault-key.pem"
    authority.write_text(public)
    key.write_text(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, key)
    servers = [ThreadingHTTPServer((str(LOOPBACK), 0), _handler(azure)) for _ in range(2)]
    servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True)
    azure.imds = f"http://{LOOPBACK}:{servers[0].server_port}"
    azure.vault = f"https://{LOOPBACK}:{servers[1].server_port}"
    azure.authority = str(authority)
    threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield azure
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()

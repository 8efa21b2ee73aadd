"""Direct calls of a control plane's servers over HTTPS, with a certificate of one of its machines or with none."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path

from api_calls import Reply, reply_on

from rehearsal.local_cluster.machine import Machine

KEYS = "/etc/kubernetes/pki"


def context(authority: Path | None, identity: tuple[Path, Path] | None) -> ssl.SSLContext:
    """Trust in one authority (none: whoever answers is taken), and perhaps a certificate with its key."""
    made = ssl.create_default_context(cafile=str(authority) if authority else None)
    if authority is None:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if identity:
        made.load_cert_chain(*identity)
    return made


def identity(machine: Machine, name: str) -> tuple[Path, Path]:
    """Certificate and key of an API server's machine."""
    return machine.path(f"{KEYS}/{name}-cert.pem"), machine.path(f"{KEYS}/{name}-key.pem")


def get(port: int, path: str, trust: ssl.SSLContext | None, token: str = "") -> Reply:
    """One GET on loopback; without trust over plain HTTP."""
    made = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)
        if trust
        else http.client.HTTPConnection("127.0.0.1", port)
    )
    try:
        return reply_on(made, "GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    finally:
        made.close()


def speaks_http2(port: int, trust: ssl.SSLContext) -> bool:
    """Return whether a server answers the preface of HTTP/2 with settings, as gRPC does: https://www.rfc-editor.org/rfc/rfc9113#section-3.4.

    Raise ssl.SSLError or ConnectionError if it refuses the client; TLS 1.3 reports the refusal only after the handshake.
    """
    trust.set_alpn_protocols(["h2"])
    empty_settings = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, trust.wrap_socket(plain) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + empty_settings)
        return connection.recv(9)[3:4] == b"\x04"

"""Azure's blob service on loopback, with the tokens that it takes and what can go wrong on the way to it."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "boot"))
from azure_on_loopback import certificate

AZURITE = Path(__file__).parents[1] / "azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
LOOPBACK = "127.0.0.1"
START_SECONDS = 600
"""Azurite reads some thousand files before it listens: 2 s on a machine that is idle."""
CUT, FLIPPED, LOST = "cut", "flipped", "lost"


@dataclass
class Storage:
    """A container: url of it, metadata (the machine's metadata service), authority (the file of who signed its certificate).

    faults maps "METHOD comp" ("PUT block", "GET list", "GET ") to what becomes of the next requests: a status, CUT (the connection ends
    within the request), FLIPPED (one bit of the answer's body differs) or LOST (the request is carried out, and its answer does not
    arrive); None lets one through.
    """

    backend: int
    authority: Path
    url: str = ""
    metadata: str = ""
    faults: dict[str, list[int | str | None]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def token(self) -> str:
        now = int(time.time())
        claims = {
            "aud": "https://storage.azure.com",
            "iss": "https://sts.windows.net/tenant/",
            "iat": now,
            "nbf": now - 60,
            "exp": now + 3600,
        }
        return jwt.encode(claims, "nobody checks this signature, but it has a length", "HS256")

    def ask(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, list[tuple[str, str]], bytes]:
        """Send a request to the service and return its status, headers and body."""
        context = ssl.create_default_context(cafile=str(self.authority))
        connection = http.client.HTTPSConnection(LOOPBACK, self.backend, context=context, timeout=30)
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        found = answer.status, answer.getheaders(), answer.read()
        connection.close()
        return found

    def environment(self) -> dict[str, str]:
        """Environment by which a machine's program finds it."""
        return {"GPUFLEET_IMDS": self.metadata, "SSL_CERT_FILE": str(self.authority), "GPUFLEET_DEADLINE_SECONDS": "120"}


def _metadata(storage: Storage) -> type[BaseHTTPRequestHandler]:
    class Metadata(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            right = query.get("resource") == ["https://storage.azure.com"] and self.headers.get("Metadata") == "true"
            body = json.dumps(
                {"access_token": storage.token()} if right and "msi_res_id" in query else {"error": "invalid_request"}
            ).encode()
            self.send_response(200 if right else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Metadata


def _front(storage: Storage) -> type[BaseHTTPRequestHandler]:
    class Front(BaseHTTPRequestHandler):
        def setup(self) -> None:
            # In this connection's thread: a client that stops within its handshake must not keep the others waiting.
            self.request.do_handshake()
            super().setup()

        def serve(self) -> None:
            comp = parse_qs(urlsplit(self.path).query).get("comp", [""])[0]
            kind = f"{self.command} {comp}"
            storage.seen.append(kind)
            planned = storage.faults.get(kind) or [None]
            fault = planned.pop(0)
            length = int(self.headers.get("Content-Length") or 0)
            if fault == CUT:
                self.rfile.read(length // 2)
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            body = self.rfile.read(length)
            if len(body) < length:
                # The client ended within its request. Passed on, the service would wait for the rest of it.
                self.close_connection = True
                return
            if isinstance(fault, int):
                self.send_response(fault)
                self.send_header("x-ms-error-code", "AuthorizationPermissionMismatch" if fault == 403 else "ServerBusy")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, headers, answer = storage.ask(self.command, self.path, dict(self.headers), body)
            if fault == LOST:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if fault == FLIPPED:
                answer = answer[:4096] + bytes([answer[4096] ^ 1]) + answer[4097:]
            self.send_response(status)
            for name, value in headers:
                # Each connection carries one request. Python's HTTP client would keep one with a Keep-Alive header for the next request.
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "keep-alive"):
                    self.send_header(name, value)
            size = next((value for name, value in headers if name.lower() == "content-length"), "0")
            self.send_header("Content-Length", size if self.command == "HEAD" else str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = serve  # noqa: N815 (the base class's names)
        do_PUT = serve  # noqa: N815
        do_DELETE = serve  # noqa: N815
        do_HEAD = serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Front


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def _served(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _azurite(folder: Path, authority: Path, key: Path) -> Iterator[int]:
    node = shutil.which("node")
    if node is None or not AZURITE.exists():
        pytest.skip("Azurite is not installed: Node.js, then npm ci in tests/azurite (make test does it)")
    port = _free_port()
    flags = ["--blobHost", LOOPBACK, "--blobPort", str(port), "--oauth", "basic", "--cert", str(authority), "--key", str(key)]
    # However this process ends, the server goes with it.
    command = ["setpriv", "--pdeathsig", "KILL", node, str(AZURITE), *flags, "--inMemoryPersistence", "--disableTelemetry"]
    log = folder / "azurite.log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder) as process:
        try:
            until = time.monotonic() + START_SECONDS
            while "successfully listens" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.1)
            yield port
        finally:
            process.kill()


@contextmanager
def blob_storage(folder: Path, container: str) -> Iterator[Storage]:
    """An account with one empty container, reached as a private endpoint is: by HTTPS, with a bearer token."""
    public, private = certificate()
    authority, key = folder / "storage.pem", folder / "storage-key.pem"
    authority.write_text(public)
    key.write_text(private)
    with _azurite(folder, authority, key) as backend:
        storage = Storage(backend, authority)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority, key)
        front = ThreadingHTTPServer((LOOPBACK, 0), _front(storage))
        front.socket = context.wrap_socket(front.socket, server_side=True, do_handshake_on_connect=False)
        with _served(front) as port, _served(ThreadingHTTPServer((LOOPBACK, 0), _metadata(storage))) as metadata:
            storage.url = f"https://{LOOPBACK}:{port}/{ACCOUNT}/{container}"
            storage.metadata = f"http://{LOOPBACK}:{metadata}"
            given = {"Authorization": f"Bearer {storage.token()}", "x-ms-version": "2023-11-03", "Content-Length": "0"}
            status, _, said = storage.ask("PUT", f"/{ACCOUNT}/{container}?restype=container", given)
            assert status == 201, said
            yield storage

"""Azure's own addresses for tests: metadata service, wire server and DNS, with injected failures."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.azure_network.namespaces import Namespace

IMDS = "169.254.169.254"
"""https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service"""

WIRE_SERVER = "168.63.129.16"
"""https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""

WIRE_PORTS = (80, 32526)

RESOLVES_TO = "198.51.100.10"
"""Address to which every name resolves: the server on the internet."""


@dataclass(frozen=True)
class Answer:
    """One response of the metadata service. body None is the document; declared is the Content-Length if it differs from the body's.

    With `reset`, the connection is closed without a response.
    """

    status: int = 200
    body: bytes | None = None
    delay: float = 0.0
    declared: int | None = None
    reset: bool = False


@dataclass
class Metadata:
    """Responses to one machine: those in `first` one by one, then `always`; `requests` are the requested paths."""

    document: dict[str, Any]
    always: Answer = Answer()
    first: list[Answer] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


MetadataByAddress = Mapping[str, Metadata]
"""Metadata by source address, by which the metadata service recognizes a machine."""


def network_document(mac: str, addresses: list[str], subnet: str, prefix_length: int) -> dict[str, Any]:
    """Return the network section of a machine with one interface, the primary address first."""
    shown = [{"privateIpAddress": address, "publicIpAddress": ""} for address in addresses]
    ipv4 = {"ipAddress": shown, "subnet": [{"address": subnet, "prefix": str(prefix_length)}]}
    return {"interface": [{"ipv4": ipv4, "ipv6": {"ipAddress": []}, "macAddress": mac.replace(":", "").upper()}]}


@contextlib.contextmanager
def served(fabric: Namespace, metadata: MetadataByAddress) -> Iterator[None]:
    """Serve all of them in the namespace of the network, which has both addresses."""

    def servers() -> list[socketserver.BaseServer]:
        wire = [_Http((WIRE_SERVER, port), _WireServer) for port in WIRE_PORTS]
        return [
            _Http((IMDS, 80), _metadata_handler(metadata)),
            *wire,
            _UdpDns((WIRE_SERVER, 53), _DatagramDns),
            _TcpDns((WIRE_SERVER, 53), _StreamDns),
        ]

    made = fabric.within(servers)
    threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True) for server in made]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for server, thread in zip(made, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()


def _metadata_handler(metadata: MetadataByAddress) -> type[BaseHTTPRequestHandler]:
    class Handler(_Quiet):
        def do_GET(self) -> None:
            mine = metadata.get(self.client_address[0])
            if mine is None:
                self.answer(Answer(status=404), b"{}")
                return
            mine.requests.append(self.path)
            planned = mine.first.pop(0) if mine.first else mine.always
            time.sleep(planned.delay)
            status, body = _asked(mine.document, self.path, self.headers.get("Metadata", ""), "X-Forwarded-For" in self.headers)
            self.answer(Answer(status), body) if status != 200 else self.answer(planned, body)

    return Handler


def _asked(document: dict[str, Any], target: str, header: str, forwarded: bool) -> tuple[int, bytes]:
    """Return the status and body of the response to a valid or invalid request."""
    parts = urlsplit(target)
    if header.lower() != "true" or forwarded:
        return 400, b'{"error": "Bad request. Required metadata header not specified"}'
    if "api-version" not in parse_qs(parts.query):
        return 400, b'{"error": "Bad request. api-version was not specified in the request"}'
    value: Any = {"instance": document}
    for step in parts.path.removeprefix("/metadata").strip("/").split("/"):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, ValueError, TypeError):
            return 404, b'{"error": "Not found"}'
    return 200, json.dumps(value).encode()


class _Quiet(BaseHTTPRequestHandler):
    def answer(self, planned: Answer, document: bytes) -> None:
        if planned.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            for each in (self.rfile, self.wfile, self.connection):
                each.close()
            return
        body = document if planned.body is None else planned.body
        with contextlib.suppress(ConnectionError):
            self.send_response(planned.status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body) if planned.declared is None else planned.declared))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        self.close_connection = True

    def finish(self) -> None:
        # A caller that has gone, or that was sent away, is no error of the service's.
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's names
        """Log nothing."""


class _WireServer(_Quiet):
    def do_GET(self) -> None:
        self.answer(Answer(), b"<?xml version='1.0'?><Versions/>")


class _Http(ThreadingHTTPServer):
    def server_bind(self) -> None:
        """Bind without a reverse lookup of the address, which would time out in the namespace."""
        socketserver.TCPServer.server_bind(self)


class _UdpDns(socketserver.ThreadingUDPServer):
    daemon_threads = True


class _TcpDns(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _DatagramDns(socketserver.DatagramRequestHandler):
    def handle(self) -> None:
        self.wfile.write(_resolved(self.rfile.read()))


class _StreamDns(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(struct.error, OSError):
            (length,) = struct.unpack("!H", self.rfile.read(2))
            answer = _resolved(self.rfile.read(length))
            self.wfile.write(struct.pack("!H", len(answer)) + answer)


def _resolved(query: bytes) -> bytes:
    """Return a response with one A record to a query of one question, https://www.rfc-editor.org/rfc/rfc1035#section-4."""
    end = query.index(0, 12) + 5
    record = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(RESOLVES_TO)
    return query[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + query[12:end] + record

"""A backend for balancer tests: answers HTTPS probes as it is told to, and echoes whatever else a connection brings."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from pathlib import Path

from components.x509 import issue_authority

TLS_HANDSHAKE = b"\x16"


def self_signed(file: Path) -> Path:
    """A key and a certificate that nobody trusts, in one PEM file."""
    made = issue_authority("nobody", datetime.timedelta(days=1), datetime.datetime.now(datetime.UTC))
    file.write_text(made.private_key + made.certificate)
    return file


class BackendServer:
    """Listens on a loopback port; `status` None leaves a probe without an answer.

    A connection that does not begin with TLS gets the server's name, its own bytes back, and, once it has sent all, `end`.
    """

    def __init__(self, name: str, certificate: Path, port: int) -> None:
        self.name, self.port, self.probes = name, port, 0
        self.status: int | None = 200
        self.reading = threading.Event()
        self.reading.set()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._listener = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening, and let go of every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reading.set()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if connection.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
                self._answer(connection)
            else:
                connection.sendall(f"{self.name}\n".encode())
                while self.reading.wait() and (said := connection.recv(65536)):
                    connection.sendall(said)
                connection.sendall(b"end")

    def _answer(self, connection: socket.socket) -> None:
        with self._context.wrap_socket(connection, server_side=True) as secure:
            request = secure.recv(65536)
            self.probes += 1
            if self.status is None:
                secure.recv(1)
            elif request.startswith(b"GET /readyz HTTP/1.1\r\n"):
                secure.sendall(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())

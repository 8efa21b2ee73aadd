"""Notifications of a service over the socket of sd_notify(3), as in systemd."""

from __future__ import annotations

import os
import socket
from pathlib import Path

VARIABLE = "NOTIFY_SOCKET"
MAX_MESSAGE_BYTES = 64 * 2**10


class NotifySocket:
    """The socket of one service: a datagram socket in a private folder of the file system.

    Only READY=1 and STOPPING=1 have a meaning here; EXTEND_TIMEOUT_USEC, STATUS, WATCHDOG and others are read and dropped.
    """

    def __init__(self, path: Path) -> None:
        """Create the socket; raise OSError if the path is too long for unix(7) or its folder does not exist."""
        path.unlink(missing_ok=True)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))

    def fileno(self) -> int:
        """Return the descriptor that is readable when a message waits."""
        return self._socket.fileno()

    def received(self) -> list[tuple[str, str]]:
        """Return the assignments of all waiting messages in order, without blocking."""
        assignments: list[tuple[str, str]] = []
        while True:
            try:
                message = self._socket.recv(MAX_MESSAGE_BYTES)
            except BlockingIOError:
                return assignments
            assignments += [
                (name, value)
                for name, equals, value in (line.partition("=") for line in message.decode(errors="replace").splitlines())
                if equals
            ]

    def close(self) -> None:
        """Close the socket and remove its file."""
        self._socket.close()
        self.path.unlink(missing_ok=True)


def notify(message: str) -> None:
    """Send a message to the supervisor of this process, as sd_notify(3); do nothing without a supervisor."""
    address = os.environ.get(VARIABLE, "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(message.encode(), "\0" + address[1:] if address.startswith("@") else address)

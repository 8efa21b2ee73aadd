"""Hears what a service says of itself over the socket of sd_notify(3), as systemd does."""

from __future__ import annotations

import os
import socket
from pathlib import Path

VARIABLE = "NOTIFY_SOCKET"
LONGEST_MESSAGE = 64 * 2**10


class NotifySocket:
    """The socket of one service: a datagram socket in the file system, in a folder that is its owner's alone.

    Of the messages only READY=1 and STOPPING=1 mean something here; EXTEND_TIMEOUT_USEC, STATUS, WATCHDOG and others are read and dropped.
    """

    def __init__(self, path: Path) -> None:
        """Make the socket; OSError where the path is too long for unix(7) or its folder is not there."""
        path.unlink(missing_ok=True)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))

    def fileno(self) -> int:
        """Descriptor that is readable when a message waits."""
        return self._socket.fileno()

    def heard(self) -> list[tuple[str, str]]:
        """The assignments of all messages that wait, in order; never blocks."""
        said: list[tuple[str, str]] = []
        while True:
            try:
                message = self._socket.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                return said
            said += [
                (name, value)
                for name, equals, value in (line.partition("=") for line in message.decode(errors="replace").splitlines())
                if equals
            ]

    def close(self) -> None:
        """Close the socket and remove its file."""
        self._socket.close()
        self.path.unlink(missing_ok=True)


def notify(message: str) -> None:
    """Tell the supervisor of this process something, as sd_notify(3); nothing where nobody listens."""
    address = os.environ.get(VARIABLE, "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(message.encode(), "\0" + address[1:] if address.startswith("@") else address)

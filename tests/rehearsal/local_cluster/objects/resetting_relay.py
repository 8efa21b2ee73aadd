"""Relay to a server that resets connections."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


@contextmanager
def resets(server: str, every: int) -> Iterator[int]:
    """Yield the port of a relay that resets each connection after `every` responses; 0 resets at once."""
    target = urlsplit(server)
    assert target.hostname
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                thread = threading.Thread(target=_relay, args=(near, (target.hostname, target.port), every))
                threads.append(thread)
                thread.start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    acceptor.join()
    for thread in threads:
        thread.join()


def _relay(near: socket.socket, address: tuple[str, int], every: int) -> None:
    """Relay one connection until it has carried that many responses."""
    with near, socket.create_connection(address) as far:

        def up() -> None:
            with suppress(OSError):
                while data := near.recv(65_536):
                    far.sendall(data)
            with suppress(OSError):
                far.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=up)
        sender.start()
        with suppress(OSError):
            for _ in range(every):
                if not (data := far.recv(65_536)):
                    break
                near.sendall(data)
            # Closing with SO_LINGER 0 sends a reset.
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            near.shutdown(socket.SHUT_RD)
        near.close()
        sender.join()

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
    """Yield the port of a relay that resets each connection after the client has sent `every` times; 0 resets it at its first bytes."""
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
    """Relay one connection until the client has sent that many times; its next request gets a reset instead of a response.

    Responses are not counted: a busy machine reads one in any number of parts, so that no connection might carry a whole one.
    """
    with near, socket.create_connection(address) as far:

        def down() -> None:
            with suppress(OSError):
                while data := far.recv(65_536):
                    near.sendall(data)

        receiver = threading.Thread(target=down)
        receiver.start()
        with suppress(OSError):
            for _ in range(every):
                if not (data := near.recv(65_536)):
                    break
                far.sendall(data)
            else:
                near.recv(65_536)
            # Closing with SO_LINGER 0 sends a reset.
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            far.shutdown(socket.SHUT_RDWR)
        receiver.join()

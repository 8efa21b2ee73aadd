"""Servers in one namespace and callers in another, with what each saw of the other's address."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fabric import Machine, Namespace, Pod

PORT = 8080
PATIENCE = 3.0

Place = Machine | Pod | Namespace


@dataclass
class Server:
    """Server on a port that answers with the caller's own address, and a list of the callers' addresses in order."""

    address: str
    port: int
    seen: list[str] = field(default_factory=list)


@contextlib.contextmanager
def tcp_server(place: Place, address: str, port: int = PORT) -> Iterator[Server]:
    """Greet each caller with its own address."""
    server = Server(address, port)
    with contextlib.closing(place.within(lambda: socket.create_server((address, port)))) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, peer = listener.accept()
                except OSError:
                    return
                server.seen.append(peer[0])
                with connection:
                    connection.sendall(peer[0].encode())

        with _in_background(serve, listener):
            yield server


@contextlib.contextmanager
def udp_server(place: Place, address: str, port: int = PORT) -> Iterator[Server]:
    """Answer each datagram with its sender's address."""
    server = Server(address, port)

    def bound() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, port))
        return made

    with contextlib.closing(place.within(bound)) as listener:

        def serve() -> None:
            while True:
                try:
                    said, peer = listener.recvfrom(65535)
                except OSError:
                    return
                if not said:
                    return
                server.seen.append(peer[0])
                listener.sendto(peer[0].encode(), peer)

        with _in_background(serve, listener):
            yield server


def call(place: Place, address: str, port: int = PORT) -> str:
    """The caller's address as the server saw it; OSError where it cannot be reached."""

    def talk() -> str:
        with socket.create_connection((address, port), timeout=PATIENCE) as connection:
            return connection.recv(100).decode()

    return place.within(talk)


def send(place: Place, address: str, size: int, port: int = PORT, whole: bool = False) -> str:
    """As call, by one datagram of so many bytes; `whole` forbids that anything on its way cuts it to pieces."""

    def talk() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.settimeout(PATIENCE)
            if whole:
                datagrams.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO of linux/in.h
            datagrams.sendto(b"." * size, (address, port))
            return datagrams.recv(100).decode()

    return place.within(talk)


def reaches(place: Place, address: str, port: int = PORT) -> bool:
    """Return whether a TCP connection is accepted within a second."""

    def talk() -> bool:
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            return False
        return True

    return place.within(talk)


@contextlib.contextmanager
def _in_background(serve: Callable[[], None], listener: socket.socket) -> Iterator[None]:
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)

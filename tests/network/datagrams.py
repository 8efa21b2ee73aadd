"""Traffic of a known size between two namespaces: as many bytes as a packet's headers and payload say, and none else."""

from __future__ import annotations

import itertools
import socket
from dataclasses import dataclass

from fabric import INTERNET, Namespace

HEADERS = 28
"""Bytes of the headers of IPv4 and UDP, which the kernel counts."""
_ports = itertools.count(20_000)


def _udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.settimeout(10)
    return made


@dataclass
class Talk:
    """A UDP flow from inside to the outside; sent and answered are the bytes of its IP packets so far."""

    near: socket.socket
    far: socket.socket
    sent: int = 0
    answered: int = 0

    @classmethod
    def between(cls, inside: Namespace, outside: Namespace, address: str = INTERNET) -> Talk:
        """A flow that nothing has passed yet."""
        near, far, port = inside.within(_udp), outside.within(_udp), next(_ports)
        far.bind((address, port))
        near.connect((address, port))
        return cls(near, far)

    def send(self, datagrams: int, payload: int) -> None:
        """Datagrams that go out, each of which has arrived."""
        for _ in range(datagrams):
            self.near.send(bytes(payload))
            _, self.back = self.far.recvfrom(65_535)
            self.sent += payload + HEADERS

    def answer(self, datagrams: int, payload: int) -> None:
        """Datagrams that come back, after some went out."""
        for _ in range(datagrams):
            self.far.sendto(bytes(payload), self.back)
            self.near.recv(65_535)
            self.answered += payload + HEADERS

    def close(self) -> None:
        """Let go of both sockets."""
        self.near.close()
        self.far.close()

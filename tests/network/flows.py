"""Flows between pods and the internet, and what of each arrives per second, counted where it arrives."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fabric import INTERNET, Azure, Machine, Namespace, Pod

SETTLES = 1.0
"""Seconds in which connections find their pace."""

WINDOW = 5.0
"""Seconds over which is counted."""

PAYLOAD = 1448 / 1514
"""Share of a full packet's bytes on the wire that is a connection's."""

_ports = itertools.count(5201)


@dataclass
class Flow:
    """TCP of so many streams between a pod (or the machine itself) and a server; `down` is towards the pod."""

    place: Pod | Machine
    down: bool = False
    streams: int = 1
    server: Namespace | None = None
    address: str = INTERNET
    port: int = field(default_factory=lambda: next(_ports))

    def received(self) -> tuple[float, int]:
        """When, and how many bytes have arrived by then."""
        if self.down:
            (shown,) = json.loads(self.place.run("ip", "-s", "-json", "link", "show", "eth0"))
            return time.monotonic(), int(shown["stats64"]["rx"]["bytes"])
        assert self.server is not None
        rules = self.server.run("iptables", "-nvxL", "INPUT").splitlines()
        (line,) = (line for line in rules if line.endswith(f"dpt:{self.port}"))
        return time.monotonic(), int(line.split()[1])


@contextlib.contextmanager
def flowing(azure: Azure, *flows: Flow) -> Iterator[None]:
    """Have them all send as fast as they can, until the end of the block."""
    clients = []
    for flow in flows:
        flow.server = flow.server or azure.internet
        flow.server.run("iptables", "-A", "INPUT", "-p", "tcp", "--dport", str(flow.port))
        server = flow.server.start("iperf3", "-s", "-1", "-p", str(flow.port), "--forceflush")
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            assert server.poll() is None
    for flow in flows:
        inside = flow.place.inside
        words = ("-P", str(flow.streams), *(("-R",) if flow.down else ()))
        clients.append(inside.start("iperf3", "-c", flow.address, "-p", str(flow.port), "-t", "60", *words))
    try:
        time.sleep(SETTLES)
        yield
    finally:
        for client in clients:
            client.terminate()
            client.wait()


def rates(flows: Sequence[Flow], seconds: float = WINDOW) -> list[float]:
    """Mbit/s of each that arrive, over so many seconds."""
    before = [flow.received() for flow in flows]
    time.sleep(seconds)
    after = [flow.received() for flow in flows]
    return [(late[1] - early[1]) * 8 / 1e6 / (late[0] - early[0]) for early, late in zip(before, after, strict=True)]


def rates_of(azure: Azure, *flows: Flow) -> list[float]:
    """Mbit/s of each while all of them send."""
    with flowing(azure, *flows):
        return rates(flows)

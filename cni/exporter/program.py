"""Starts the exporter, and decides when it counts and when it asks the kubelet."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cni.exporter import state
from cni.exporter.collector import LOG, Books, Traffic
from cni.exporter.counters import Kernel
from cni.exporter.kubelet import ACCOUNT, Kubelet, KubeletUnreachableError
from cni.exporter.reservations import Reservations
from cni.exporter.server import Server

PORT = 9119
TICK_SECONDS = 15.0
"""Counts between scrapes: what a stranger's flush can lose of a pod's is at most what passed since."""
SOON_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Waits before the kubelet is asked for a new pod's name, in turn: its address is in its status about a second after it runs."""


@dataclass
class Asking:
    """When the kubelet is asked: soon after an address changed hands, until every one has a name, and every so many seconds at least."""

    every: float
    due: float = 0.0
    tries: int = 0

    def changed(self, now: float) -> None:
        """An address changed hands."""
        self.tries = 0
        self.due = min(self.due, now + SOON_SECONDS[0])

    def asked(self, now: float, unnamed: int, before: int) -> None:
        """The kubelet was asked; so many addresses have no name, and had none before: where it told of some, it soon tells of others."""
        self.tries = 0 if unnamed < before else self.tries
        wait = SOON_SECONDS[self.tries] if unnamed and self.tries < len(SOON_SECONDS) else self.every
        self.tries += 1
        self.due = now + wait


class Program:
    """The exporter's own thread; scrapes have theirs."""

    def __init__(self, books: Books, kubelet: Kubelet, reservations: Reservations, every: float) -> None:
        self._books, self._kubelet, self._reservations = books, kubelet, reservations
        self._asking = Asking(every)
        self._tick = 0.0

    def resume(self) -> None:
        """Take up where the last exporter of this machine left off."""
        with self._books.lock:
            here = self._reservations.now()
            self._books.ledger.resume(here)
            self._books.changed_hands(here)

    def step(self, wake: int) -> bool:
        """Wait for what is next, and do it; False when wake is readable, which is the end."""
        wait = max(min(self._asking.due, self._tick) - time.monotonic(), 0.0)
        ready, _, _ = select.select([self._reservations.fileno(), wake], [], [], wait)
        if wake in ready:
            return False
        if self._reservations.drain():
            self._followed(self._books.changed_hands)
        now = time.monotonic()
        if now >= self._asking.due:
            self._ask()
        if now >= self._tick:
            self._tick = now + TICK_SECONDS
            # Whatever inotify did not tell, for example because its queue was full, is seen here.
            self._followed(self._books.changed_hands)
            with self._books.lock:
                self._books.tidy()
        return True

    def _followed(self, follow: Callable[[dict[str, str]], bool]) -> None:
        with self._books.lock:
            if follow(self._reservations.now()):
                self._asking.changed(time.monotonic())

    def _ask(self) -> None:
        asked, before = time.time(), self._books.ledger.unnamed()
        try:
            pods = dict(self._kubelet.pods())
        except KubeletUnreachableError as unanswered:
            LOG.warning("kubelet: %s", unanswered)
        else:
            # An address that was reserved while the kubelet answered is not one that it gave out by itself.
            self._followed(self._books.changed_hands)
            with self._books.lock:
                self._books.answered(pods, asked)
        self._asking.asked(time.monotonic(), self._books.ledger.unnamed(), before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGTERM; everything that is known then is on the host's disk."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    wake = _on_end()
    options.state.mkdir(parents=True, exist_ok=True)
    books = Books(options.state, frozenset(options.team), Kernel(), *state.load(options.state), options.zero_seconds)
    kubelet = Kubelet(options.node, options.kubelet_address, options.kubelet_port, options.token, options.authority)
    program = Program(books, kubelet, Reservations(options.reservations), options.kubelet_seconds)
    program.resume()
    try:
        server = Server(options.address, options.port, Traffic(books))
    except OSError as error:
        sys.exit(f"{options.address}:{options.port}: {error.strerror or error}; an address of this machine and a free port are needed")
    LOG.info("http://%s:%d/metrics", options.address, options.port)
    while program.step(wake):
        pass
    server.close()
    with books.lock:
        books.tidy()


def _on_end() -> int:
    """Descriptor that is readable once the program is told to end: a signal must not come in the middle of a count."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return reading


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address; give one of the machine's, for example $(NODE_IP)") from None


def parser() -> argparse.ArgumentParser:
    """What the program may be told."""
    made = argparse.ArgumentParser(
        prog="gpufleet-traffic-exporter",
        description="Tells Prometheus what this machine and each of its pods send to the internet and get from it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = made.add_argument
    add("--address", type=_address, required=True, help="address of the machine on which metrics are told")
    add("--port", type=int, default=PORT, help="port of the metrics")
    add("--node", required=True, help="name of the node, which the kubelet's certificate must bear")
    add("--team", action="append", default=[], metavar="NAMESPACE", help="a namespace that is a team's; once for each")
    add("--reservations", type=Path, default=Path("/run/gpufleet/cni/gpufleet"), help="host-local's files of addresses that are taken")
    add("--state", type=Path, default=Path("/run/gpufleet/traffic"), help="folder of what outlives the exporter, and of holders.json")
    add("--kubelet-address", type=_address, default="127.0.0.1", help="where the kubelet listens")
    add("--kubelet-port", type=int, default=10250, help="its port")
    add("--kubelet-seconds", type=float, default=1800.0, help="longest time between two questions to the kubelet")
    add("--zero-seconds", type=float, default=30.0, help="seconds for which a new pod is told as 0: Prometheus' scrape interval at least")
    add("--token", type=Path, default=ACCOUNT / "token", help="file of the token that the kubelet is shown")
    add("--authority", type=Path, default=ACCOUNT / "ca.crt", help="file of the authority that the kubelet's certificate must be from")
    return made

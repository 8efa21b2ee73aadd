"""Program of the exporter: command line, main loop, and schedule of requests to the kubelet."""

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
from cni.exporter.collector import LOG, ExporterState, MetricsServer, TrafficCollector
from cni.exporter.counters import Kernel
from cni.exporter.kubelet import ACCOUNT, Kubelet, KubeletUnreachableError
from cni.exporter.reservations import Reservations

PORT = 9119
TICK_SECONDS = 15.0
"""Interval of counts between scrapes, hence the longest period that a flush by another program can lose."""
SOON_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Waits before requests for a new pod's name, in turn: its address is in its status about a second after it runs."""


@dataclass
class KubeletSchedule:
    """Times of requests to the kubelet: soon after an address changed its pod, until every pod has a name, and at a fixed interval."""

    every: float
    due: float = 0.0
    tries: int = 0

    def changed(self, now: float) -> None:
        """Schedule a request soon, because an address changed its pod."""
        self.tries = 0
        self.due = min(self.due, now + SOON_SECONDS[0])

    def asked(self, now: float, unnamed: int, before: int) -> None:
        """Schedule the next request after one; sooner where the answer named some of the unnamed addresses."""
        self.tries = 0 if unnamed < before else self.tries
        wait = SOON_SECONDS[self.tries] if unnamed and self.tries < len(SOON_SECONDS) else self.every
        self.tries += 1
        self.due = now + wait


class Program:
    """The exporter's own thread; scrapes have other threads."""

    def __init__(self, current: ExporterState, kubelet: Kubelet, reservations: Reservations, every: float) -> None:
        self._state, self._kubelet, self._reservations = current, kubelet, reservations
        self._asking = KubeletSchedule(every)
        self._tick = 0.0

    def resume(self) -> None:
        """Resume from the state of this machine's last exporter."""
        with self._state.lock:
            here = self._reservations.now()
            self._state.ledger.resume(here)
            self._state.changed_hands(here)

    def step(self, wake: int) -> bool:
        """Wait for the next event and handle it; return False when wake is readable, which ends the program."""
        wait = max(min(self._asking.due, self._tick) - time.monotonic(), 0.0)
        ready, _, _ = select.select([self._reservations.fileno(), wake], [], [], wait)
        if wake in ready:
            return False
        if self._reservations.drain():
            self._followed(self._state.changed_hands)
        now = time.monotonic()
        if now >= self._asking.due:
            self._ask()
        if now >= self._tick:
            self._tick = now + TICK_SECONDS
            # Whatever inotify did not tell, for example because its queue was full, is seen here.
            self._followed(self._state.changed_hands)
            with self._state.lock:
                self._state.tidy()
        return True

    def _followed(self, follow: Callable[[dict[str, str]], bool]) -> None:
        with self._state.lock:
            if follow(self._reservations.now()):
                self._asking.changed(time.monotonic())

    def _ask(self) -> None:
        asked, before = time.time(), self._state.ledger.unnamed()
        try:
            pods = dict(self._kubelet.pods())
        except KubeletUnreachableError as unanswered:
            LOG.warning("kubelet: %s", unanswered)
        else:
            # An address that was reserved while the kubelet answered is not one that it gave out by itself.
            self._followed(self._state.changed_hands)
            with self._state.lock:
                self._state.answered(pods, asked)
        self._asking.asked(time.monotonic(), self._state.ledger.unnamed(), before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until SIGTERM; the state is then on the host's disk."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    wake = _on_end()
    options.state.mkdir(parents=True, exist_ok=True)
    current = ExporterState(options.state, frozenset(options.team), Kernel(), *state.load(options.state), options.zero_seconds)
    kubelet = Kubelet(options.node, options.kubelet_address, options.kubelet_port, options.token, options.authority)
    program = Program(current, kubelet, Reservations(options.reservations), options.kubelet_seconds)
    program.resume()
    try:
        server = MetricsServer(options.address, options.port, TrafficCollector(current))
    except OSError as error:
        sys.exit(f"{options.address}:{options.port}: {error.strerror or error}; an address of this machine and a free port are needed")
    LOG.info("http://%s:%d/metrics", options.address, options.port)
    while program.step(wake):
        pass
    server.close()
    with current.lock:
        current.tidy()


def _on_end() -> int:
    """Return a descriptor that is readable once the program must end: a signal must not interrupt a count."""
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
    """Return the command line's parser."""
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

"""Prometheus metrics of the traffic, and the HTTP server that serves them.

Names and labels of the rules are those of https://github.com/madron/iptables-exporter, so that dashboards for it continue to work.
"""

from __future__ import annotations

import logging
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cni.exporter import state
from cni.exporter.attribution import Pod, PodTraffic, team_of
from cni.exporter.counters import CounterReadError, Kernel, Rules, RuleTotals, Sets
from cni.node import addresses
from cni.node.addresses import Holder

LOG = logging.getLogger("gpufleet-traffic-exporter")
FAMILY, TABLE = "4", "mangle"
RULE_LABELS = ("ip_version", "table", "chain", "rule")
_SUBTRACTED = "traffic=not-internet-"
POD_LABELS = ("namespace", "pod", "team", "direction")


@dataclass
class ExporterState:
    """State of the exporter: byte counts, totals of rules and their folder. Callers must take lock. kubelet_at is the time of its last
    answer.
    """

    folder: Path
    teams: frozenset[str]
    kernel: Kernel
    ledger: PodTraffic
    totals: RuleTotals
    zero_seconds: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    kubelet_at: float = 0.0
    shaped: bool = False
    written: dict[str, Holder] | None = None

    def count_sets(self) -> None:
        """Read the sets; a failed read is made up for by the next one, because counters continue."""
        try:
            self._take(self.kernel.sets())
        except CounterReadError as unreadable:
            LOG.warning("%s", unreadable)

    def count_all(self) -> Rules | None:
        """Read rules and sets; return None where they cannot be read."""
        try:
            rules, sets = self.kernel.both()
        except CounterReadError as unreadable:
            LOG.warning("%s", unreadable)
            return None
        self._take(sets)
        self.totals.count(rules.counts)
        return rules

    def changed_hands(self, reservations: dict[str, str]) -> bool:
        """Count, then follow the reservations; return whether an address changed its pod."""
        self.count_sets()
        return self._keep(self.ledger.reserve(reservations, time.time()))

    def answered(self, pods: dict[str, list[Pod]], requested_at: float) -> None:
        """Apply the kubelet's answer, requested at that time; just after changed_hands()."""
        self.kubelet_at = requested_at
        self._keep(self.ledger.name(pods, requested_at))

    def tidy(self) -> None:
        """Count, forget pods that were reported long enough ago, and save everything."""
        self.count_sets()
        self.ledger.tidy(time.time())
        self._keep(True)

    def save(self) -> None:
        """Save the state that must survive the exporter."""
        state.save(self.folder, self.ledger, self.totals)

    def _take(self, sets: Sets) -> None:
        self.ledger.count(sets.bytes)
        self.shaped = sets.shaped

    def _keep(self, changed: bool) -> bool:
        if changed:
            self.save()
        now = self.ledger.holders(self.teams)
        if now != self.written:
            addresses.write_holders(self.folder / addresses.HOLDERS_PATH.name, now)
            self.written = now
        return changed


class TrafficCollector(Collector):
    """Collector that reads the kernel's counters at each scrape."""

    def __init__(self, current: ExporterState) -> None:
        self._state = current

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, all of one moment."""
        current = self._state
        with current.lock:
            rules = current.count_all()
            first_time = current.ledger.has_unreported()
            metrics = [*_rules(current.totals, rules), _pods(current), *_health(current, rules)]
            if first_time:
                # If a pod were reported as 0 again after a crash, its bytes would be counted twice.
                current.save()
        yield from metrics


def _rules(totals: RuleTotals, rules: Rules | None) -> Iterator[Metric]:
    octets = CounterMetricFamily("iptables_bytes", "Bytes that a marked rule matched.", labels=RULE_LABELS)
    packets = CounterMetricFamily("iptables_packets", "Packets that a marked rule matched.", labels=RULE_LABELS)
    for (chain, name), (packet_count, byte_count) in totals.total.items():
        if not packet_count and _SUBTRACTED in name:
            # Four hooks by nine ranges, of which most machines meet three, would be the most of what 7,500 machines tell.
            continue
        octets.add_metric((FAMILY, TABLE, chain, name), byte_count)
        packets.add_metric((FAMILY, TABLE, chain, name), packet_count)
    number = GaugeMetricFamily("iptables_rules", "Rules in a chain.", labels=RULE_LABELS[:-1])
    for chain, count in (rules.by_chain if rules else {}).items():
        number.add_metric((FAMILY, TABLE, chain), count)
    yield from (octets, packets, number)


def _pods(current: ExporterState) -> Metric:
    """Return the pods' metric. A pod without a name is the sum of a namespace's ended pods; without a namespace too, of unattributed
    bytes.
    """
    metric = CounterMetricFamily(
        "pod_internet_bytes", "Bytes between a pod and the internet, as IP packets; nobody's without names.", labels=POD_LABELS
    )
    for owner, direction, value in current.ledger.samples(time.time(), current.zero_seconds):
        metric.add_metric((*owner, team_of(owner, current.teams), direction), value)
    return metric


def _health(current: ExporterState, rules: Rules | None) -> Iterator[Metric]:
    missing = len(rules.missing) if rules else 0
    in_place = rules is not None and not missing
    rows: tuple[tuple[Callable[[str, str], Metric], str, str, float], ...] = (
        (_gauge, "gpufleet_traffic_accounting_in_place", "1 if every rule that counts is there and was read.", in_place),
        (_gauge, "gpufleet_traffic_missing_rules", "Rules that count and are not there.", missing),
        (_gauge, "gpufleet_traffic_shaping", "1 if internet-bound traffic is shaped.", current.shaped),
        (_gauge, "gpufleet_traffic_kubelet_answered_timestamp_seconds", "When the kubelet last told of its pods.", current.kubelet_at),
        (_gauge, "gpufleet_traffic_unnamed_addresses", "Addresses held by a pod not known yet.", current.ledger.unnamed()),
        (
            _counter,
            "gpufleet_traffic_resets",
            "Counters that were found smaller than before.",
            current.ledger.resets + current.totals.resets,
        ),
    )
    for kind, name, text, value in rows:
        metric = kind(name, text)
        metric.add_sample(f"{name}_total" if kind is _counter else name, {}, float(value))
        yield metric


def _gauge(name: str, text: str) -> Metric:
    return GaugeMetricFamily(name, text)


def _counter(name: str, text: str) -> Metric:
    return CounterMetricFamily(name, text)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without a DNS lookup of the address's name, which may fail on a starting node."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's names
        """Log nothing."""


class MetricsServer:
    """Server of a collector's metrics at address and port, one thread per request; OSError where they are not available."""

    def __init__(self, address: str, port: int, collector: Collector) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server = make_server(address, port, make_wsgi_app(registry), server_class=_Server, handler_class=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

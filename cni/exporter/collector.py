"""What is told to Prometheus, under which names.

Names and labels of the rules are those of https://github.com/madron/iptables-exporter, so that what was made for it keeps working.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cni.exporter import state
from cni.exporter.attribution import Ledger, Pod, team_of
from cni.exporter.counters import CounterReadError, Kernel, Rules, Sets
from cni.exporter.rule_totals import RuleTotals
from cni.node import addresses
from cni.node.addresses import Holder

LOG = logging.getLogger("gpufleet-traffic-exporter")
FAMILY, TABLE = "4", "mangle"
RULE_LABELS = ("ip_version", "table", "chain", "rule")
_SUBTRACTED = "traffic=not-internet-"
POD_LABELS = ("namespace", "pod", "team", "direction")


@dataclass
class Books:
    """The ledger, the rules' totals and where they are kept; whoever uses them holds lock. kubelet_at is when it last answered."""

    folder: Path
    teams: frozenset[str]
    kernel: Kernel
    ledger: Ledger
    totals: RuleTotals
    zero_seconds: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    kubelet_at: float = 0.0
    shaped: bool = False
    written: dict[str, Holder] | None = None

    def count_sets(self) -> None:
        """Take over what the sets say now; what cannot be read now is read next time, for counters go on."""
        try:
            self._take(self.kernel.sets())
        except CounterReadError as unreadable:
            LOG.warning("%s", unreadable)

    def count_all(self) -> Rules | None:
        """Take over what rules and sets say now; None where they cannot be read."""
        try:
            rules, sets = self.kernel.both()
        except CounterReadError as unreadable:
            LOG.warning("%s", unreadable)
            return None
        self._take(sets)
        self.totals.count(rules.counts)
        return rules

    def changed_hands(self, reservations: dict[str, str]) -> bool:
        """Count, then follow the reservations; says whether an address changed hands."""
        self.count_sets()
        return self._keep(self.ledger.reserve(reservations, time.time()))

    def answered(self, pods: dict[str, list[Pod]], asked: float) -> None:
        """Take over what the kubelet answered, who was asked at that time; just after changed_hands()."""
        self.kubelet_at = asked
        self._keep(self.ledger.name(pods, asked))

    def tidy(self) -> None:
        """Count, forget what was told long enough ago, and write everything down."""
        self.count_sets()
        self.ledger.tidy(time.time())
        self._keep(True)

    def save(self) -> None:
        """Write down what must outlive the exporter."""
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


class Traffic(Collector):
    """Reads the kernel's counters when it is asked, and tells what they come to."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def collect(self) -> Iterator[Metric]:
        """Every metric, of one moment."""
        books = self._books
        with books.lock:
            rules = books.count_all()
            first_time = books.ledger.untold()
            told = [*_rules(books.totals, rules), _pods(books), *_health(books, rules)]
            if first_time:
                # Told 0 again after a crash, a pod that was told more before would seem to have sent all of it twice.
                books.save()
        yield from told


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


def _pods(books: Books) -> Metric:
    """A pod without name is the sum of a namespace's ended pods that were too many to keep; without namespace too, of what is nobody's."""
    metric = CounterMetricFamily(
        "pod_internet_bytes", "Bytes between a pod and the internet, as IP packets; nobody's without names.", labels=POD_LABELS
    )
    for owner, direction, value in books.ledger.tell(time.time(), books.zero_seconds):
        metric.add_metric((*owner, team_of(owner, books.teams), direction), value)
    return metric


def _health(books: Books, rules: Rules | None) -> Iterator[Metric]:
    missing = len(rules.missing) if rules else 0
    in_place = rules is not None and not missing
    rows: tuple[tuple[Callable[[str, str], Metric], str, str, float], ...] = (
        (_gauge, "gpufleet_traffic_accounting_in_place", "1 if every rule that counts is there and was read.", in_place),
        (_gauge, "gpufleet_traffic_missing_rules", "Rules that count and are not there.", missing),
        (_gauge, "gpufleet_traffic_shaping", "1 if internet-bound traffic is shaped.", books.shaped),
        (_gauge, "gpufleet_traffic_kubelet_answered_timestamp_seconds", "When the kubelet last told of its pods.", books.kubelet_at),
        (_gauge, "gpufleet_traffic_unnamed_addresses", "Addresses held by a pod not known yet.", books.ledger.unnamed()),
        (_counter, "gpufleet_traffic_resets", "Counters that were found smaller than before.", books.ledger.resets + books.totals.resets),
    )
    for kind, name, text, value in rows:
        metric = kind(name, text)
        metric.add_sample(f"{name}_total" if kind is _counter else name, {}, float(value))
        yield metric


def _gauge(name: str, text: str) -> Metric:
    return GaugeMetricFamily(name, text)


def _counter(name: str, text: str) -> Metric:
    return CounterMetricFamily(name, text)

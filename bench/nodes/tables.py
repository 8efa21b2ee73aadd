"""Tables of counted requests: for one node, for 7,500 nodes, and with the settings of gpufleet's kubelet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.nodes.audit import Counted, RequestKind
from bench.nodes.hollow import KUBELET, LEASE_SECONDS, PROXY, REPORT_SECONDS
from bench.results import ResultTable
from components.boot import shared_settings

FULL = 7_500
HOUR = 3_600.0
ON_NODES = (KUBELET, PROXY)
LEASE, REPORT = "leases", "nodes/status"
BYTES_HERE = {
    "events of leases": LEASE_SECONDS / shared_settings.LEASE_SECONDS,
    "events of nodes": REPORT_SECONDS / shared_settings.REPORT_SECONDS,
}
"""Factors of gpufleet's kubelet settings on the bytes that kubemark's kubelet causes."""
RARE_BYTES = 10.0
"""Bytes per node and second below which a row is omitted."""


def markdown(nodes: int, seconds: float, counted: Counted, sent: Mapping[str, float]) -> str:
    """Return all tables as Markdown."""
    return "\n\n".join(f"{one.title}:\n\n{_table(one.headings, one.rows)}" for one in tables(nodes, seconds, counted, sent))


def tables(nodes: int, seconds: float, counted: Counted, sent: Mapping[str, float]) -> tuple[ResultTable, ...]:
    """Return all tables: requests, watches, the constant part, and bytes sent."""
    rows: tuple[tuple[str, tuple[str, ...], Iterator[tuple[str, ...]]], ...] = (
        (
            "Requests of nodes at rest",
            ("component", "request", "per node and hour", "7,500 nodes, per second"),
            _requests(nodes, seconds, counted),
        ),
        ("Open watches of nodes", ("component", "watch", "per node", "7,500 nodes"), _watches(nodes, counted)),
        (
            "Constant part, independent of the number of nodes",
            ("component", "requests per second", "open watches"),
            _constant(seconds, counted),
        ),
        (
            "Bytes that the API server sent in answers to reads and in events of watches, beyond those without nodes",
            ("what", "per node and hour, kB", "7,500 nodes, MB per second"),
            _bytes(nodes, sent),
        ),
    )
    return tuple(ResultTable(title, headings, list(cells)) for title, headings, cells in rows)


def ours(what: RequestKind, rate: float) -> float:
    """Return a rate of kubemark's kubelet with the settings of gpufleet's kubelet: less frequent leases and reports."""
    if what.component == KUBELET and what.resource == LEASE and what.verb in ("update", "patch", "get"):
        return rate * LEASE_SECONDS / shared_settings.LEASE_SECONDS
    if what.component == KUBELET and what.resource == REPORT:
        return rate * REPORT_SECONDS / shared_settings.REPORT_SECONDS
    return rate


def _requests(nodes: int, seconds: float, counted: Counted) -> Iterator[tuple[str, ...]]:
    """Yield each kind of request, measured and with gpufleet's settings, and the sum."""
    total = 0.0
    for what, count in sorted(_merged(counted.requests).items()):
        measured = count / nodes / seconds * HOUR
        here = ours(what, measured)
        total += here
        note = "" if here == measured else f" (measured {measured:.1f}, with kubemark's own period)"
        yield what.component, f"{what.verb} {what.resource}{note}", f"{here:.1f}", f"{here * FULL / HOUR:.2f}"
    yield "all", "", f"{total:.0f}", f"{total * FULL / HOUR:.0f}"


def _watches(nodes: int, counted: Counted) -> Iterator[tuple[str, ...]]:
    total = 0.0
    for what, count in sorted(counted.watches.items()):
        if what.component in ON_NODES:
            total += count / nodes
            selected = f" ({what.selected})" if what.selected else ""
            yield what.component, f"{what.resource}{selected}", f"{count / nodes:.1f}", f"{count / nodes * FULL:,.0f}"
    yield "all", "", f"{total:.1f}", f"{total * FULL:,.0f}"


def _constant(seconds: float, counted: Counted) -> Iterator[tuple[str, ...]]:
    requests: Counter[str] = Counter()
    watches: Counter[str] = Counter()
    for found, into in ((counted.requests, requests), (counted.watches, watches)):
        for what, count in found.items():
            into[what.component] += count
    for name in sorted(set(requests) | set(watches)):
        if name not in ON_NODES:
            yield name, f"{requests[name] / seconds:.2f}", str(watches[name])


def _bytes(nodes: int, sent: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    for name, size in sorted(sent.items(), key=lambda pair: -pair[1]):
        if size / nodes >= RARE_BYTES:
            here = size / nodes * BYTES_HERE.get(name, 1.0)
            yield name, f"{here * HOUR / 1000:,.0f}", f"{here * FULL / 1e6:.2f}"


def _merged(requests: Counter[RequestKind]) -> Counter[RequestKind]:
    """Count requests of components on nodes; watches of a resource count together, whatever their selectors."""
    found: Counter[RequestKind] = Counter()
    for what, count in requests.items():
        if what.component in ON_NODES and count:
            found[RequestKind(what.component, what.verb, what.resource)] += count
    return found


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)

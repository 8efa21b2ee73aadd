"""Sets of addresses or ports as sorted, disjoint, inclusive ranges; a check covers every member, not a sample."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

RangeSet = tuple[tuple[int, int], ...]

EMPTY: RangeSet = ()
ALL_ADDRESSES: RangeSet = ((0, 2**32 - 1),)
ALL_PORTS: RangeSet = ((0, 65_535),)


def union(*sets: RangeSet) -> RangeSet:
    """Return the union of some sets."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(span for spans in sets for span in spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(first: RangeSet, second: RangeSet) -> RangeSet:
    """Return the intersection of two sets."""
    return tuple((max(a, c), min(b, d)) for a, b in first for c, d in second if max(a, c) <= min(b, d))


def difference(first: RangeSet, second: RangeSet) -> RangeSet:
    """Return the first set without the second."""
    left = list(first)
    for low, high in second:
        left = [part for a, b in left for part in ((a, min(b, low - 1)), (max(a, high + 1), b)) if part[0] <= part[1]]
    return tuple(left)


def size(spans: RangeSet) -> int:
    """Return the number of members."""
    return sum(high - low + 1 for low, high in spans)


def of_networks(cidrs: Iterable[str]) -> RangeSet:
    """Return the addresses of IPv4 networks or single addresses; raise ValueError for anything else."""
    networks = [ipaddress.IPv4Network(cidr) for cidr in cidrs]
    return union(tuple((int(network.network_address), int(network.broadcast_address)) for network in networks))


def of_ports(ranges: Iterable[str]) -> RangeSet:
    """Return the ports of ranges such as "443", "2379-2380" or "*"."""
    spans: list[tuple[int, int]] = []
    for text in ranges:
        if text == "*":
            return ALL_PORTS
        low, _, high = text.partition("-")
        spans.append((int(low), int(high or low)))
    return union(tuple(spans))


def networks_text(spans: RangeSet) -> str:
    """Return addresses as the text of at most three networks."""
    networks = [
        str(network)
        for low, high in spans
        for network in ipaddress.summarize_address_range(ipaddress.IPv4Address(low), ipaddress.IPv4Address(high))
    ]
    more = f" and {len(networks) - 3} more" if len(networks) > 3 else ""
    return ", ".join(networks[:3]) + more


def ports_text(spans: RangeSet) -> str:
    """Return ports as the text of ranges."""
    if spans == ALL_PORTS:
        return "all ports"
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)

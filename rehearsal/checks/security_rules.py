"""Evaluation of a network security group for sets of flows, in Azure's order and with Azure's default rules.

https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rehearsal.checks import range_sets
from rehearsal.checks.range_sets import RangeSet

PROTOCOLS = frozenset({"Tcp", "Udp", "Icmp", "Esp", "Ah"})
INBOUND, OUTBOUND = "Inbound", "Outbound"
PLATFORM = range_sets.of_networks(["168.63.129.16/32"])
"""Source address of probes: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""


@dataclass(frozen=True)
class FlowSet:
    """All flows of some protocols from some addresses to some addresses at some destination ports."""

    protocols: frozenset[str]
    sources: RangeSet
    destinations: RangeSet
    ports: RangeSet

    def __bool__(self) -> bool:
        """Return whether the set contains any flow."""
        return bool(self.protocols and self.sources and self.destinations and self.ports)

    def text(self) -> str:
        """Return protocols, ports and addresses as text."""
        protocols = "any protocol" if self.protocols == PROTOCOLS else "/".join(sorted(self.protocols)).upper()
        ends = f"from {range_sets.networks_text(self.sources)} to {range_sets.networks_text(self.destinations)}"
        return f"{protocols} {range_sets.ports_text(self.ports)} {ends}"


def intersection(first: FlowSet, second: FlowSet) -> FlowSet:
    """Return the flows in both sets."""
    return FlowSet(
        first.protocols & second.protocols,
        range_sets.intersection(first.sources, second.sources),
        range_sets.intersection(first.destinations, second.destinations),
        range_sets.intersection(first.ports, second.ports),
    )


def difference(first: FlowSet, second: FlowSet) -> tuple[FlowSet, ...]:
    """Return the first set without the second, as disjoint parts."""
    middle = intersection(first, second)
    if not middle:
        return (first,)
    parts = (
        replace(first, protocols=first.protocols - middle.protocols),
        replace(first, protocols=middle.protocols, sources=range_sets.difference(first.sources, middle.sources)),
        FlowSet(middle.protocols, middle.sources, range_sets.difference(first.destinations, middle.destinations), first.ports),
        FlowSet(middle.protocols, middle.sources, middle.destinations, range_sets.difference(first.ports, middle.ports)),
    )
    return tuple(part for part in parts if part)


def intersections(first: Iterable[FlowSet], second: Sequence[FlowSet]) -> tuple[FlowSet, ...]:
    """Return the intersections of each of the first sets with each of the second."""
    return tuple(both for one in first for other in second if (both := intersection(one, other)))


def remaining(required: FlowSet, allowed: Iterable[FlowSet]) -> tuple[FlowSet, ...]:
    """Return the required flows that are not among the allowed ones."""
    left: tuple[FlowSet, ...] = (required,)
    for flows in allowed:
        left = tuple(part for piece in left for part in difference(piece, flows))
    return left


@dataclass(frozen=True)
class SecurityRule:
    """One security rule: its flows, priority, direction and access."""

    name: str
    priority: int
    direction: str
    allows: bool
    flows: FlowSet


@dataclass(frozen=True)
class ServiceTags:
    """Addresses of the service tags of a security group: virtual_network is the network with its peers."""

    virtual_network: RangeSet

    def addresses(self, prefix: str, allows: bool) -> RangeSet:
        """Return the addresses of a CIDR, `*` or service tag.

        Tags of public services have their worst case: all public addresses for a rule that allows, none for one that denies.
        """
        match prefix:
            case "*" | "Any":
                return range_sets.ALL_ADDRESSES
            case "VirtualNetwork":
                return self.virtual_network
            case "AzureLoadBalancer":
                return PLATFORM
            case "Internet":
                return self.internet
            case _ if prefix[:1].isdigit():
                return range_sets.of_networks([prefix])
            case _:
                return self.internet if allows else range_sets.EMPTY

    @property
    def internet(self) -> RangeSet:
        """Return every address outside the virtual network and its peers."""
        return range_sets.difference(range_sets.ALL_ADDRESSES, range_sets.union(self.virtual_network, PLATFORM))


def default_rules(tags: ServiceTags) -> tuple[SecurityRule, ...]:
    """Return the default rules that Azure appends to every security group."""
    everything = FlowSet(PROTOCOLS, range_sets.ALL_ADDRESSES, range_sets.ALL_ADDRESSES, range_sets.ALL_PORTS)
    internal = replace(everything, sources=tags.virtual_network, destinations=tags.virtual_network)
    return (
        SecurityRule("AllowVnetInBound", 65_000, INBOUND, True, internal),
        SecurityRule("AllowAzureLoadBalancerInBound", 65_001, INBOUND, True, replace(everything, sources=PLATFORM)),
        SecurityRule("DenyAllInBound", 65_500, INBOUND, False, everything),
        SecurityRule("AllowVnetOutBound", 65_000, OUTBOUND, True, internal),
        SecurityRule("AllowInternetOutBound", 65_001, OUTBOUND, True, replace(everything, destinations=tags.internet)),
        SecurityRule("DenyAllOutBound", 65_500, OUTBOUND, False, everything),
    )


def allowed_flows(rules: Iterable[SecurityRule], direction: str, requested: FlowSet) -> tuple[FlowSet, ...]:
    """Return the flows that the rules of one direction allow: the first rule that matches a flow decides."""
    open_: tuple[FlowSet, ...] = (requested,)
    through: list[FlowSet] = []
    for rule in sorted((rule for rule in rules if rule.direction == direction), key=lambda rule: rule.priority):
        if rule.allows:
            through += [both for flows in open_ if (both := intersection(flows, rule.flows))]
        open_ = tuple(part for flows in open_ for part in difference(flows, rule.flows))
    return tuple(through)

"""Reads the networks out of graphs: what lies where, what is peered with what, and which flows pass between two subnets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rehearsal.checks import range_sets
from rehearsal.checks.range_sets import RangeSet
from rehearsal.checks.security_rules import (
    INBOUND,
    OUTBOUND,
    PROTOCOLS,
    FlowSet,
    SecurityRule,
    ServiceTags,
    allowed_flows,
    default_rules,
    intersections,
)
from rehearsal.program.graph import Graph, Resource, reveal
from rehearsal.program.pulumi_values import has_secret

AZURE = "azure-native:"
ENDPOINTS_UNDER_RULES = ("Enabled", "NetworkSecurityGroupEnabled")
"""Subnet settings under which a security group also decides on private endpoints:
https://learn.microsoft.com/azure/private-link/disable-private-endpoint-network-policy"""


def azure_part(graph: Graph) -> Graph:
    """A graph's Azure resources, their secrets revealed, which the checks read many times over."""
    found = (resource for resource in graph if resource.type.startswith(AZURE))
    return Graph(tuple(_revealed(resource) if has_secret(resource.inputs) else resource for resource in found), {})


def _revealed(resource: Resource) -> Resource:
    return replace(resource, inputs=reveal(resource.inputs))


def key(resource_id: object) -> str:
    """A resource id as Azure compares it."""
    return str(resource_id).lower()


def prefixes(rule: Mapping[str, Any], singular: str, plural: str) -> tuple[str, ...]:
    """The values of a rule's singular or plural field; `*` where it has neither."""
    values = tuple(rule.get(plural) or ())
    return values or (str(rule.get(singular) or "*"),)


@dataclass(frozen=True)
class NetworkSegment:
    """Addresses that the same rules hold for: one subnet, or the people behind a VPN gateway, who have no subnet; key is lower-case."""

    key: str
    name: str
    vnet: str
    addresses: RangeSet
    group: str | None
    rules_on_endpoints: bool = False
    dialled_in: bool = False


@dataclass(frozen=True)
class Peering:
    """One side of a peering: it carries traffic when both sides allow it, and dialled-in people when the gateway is offered and used."""

    near: str
    far: str
    access: bool
    offers_gateway: bool
    uses_gateway: bool


class NetworkModel:
    """The networks of some graphs, of which it needs the azure_part; ids in it are lower-case."""

    def __init__(self, *graphs: Graph) -> None:
        self._graphs = graphs
        self._rules: dict[tuple[str, str], tuple[SecurityRule, ...]] = {}

    def of_type(self, name: str) -> tuple[Resource, ...]:
        """All resources of an azure-native type such as network:Subnet."""
        return tuple(resource for graph in self._graphs for resource in graph.of_type(f"{AZURE}{name}"))

    @cached_property
    def vnets(self) -> dict[str, RangeSet]:
        """Addresses of each virtual network."""
        return {
            key(resource.id): range_sets.of_networks(resource.inputs.get("addressSpace", {}).get("addressPrefixes", ()))
            for resource in self.of_type("network:VirtualNetwork")
        }

    @cached_property
    def places(self) -> dict[str, NetworkSegment]:
        """Every subnet, and the people behind each VPN gateway, by key."""
        return {place.key: place for place in (*self._subnets(), *self._people())}

    def _subnets(self) -> Iterable[NetworkSegment]:
        for resource in self.of_type("network:Subnet"):
            inputs = resource.inputs
            cidrs = prefixes(inputs, "addressPrefix", "addressPrefixes")
            group = inputs.get("networkSecurityGroup")
            yield NetworkSegment(
                key=key(resource.id),
                name=str(resource.id).rpartition("/")[2],
                vnet=key(resource.id).rpartition("/subnets/")[0],
                addresses=range_sets.of_networks(cidrs),
                group=key(group["id"]) if group else None,
                rules_on_endpoints=inputs.get("privateEndpointNetworkPolicies") in ENDPOINTS_UNDER_RULES,
            )

    def _people(self) -> Iterable[NetworkSegment]:
        for resource in self.of_type("network:VirtualNetworkGateway"):
            inputs = resource.inputs
            pool = inputs.get("vpnClientConfiguration", {}).get("vpnClientAddressPool", {}).get("addressPrefixes", ())
            subnet = next((key(item["subnet"]["id"]) for item in inputs.get("ipConfigurations", ()) if item.get("subnet")), "")
            if pool and subnet:
                vnet = subnet.rpartition("/subnets/")[0]
                yield NetworkSegment(key(resource.id), "dialled-in people", vnet, range_sets.of_networks(pool), None, dialled_in=True)

    def interfaces(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every ipConfiguration of the graphs' scale sets and network interfaces, with the id of what has it."""
        for resource in self.of_type("compute:VirtualMachineScaleSet"):
            network = (resource.inputs.get("virtualMachineProfile") or {}).get("networkProfile") or {}
            for interface in network.get("networkInterfaceConfigurations") or ():
                yield from ((str(resource.id), item) for item in interface.get("ipConfigurations") or ())
        for resource in self.of_type("network:NetworkInterface"):
            yield from ((str(resource.id), item) for item in resource.inputs.get("ipConfigurations") or ())

    @cached_property
    def behind(self) -> dict[str, tuple[NetworkSegment, ...]]:
        """The subnets of the machines in each load balancer's backend pool."""
        subnets: dict[str, dict[str, None]] = {}
        for _, item in self.interfaces():
            for joined in item.get("loadBalancerBackendAddressPools") or ():
                subnets.setdefault(key(joined.get("id")), {})[key((item.get("subnet") or {}).get("id"))] = None
        return {pool: tuple(self.places[subnet] for subnet in found if subnet in self.places) for pool, found in subnets.items()}

    @cached_property
    def _peerings(self) -> tuple[Peering, ...]:
        found = []
        for resource in self.of_type("network:VirtualNetworkPeering"):
            inputs = resource.inputs
            found.append(
                Peering(
                    near=key(resource.id).rpartition("/virtualnetworkpeerings/")[0],
                    far=key((inputs.get("remoteVirtualNetwork") or {}).get("id")),
                    access=inputs.get("allowVirtualNetworkAccess", True) is True,
                    offers_gateway=inputs.get("allowGatewayTransit") is True,
                    uses_gateway=inputs.get("useRemoteGateways") is True,
                )
            )
        return tuple(found)

    @cached_property
    def peers(self) -> dict[str, frozenset[str]]:
        """The networks that each one is peered with, both sides there and allowing traffic; peerings do not chain."""
        sides = {(side.near, side.far) for side in self._peerings if side.access}
        return {vnet: frozenset(far for near, far in sides if near == vnet and (far, near) in sides) for vnet in self.vnets}

    def _shares_gateway(self, vnet: str, with_gateway: str) -> bool:
        """Whether a network uses its peer's gateway, so that those who dial in there reach it."""
        offered = any(side.near == with_gateway and side.far == vnet and side.offers_gateway for side in self._peerings)
        used = any(side.near == vnet and side.far == with_gateway and side.uses_gateway for side in self._peerings)
        return offered and used and with_gateway in self.peers.get(vnet, ())

    def routed(self, source: NetworkSegment, destination: NetworkSegment) -> bool:
        """Whether packets find their way from one place to another, rules left aside."""
        if source.dialled_in or destination.dialled_in:
            near, far = (source, destination) if source.dialled_in else (destination, source)
            return near.vnet == far.vnet or self._shares_gateway(far.vnet, near.vnet)
        return source.vnet == destination.vnet or destination.vnet in self.peers.get(source.vnet, ())

    @cached_property
    def _around(self) -> dict[str, ServiceTags]:
        """What the tag VirtualNetwork means in each network: itself, its peers, and who dials in."""
        people = [place for place in self.places.values() if place.dialled_in]
        return {
            vnet: ServiceTags(
                range_sets.union(
                    own,
                    *(self.vnets.get(peer, ()) for peer in self.peers[vnet]),
                    *(place.addresses for place in people if place.vnet == vnet or self._shares_gateway(vnet, place.vnet)),
                )
            )
            for vnet, own in self.vnets.items()
        }

    @cached_property
    def _groups(self) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """Security rules of each group, as registered."""
        groups = self.of_type("network:NetworkSecurityGroup")
        return {key(group.id): tuple(group.inputs.get("securityRules") or ()) for group in groups}

    def rules(self, place: NetworkSegment) -> tuple[SecurityRule, ...]:
        """The rules that hold for a place, Azure's own included; none without a security group, which lets everything pass."""
        if place.group is None:
            return ()
        known = (place.vnet, place.group)
        if known not in self._rules:
            around = self._around.get(place.vnet, ServiceTags(range_sets.EMPTY))
            own = tuple(_rule(rule, around) for rule in self._groups.get(place.group, ()))
            self._rules[known] = (*own, *default_rules(around))
        return self._rules[known]

    def internet(self, place: NetworkSegment) -> RangeSet:
        """The addresses that are the internet to a place: public ones outside every private range."""
        around = self._around.get(place.vnet, ServiceTags(range_sets.EMPTY))
        return range_sets.difference(
            around.internet, range_sets.of_networks(("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"))
        )

    def let_out(self, source: NetworkSegment, asked: FlowSet) -> tuple[FlowSet, ...]:
        """What of some flows a place's own rules let out."""
        return allowed_flows(self.rules(source), OUTBOUND, asked) if source.group else (asked,)

    def let_in(self, destination: NetworkSegment, asked: FlowSet) -> tuple[FlowSet, ...]:
        """What of some flows a place's own rules let in."""
        return allowed_flows(self.rules(destination), INBOUND, asked) if destination.group else (asked,)

    def between(self, source: NetworkSegment, destination: NetworkSegment) -> tuple[FlowSet, ...]:
        """Every flow that may be opened from one place to another: a route, and both sides' rules; answers need none."""
        if not self.routed(source, destination):
            return ()
        asked = FlowSet(PROTOCOLS, source.addresses, destination.addresses, range_sets.ALL_PORTS)
        return intersections(self.let_out(source, asked), self.let_in(destination, asked))


def _rule(rule: Mapping[str, Any], around: ServiceTags) -> SecurityRule:
    allows, protocol = rule.get("access") == "Allow", str(rule.get("protocol", "*"))
    sources, destinations = (
        range_sets.union(*(around.addresses(prefix, allows) for prefix in prefixes(rule, f"{side}AddressPrefix", f"{side}AddressPrefixes")))
        for side in ("source", "destination")
    )
    return SecurityRule(
        name=str(rule.get("name", "")),
        priority=int(rule.get("priority") or 0),
        direction=str(rule.get("direction")),
        allows=allows,
        flows=FlowSet(
            protocols=PROTOCOLS if protocol == "*" else frozenset({protocol}),
            sources=sources,
            destinations=destinations,
            ports=range_sets.of_ports(prefixes(rule, "destinationPortRange", "destinationPortRanges")),
        ),
    )

"""Network model of registered resources: subnets, peerings, and the flows that pass between two subnets."""

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
    """Return a graph's Azure resources with plaintext secrets, which the checks read many times."""
    found = (resource for resource in graph if resource.type.startswith(AZURE))
    return Graph(tuple(_revealed(resource) if has_secret(resource.inputs) else resource for resource in found), {})


def _revealed(resource: Resource) -> Resource:
    return replace(resource, inputs=reveal(resource.inputs))


def key(resource_id: object) -> str:
    """Return a resource id in lower case, as Azure compares it."""
    return str(resource_id).lower()


def prefixes(rule: Mapping[str, Any], singular: str, plural: str) -> tuple[str, ...]:
    """Return the values of a rule's singular or plural field; `*` where it has neither."""
    values = tuple(rule.get(plural) or ())
    return values or (str(rule.get(singular) or "*"),)


@dataclass(frozen=True)
class NetworkSegment:
    """Addresses with the same rules: one subnet, or the clients of a VPN gateway, which have no subnet; key is in lower case."""

    key: str
    name: str
    vnet: str
    addresses: RangeSet
    security_group: str | None
    rules_on_endpoints: bool = False
    vpn_clients: bool = False


@dataclass(frozen=True)
class Peering:
    """One side of a peering: it carries traffic if both sides allow it, and VPN clients if the gateway is offered and used."""

    near: str
    far: str
    access: bool
    offers_gateway: bool
    uses_gateway: bool


class NetworkModel:
    """The networks of some graphs, each the result of azure_part; ids are in lower case."""

    def __init__(self, *graphs: Graph) -> None:
        self._graphs = graphs
        self._rules: dict[tuple[str, str], tuple[SecurityRule, ...]] = {}

    def of_type(self, name: str) -> tuple[Resource, ...]:
        """Return all resources of an azure-native type such as network:Subnet."""
        return tuple(resource for graph in self._graphs for resource in graph.of_type(f"{AZURE}{name}"))

    @cached_property
    def vnets(self) -> dict[str, RangeSet]:
        """Return the addresses of each virtual network."""
        return {
            key(resource.id): range_sets.of_networks(resource.inputs.get("addressSpace", {}).get("addressPrefixes", ()))
            for resource in self.of_type("network:VirtualNetwork")
        }

    @cached_property
    def segments(self) -> dict[str, NetworkSegment]:
        """Return every subnet, and the clients of each VPN gateway, by key."""
        return {segment.key: segment for segment in (*self._subnets(), *self._vpn_clients())}

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
                security_group=key(group["id"]) if group else None,
                rules_on_endpoints=inputs.get("privateEndpointNetworkPolicies") in ENDPOINTS_UNDER_RULES,
            )

    def _vpn_clients(self) -> Iterable[NetworkSegment]:
        for resource in self.of_type("network:VirtualNetworkGateway"):
            inputs = resource.inputs
            pool = inputs.get("vpnClientConfiguration", {}).get("vpnClientAddressPool", {}).get("addressPrefixes", ())
            subnet = next((key(item["subnet"]["id"]) for item in inputs.get("ipConfigurations", ()) if item.get("subnet")), "")
            if pool and subnet:
                vnet = subnet.rpartition("/subnets/")[0]
                yield NetworkSegment(key(resource.id), "VPN clients", vnet, range_sets.of_networks(pool), None, vpn_clients=True)

    def interfaces(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield every ipConfiguration of the scale sets and network interfaces, with its resource id."""
        for resource in self.of_type("compute:VirtualMachineScaleSet"):
            network = (resource.inputs.get("virtualMachineProfile") or {}).get("networkProfile") or {}
            for interface in network.get("networkInterfaceConfigurations") or ():
                yield from ((str(resource.id), item) for item in interface.get("ipConfigurations") or ())
        for resource in self.of_type("network:NetworkInterface"):
            yield from ((str(resource.id), item) for item in resource.inputs.get("ipConfigurations") or ())

    @cached_property
    def backend_subnets(self) -> dict[str, tuple[NetworkSegment, ...]]:
        """Return the subnets of the machines in each load balancer's backend pool."""
        subnets: dict[str, dict[str, None]] = {}
        for _, item in self.interfaces():
            for joined in item.get("loadBalancerBackendAddressPools") or ():
                subnets.setdefault(key(joined.get("id")), {})[key((item.get("subnet") or {}).get("id"))] = None
        return {pool: tuple(self.segments[subnet] for subnet in found if subnet in self.segments) for pool, found in subnets.items()}

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
        """Return the peers of each network, where both sides exist and allow traffic; peerings are not transitive."""
        sides = {(side.near, side.far) for side in self._peerings if side.access}
        return {vnet: frozenset(far for near, far in sides if near == vnet and (far, near) in sides) for vnet in self.vnets}

    def _shares_gateway(self, vnet: str, with_gateway: str) -> bool:
        """Return whether a network uses its peer's gateway, so that the gateway's VPN clients reach it."""
        offered = any(side.near == with_gateway and side.far == vnet and side.offers_gateway for side in self._peerings)
        used = any(side.near == vnet and side.far == with_gateway and side.uses_gateway for side in self._peerings)
        return offered and used and with_gateway in self.peers.get(vnet, ())

    def routed(self, source: NetworkSegment, destination: NetworkSegment) -> bool:
        """Return whether there is a route from one segment to another, without regard to rules."""
        if source.vpn_clients or destination.vpn_clients:
            near, far = (source, destination) if source.vpn_clients else (destination, source)
            return near.vnet == far.vnet or self._shares_gateway(far.vnet, near.vnet)
        return source.vnet == destination.vnet or destination.vnet in self.peers.get(source.vnet, ())

    @cached_property
    def _service_tags(self) -> dict[str, ServiceTags]:
        """Return the service tags of each network: VirtualNetwork is the network, its peers and its VPN clients."""
        clients = [segment for segment in self.segments.values() if segment.vpn_clients]
        return {
            vnet: ServiceTags(
                range_sets.union(
                    own,
                    *(self.vnets.get(peer, ()) for peer in self.peers[vnet]),
                    *(segment.addresses for segment in clients if segment.vnet == vnet or self._shares_gateway(vnet, segment.vnet)),
                )
            )
            for vnet, own in self.vnets.items()
        }

    @cached_property
    def _groups(self) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """Return the security rules of each group, as registered."""
        groups = self.of_type("network:NetworkSecurityGroup")
        return {key(group.id): tuple(group.inputs.get("securityRules") or ()) for group in groups}

    def rules(self, segment: NetworkSegment) -> tuple[SecurityRule, ...]:
        """Return the rules of a segment with Azure's default rules; empty without a security group, where all flows pass."""
        if segment.security_group is None:
            return ()
        known = (segment.vnet, segment.security_group)
        if known not in self._rules:
            tags = self._service_tags.get(segment.vnet, ServiceTags(range_sets.EMPTY))
            own = tuple(_rule(rule, tags) for rule in self._groups.get(segment.security_group, ()))
            self._rules[known] = (*own, *default_rules(tags))
        return self._rules[known]

    def internet(self, segment: NetworkSegment) -> RangeSet:
        """Return the internet addresses of a segment: all addresses outside every private range."""
        tags = self._service_tags.get(segment.vnet, ServiceTags(range_sets.EMPTY))
        return range_sets.difference(
            tags.internet, range_sets.of_networks(("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"))
        )

    def let_out(self, source: NetworkSegment, flows: FlowSet) -> tuple[FlowSet, ...]:
        """Return the flows that the rules of the source allow."""
        return allowed_flows(self.rules(source), OUTBOUND, flows) if source.security_group else (flows,)

    def let_in(self, destination: NetworkSegment, flows: FlowSet) -> tuple[FlowSet, ...]:
        """Return the flows that the rules of the destination allow."""
        return allowed_flows(self.rules(destination), INBOUND, flows) if destination.security_group else (flows,)

    def between(self, source: NetworkSegment, destination: NetworkSegment) -> tuple[FlowSet, ...]:
        """Return every flow from one segment to another that has a route and that both sides' rules allow; rules are stateful."""
        if not self.routed(source, destination):
            return ()
        flows = FlowSet(PROTOCOLS, source.addresses, destination.addresses, range_sets.ALL_PORTS)
        return intersections(self.let_out(source, flows), self.let_in(destination, flows))


def _rule(rule: Mapping[str, Any], tags: ServiceTags) -> SecurityRule:
    allows, protocol = rule.get("access") == "Allow", str(rule.get("protocol", "*"))
    sources, destinations = (
        range_sets.union(*(tags.addresses(prefix, allows) for prefix in prefixes(rule, f"{side}AddressPrefix", f"{side}AddressPrefixes")))
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

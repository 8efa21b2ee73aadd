"""Check the possible flows of the registered networks against required and forbidden flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from components.plan.model import API_SERVER_PORT, ETCD_CLIENT_PORT, ETCD_PEER_PORT, ClusterPlan, RegionPlan, SubnetPlan
from rehearsal.checks import range_sets
from rehearsal.checks.expected_resources import ResourceGroupIds
from rehearsal.checks.finding import Finding
from rehearsal.checks.network_model import NetworkModel, NetworkSegment, key
from rehearsal.checks.private_links import TCP, PrivateLink, private_links_of
from rehearsal.checks.range_sets import RangeSet
from rehearsal.checks.security_rules import PLATFORM, PROTOCOLS, FlowSet, intersections, remaining

ETCD_ONLY = "only API servers and members reach an etcd's ports 2379 and 2380"
ETCD_REACHED = "API servers reach their etcds, and members each other"
APART = "clusters never reach each other, on any port"
HUB_REACHES = "VPN clients and the hub's runner reach every API server on port 6443"
OWN_SERVERS = "nodes reach their own API servers on port 6443, and no other cluster's"
NODES_TOGETHER = "nodes of one cluster reach each other, on every port"
ENDPOINTS_REACHED = "machines reach their cluster's vaults and backup on port 443"
PROBES_ARRIVE = "load balancers' probes reach what they probe"
NO_INTERNET = "nothing on the internet reaches anything"

ETCD_ROLES = ("etcd", "events")
ETCD_PORTS: RangeSet = ((ETCD_CLIENT_PORT, ETCD_PEER_PORT),)
NARROW = "narrow the rule or remove the peering that allows it"
WIDEN = "add a rule or a peering that allows it"


@dataclass(frozen=True)
class RegionNetworks:
    """The registered networks and their roles in the plan."""

    plan: RegionPlan
    network: NetworkModel

    @cached_property
    def links(self) -> tuple[PrivateLink, ...]:
        """Return the private links with backend machines."""
        return private_links_of(self.network)

    def vnet(self, cluster: ClusterPlan) -> str:
        """Return the key of a cluster's network."""
        return key(ResourceGroupIds(cluster.subscription, cluster.resource_group).vnet(cluster.network.vnet_name))

    def _in(self, vnet: str, subnets: Iterable[SubnetPlan]) -> dict[str, NetworkSegment]:
        found = {subnet.role: self.network.segments.get(key(f"{vnet}/subnets/{subnet.name}")) for subnet in subnets}
        return {role: segment for role, segment in found.items() if segment}

    def roles(self, cluster: ClusterPlan) -> dict[str, NetworkSegment]:
        """Return the registered subnets of a cluster by the plan's roles."""
        return self._in(self.vnet(cluster), cluster.network.subnets)

    def nodes(self, cluster: ClusterPlan) -> tuple[NetworkSegment, ...]:
        """Return a cluster's node subnets; subnets with the same rules are one segment."""
        groups: dict[str | None, list[NetworkSegment]] = {}
        for role, segment in self.roles(cluster).items():
            if role.startswith("nodes-"):
                groups.setdefault(segment.security_group, []).append(segment)
        name = "node subnets"
        return tuple(
            replace(some[0], name=name, addresses=range_sets.union(*(segment.addresses for segment in some))) for some in groups.values()
        )

    def api_clients(self) -> tuple[NetworkSegment, ...]:
        """Return the segments that must reach every API server: the VPN clients and the hub's runner."""
        hub = ResourceGroupIds(self.plan.spec.subscription, self.plan.base_resource_group).vnet(self.plan.hub.vnet_name)
        vpn_clients = tuple(segment for segment in self.network.segments.values() if segment.vpn_clients)
        return (*vpn_clients, *(segment for role, segment in self._in(hub, self.plan.hub.subnets).items() if role == "runner"))

    def reaching(self, source: NetworkSegment, destination: NetworkSegment) -> tuple[FlowSet, ...]:
        """Return every possible flow from one segment to another, directly or by private link."""
        linked = (
            FlowSet(TCP, entering.sources, leaving.destinations, leaving.ports)
            for link in self.links
            for backend in link.backends
            if backend.segment.key == destination.key
            for entering in link.entering(self.network, source, backend)
            for leaving in link.leaving(self.network, backend)
        )
        return (*self.network.between(source, destination), *linked)


def check_reachability(plan: RegionPlan, network: NetworkModel) -> tuple[Finding, ...]:
    """Return the findings of all reachability checks of a region's two stacks."""
    region = RegionNetworks(plan, network)
    return tuple(finding for check in REACHABILITY.values() for finding in check(region))


def _closed(check: str, source: NetworkSegment, destination: NetworkSegment, flows: Iterable[FlowSet]) -> Iterator[Finding]:
    """Yield a finding where forbidden flows are possible."""
    open_ = tuple(flows)
    if open_:
        more = f" and {len(open_) - 1} more kinds" if len(open_) > 1 else ""
        yield Finding(check, f"{source.name} -> {destination.name}", "no flow", f"passes: {open_[0].text()}{more}", NARROW)


def _open(
    check: str, source: NetworkSegment, destination: NetworkSegment, required: FlowSet, possible: Iterable[FlowSet]
) -> Iterator[Finding]:
    """Yield a finding where required flows are not all possible."""
    missing = remaining(required, possible)
    if missing:
        yield Finding(check, f"{source.name} -> {destination.name}", f"passes: {required.text()}", f"blocked: {missing[0].text()}", WIDEN)


def _tcp(source: NetworkSegment, destination: NetworkSegment, ports: RangeSet) -> FlowSet:
    return FlowSet(TCP, source.addresses, destination.addresses, ports)


def _etcd_only(region: RegionNetworks) -> Iterator[Finding]:
    for cluster in region.plan.clusters:
        roles = region.roles(cluster)
        for etcd in (roles[role] for role in ETCD_ROLES if role in roles):
            for source in region.network.segments.values():
                flows = region.reaching(source, etcd)
                at_ports = intersections(flows, (FlowSet(PROTOCOLS, range_sets.ALL_ADDRESSES, etcd.addresses, ETCD_PORTS),))
                ports: RangeSet = ETCD_PORTS if source == etcd else range_sets.EMPTY
                if source == roles.get("api"):
                    ports = ((ETCD_CLIENT_PORT, ETCD_CLIENT_PORT),)
                allowed = (_tcp(source, etcd, ports),)
                yield from _closed(ETCD_ONLY, source, etcd, (part for flow in at_ports for part in remaining(flow, allowed)))


def _etcd_reached(region: RegionNetworks) -> Iterator[Finding]:
    for cluster in region.plan.clusters:
        roles = region.roles(cluster)
        for etcd in (roles[role] for role in ETCD_ROLES if role in roles):
            pairs = [(etcd, ETCD_PORTS)] + [(roles[role], ((ETCD_CLIENT_PORT, ETCD_CLIENT_PORT),)) for role in ("api",) if role in roles]
            for source, ports in pairs:
                yield from _open(ETCD_REACHED, source, etcd, _tcp(source, etcd, ports), region.reaching(source, etcd))


def _apart(region: RegionNetworks) -> Iterator[Finding]:
    networks = {region.vnet(cluster): cluster.name for cluster in region.plan.clusters}
    members = [(networks[segment.vnet], segment) for segment in region.network.segments.values() if segment.vnet in networks]
    for near, source in members:
        for far, destination in members:
            if near != far:
                yield from _closed(APART, source, destination, region.reaching(source, destination))


def _hub_reaches(region: RegionNetworks) -> Iterator[Finding]:
    port: RangeSet = ((API_SERVER_PORT, API_SERVER_PORT),)
    for cluster in region.plan.clusters:
        servers = region.roles(cluster).get("api")
        if servers is None:
            continue
        links = [
            (link, backend)
            for link in region.links
            for backend in link.backends
            if backend.segment == servers and backend.front == API_SERVER_PORT
        ]
        for source in region.api_clients():
            if not links:
                yield from _open(HUB_REACHES, source, servers, _tcp(source, servers, port), region.network.between(source, servers))
            for link, backend in links:
                entry = replace(link.entry, name=link.name, addresses=link.addresses)
                yield from _open(HUB_REACHES, source, entry, _tcp(source, entry, port), link.entering(region.network, source, backend))
                inner = replace(link.entry, name=f"{link.name} through its service", addresses=link.source)
                yield from _open(HUB_REACHES, inner, servers, link.to_machines(backend), link.leaving(region.network, backend))


def _own_servers(region: RegionNetworks) -> Iterator[Finding]:
    port: RangeSet = ((API_SERVER_PORT, API_SERVER_PORT),)
    for cluster in region.plan.clusters:
        for nodes in region.nodes(cluster):
            for other in region.plan.clusters:
                servers = region.roles(other).get("api")
                if servers is None:
                    continue
                flows = region.reaching(nodes, servers)
                if other.name == cluster.name:
                    yield from _open(OWN_SERVERS, nodes, servers, _tcp(nodes, servers, port), flows)
                else:
                    yield from _closed(OWN_SERVERS, nodes, servers, intersections(flows, (_tcp(nodes, servers, port),)))


def _nodes_together(region: RegionNetworks) -> Iterator[Finding]:
    for cluster in region.plan.clusters:
        for source in region.nodes(cluster):
            for destination in region.nodes(cluster):
                required = FlowSet(PROTOCOLS, source.addresses, destination.addresses, range_sets.ALL_PORTS)
                yield from _open(NODES_TOGETHER, source, destination, required, region.network.between(source, destination))


def _endpoints_reached(region: RegionNetworks) -> Iterator[Finding]:
    for cluster in region.plan.clusters:
        roles = region.roles(cluster)
        machines = [*(roles[role] for role in (*ETCD_ROLES, "api") if role in roles), *region.nodes(cluster)]
        for source in machines if "endpoints" in roles else ():
            required = _tcp(source, roles["endpoints"], ((443, 443),))
            yield from _open(ENDPOINTS_REACHED, source, roles["endpoints"], required, region.network.between(source, roles["endpoints"]))


def _probes_arrive(region: RegionNetworks) -> Iterator[Finding]:
    for balancer in region.network.of_type("network:LoadBalancer"):
        inputs, own = balancer.inputs, str(balancer.id)
        pools = [f"{key(own)}/backendaddresspools/{key(pool.get('name'))}" for pool in inputs.get("backendAddressPools") or ()]
        segments = {segment.key: segment for pool in pools for segment in region.network.backend_subnets.get(pool, ())}
        for probe in inputs.get("probes") or ():
            for segment in segments.values():
                required = FlowSet(TCP, PLATFORM, segment.addresses, ((int(probe["port"]), int(probe["port"])),))
                prober = NetworkSegment("", f"probe of {own.rpartition('/')[2]}", "", PLATFORM, None)
                yield from _open(PROBES_ARRIVE, prober, segment, required, region.network.let_in(segment, required))


def _no_internet(region: RegionNetworks) -> Iterator[Finding]:
    for segment in region.network.segments.values():
        if segment.security_group is not None:
            outside = NetworkSegment("", "internet", "", region.network.internet(segment), None)
            flows = FlowSet(PROTOCOLS, outside.addresses, segment.addresses, range_sets.ALL_PORTS)
            yield from _closed(NO_INTERNET, outside, segment, region.network.let_in(segment, flows))
    for where in _public_addresses(region.network):
        yield Finding(
            NO_INTERNET,
            where,
            "no public address",
            "a public address",
            "remove the public address: machines use NAT gateways for outbound traffic",
        )


def _public_addresses(network: NetworkModel) -> Iterator[str]:
    """Yield machines and load balancers that have a public address."""
    for where, item in network.interfaces():
        if item.get("publicIPAddress") or item.get("publicIPAddressConfiguration"):
            yield where
    for balancer in network.of_type("network:LoadBalancer"):
        if any(item.get("publicIPAddress") or item.get("publicIPPrefix") for item in balancer.inputs.get("frontendIPConfigurations") or ()):
            yield str(balancer.id)


REACHABILITY: Mapping[str, Callable[[RegionNetworks], Iterator[Finding]]] = {
    ETCD_ONLY: _etcd_only,
    ETCD_REACHED: _etcd_reached,
    APART: _apart,
    HUB_REACHES: _hub_reaches,
    OWN_SERVERS: _own_servers,
    NODES_TOGETHER: _nodes_together,
    ENDPOINTS_REACHED: _endpoints_reached,
    PROBES_ARRIVE: _probes_arrive,
    NO_INTERNET: _no_internet,
}
"""The function that checks each reachability statement."""

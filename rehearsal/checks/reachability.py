"""Decides, from the registered networks alone, who can reach whom, and holds it against what must and must not be possible."""

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
HUB_REACHES = "people and the hub's runner reach every API server on port 6443"
OWN_SERVERS = "nodes reach their own API servers on port 6443, and no other cluster's"
NODES_TOGETHER = "nodes of one cluster reach each other, on every port"
ENDPOINTS_REACHED = "machines reach their cluster's vaults and backup on port 443"
PROBES_ARRIVE = "load balancers' probes reach what they probe"
NO_INTERNET = "nothing on the internet reaches anything"

RINGS = ("etcd", "events")
ETCD_PORTS: RangeSet = ((ETCD_CLIENT_PORT, ETCD_PEER_PORT),)
NARROW = "narrow the rule or take the peering away that lets it pass"
WIDEN = "add the rule or the peering that lets it pass"


@dataclass(frozen=True)
class RegionNetworks:
    """The registered networks, and which of them the plan means by what."""

    plan: RegionPlan
    network: NetworkModel

    @cached_property
    def links(self) -> tuple[PrivateLink, ...]:
        """Private links that lead to machines."""
        return private_links_of(self.network)

    def vnet(self, cluster: ClusterPlan) -> str:
        """Key of a cluster's network."""
        return key(ResourceGroupIds(cluster.subscription, cluster.resource_group).vnet(cluster.network.vnet_name))

    def _in(self, vnet: str, subnets: Iterable[SubnetPlan]) -> dict[str, NetworkSegment]:
        found = {subnet.role: self.network.places.get(key(f"{vnet}/subnets/{subnet.name}")) for subnet in subnets}
        return {role: place for role, place in found.items() if place}

    def roles(self, cluster: ClusterPlan) -> dict[str, NetworkSegment]:
        """The registered subnets of a cluster by the plan's roles; a subnet that is not registered is left out."""
        return self._in(self.vnet(cluster), cluster.network.subnets)

    def nodes(self, cluster: ClusterPlan) -> tuple[NetworkSegment, ...]:
        """A cluster's node subnets; those under the same rules as one place, which they are to every flow."""
        groups: dict[str | None, list[NetworkSegment]] = {}
        for role, place in self.roles(cluster).items():
            if role.startswith("nodes-"):
                groups.setdefault(place.group, []).append(place)
        name = "node subnets"
        return tuple(
            replace(some[0], name=name, addresses=range_sets.union(*(place.addresses for place in some))) for some in groups.values()
        )

    def visitors(self) -> tuple[NetworkSegment, ...]:
        """Those who must reach every API server: who dials in, and the hub's runner."""
        hub = ResourceGroupIds(self.plan.spec.subscription, self.plan.base_resource_group).vnet(self.plan.hub.vnet_name)
        people = tuple(place for place in self.network.places.values() if place.dialled_in)
        return (*people, *(place for role, place in self._in(hub, self.plan.hub.subnets).items() if role == "runner"))

    def reaching(self, source: NetworkSegment, destination: NetworkSegment) -> tuple[FlowSet, ...]:
        """Every flow that can be opened from one place to another, directly or by private link."""
        linked = (
            FlowSet(TCP, entering.sources, leaving.destinations, leaving.ports)
            for link in self.links
            for backend in link.backends
            if backend.place.key == destination.key
            for entering in link.entering(self.network, source, backend)
            for leaving in link.leaving(self.network, backend)
        )
        return (*self.network.between(source, destination), *linked)


def check_reachability(plan: RegionPlan, network: NetworkModel) -> tuple[Finding, ...]:
    """What does not hold among the statements on who reaches whom in the networks of a region's two stacks."""
    world = RegionNetworks(plan, network)
    return tuple(finding for check in REACHABILITY.values() for finding in check(world))


def _closed(check: str, source: NetworkSegment, destination: NetworkSegment, flows: Iterable[FlowSet]) -> Iterator[Finding]:
    """A finding when flows that must not be possible are."""
    open_ = tuple(flows)
    if open_:
        more = f" and {len(open_) - 1} more kinds" if len(open_) > 1 else ""
        yield Finding(check, f"{source.name} -> {destination.name}", "nothing passes", f"passes: {open_[0].text()}{more}", NARROW)


def _open(
    check: str, source: NetworkSegment, destination: NetworkSegment, wanted: FlowSet, possible: Iterable[FlowSet]
) -> Iterator[Finding]:
    """A finding when flows that must be possible are not, or not all of them."""
    missing = remaining(wanted, possible)
    if missing:
        yield Finding(check, f"{source.name} -> {destination.name}", f"passes: {wanted.text()}", f"blocked: {missing[0].text()}", WIDEN)


def _tcp(source: NetworkSegment, destination: NetworkSegment, ports: RangeSet) -> FlowSet:
    return FlowSet(TCP, source.addresses, destination.addresses, ports)


def _etcd_only(world: RegionNetworks) -> Iterator[Finding]:
    for cluster in world.plan.clusters:
        roles = world.roles(cluster)
        for ring in (roles[role] for role in RINGS if role in roles):
            for source in world.network.places.values():
                flows = world.reaching(source, ring)
                at_ports = intersections(flows, (FlowSet(PROTOCOLS, range_sets.ALL_ADDRESSES, ring.addresses, ETCD_PORTS),))
                rightful: RangeSet = ETCD_PORTS if source == ring else range_sets.EMPTY
                if source == roles.get("api"):
                    rightful = ((ETCD_CLIENT_PORT, ETCD_CLIENT_PORT),)
                allowed = (_tcp(source, ring, rightful),)
                yield from _closed(ETCD_ONLY, source, ring, (part for flow in at_ports for part in remaining(flow, allowed)))


def _etcd_reached(world: RegionNetworks) -> Iterator[Finding]:
    for cluster in world.plan.clusters:
        roles = world.roles(cluster)
        for ring in (roles[role] for role in RINGS if role in roles):
            pairs = [(ring, ETCD_PORTS)] + [(roles[role], ((ETCD_CLIENT_PORT, ETCD_CLIENT_PORT),)) for role in ("api",) if role in roles]
            for source, ports in pairs:
                yield from _open(ETCD_REACHED, source, ring, _tcp(source, ring, ports), world.reaching(source, ring))


def _apart(world: RegionNetworks) -> Iterator[Finding]:
    networks = {world.vnet(cluster): cluster.name for cluster in world.plan.clusters}
    members = [(networks[place.vnet], place) for place in world.network.places.values() if place.vnet in networks]
    for near, source in members:
        for far, destination in members:
            if near != far:
                yield from _closed(APART, source, destination, world.reaching(source, destination))


def _hub_reaches(world: RegionNetworks) -> Iterator[Finding]:
    port: RangeSet = ((API_SERVER_PORT, API_SERVER_PORT),)
    for cluster in world.plan.clusters:
        servers = world.roles(cluster).get("api")
        if servers is None:
            continue
        links = [
            (link, backend)
            for link in world.links
            for backend in link.backends
            if backend.place == servers and backend.front == API_SERVER_PORT
        ]
        for source in world.visitors():
            if not links:
                yield from _open(HUB_REACHES, source, servers, _tcp(source, servers, port), world.network.between(source, servers))
            for link, backend in links:
                entry = replace(link.entry, name=link.name, addresses=link.addresses)
                yield from _open(HUB_REACHES, source, entry, _tcp(source, entry, port), link.entering(world.network, source, backend))
                inner = replace(link.entry, name=f"{link.name} through its service", addresses=link.source)
                yield from _open(HUB_REACHES, inner, servers, link.to_machines(backend), link.leaving(world.network, backend))


def _own_servers(world: RegionNetworks) -> Iterator[Finding]:
    port: RangeSet = ((API_SERVER_PORT, API_SERVER_PORT),)
    for cluster in world.plan.clusters:
        for nodes in world.nodes(cluster):
            for other in world.plan.clusters:
                servers = world.roles(other).get("api")
                if servers is None:
                    continue
                flows = world.reaching(nodes, servers)
                if other.name == cluster.name:
                    yield from _open(OWN_SERVERS, nodes, servers, _tcp(nodes, servers, port), flows)
                else:
                    yield from _closed(OWN_SERVERS, nodes, servers, intersections(flows, (_tcp(nodes, servers, port),)))


def _nodes_together(world: RegionNetworks) -> Iterator[Finding]:
    for cluster in world.plan.clusters:
        for source in world.nodes(cluster):
            for destination in world.nodes(cluster):
                wanted = FlowSet(PROTOCOLS, source.addresses, destination.addresses, range_sets.ALL_PORTS)
                yield from _open(NODES_TOGETHER, source, destination, wanted, world.network.between(source, destination))


def _endpoints_reached(world: RegionNetworks) -> Iterator[Finding]:
    for cluster in world.plan.clusters:
        roles = world.roles(cluster)
        machines = [*(roles[role] for role in (*RINGS, "api") if role in roles), *world.nodes(cluster)]
        for source in machines if "endpoints" in roles else ():
            wanted = _tcp(source, roles["endpoints"], ((443, 443),))
            yield from _open(ENDPOINTS_REACHED, source, roles["endpoints"], wanted, world.network.between(source, roles["endpoints"]))


def _probes_arrive(world: RegionNetworks) -> Iterator[Finding]:
    for balancer in world.network.of_type("network:LoadBalancer"):
        inputs, own = balancer.inputs, str(balancer.id)
        pools = [f"{key(own)}/backendaddresspools/{key(pool.get('name'))}" for pool in inputs.get("backendAddressPools") or ()]
        places = {place.key: place for pool in pools for place in world.network.behind.get(pool, ())}
        for probe in inputs.get("probes") or ():
            for place in places.values():
                wanted = FlowSet(TCP, PLATFORM, place.addresses, ((int(probe["port"]), int(probe["port"])),))
                prober = NetworkSegment("", f"probe of {own.rpartition('/')[2]}", "", PLATFORM, None)
                yield from _open(PROBES_ARRIVE, prober, place, wanted, world.network.let_in(place, wanted))


def _no_internet(world: RegionNetworks) -> Iterator[Finding]:
    for place in world.network.places.values():
        if place.group is not None:
            outside = NetworkSegment("", "internet", "", world.network.internet(place), None)
            asked = FlowSet(PROTOCOLS, outside.addresses, place.addresses, range_sets.ALL_PORTS)
            yield from _closed(NO_INTERNET, outside, place, world.network.let_in(place, asked))
    for where in _public_front_doors(world.network):
        yield Finding(
            NO_INTERNET,
            where,
            "no public address",
            "a public address",
            "take the public address away: machines go out through NAT gateways",
        )


def _public_front_doors(network: NetworkModel) -> Iterator[str]:
    """Machines and load balancers that have a public address of their own."""
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
"""Each statement on who reaches whom, and what checks it."""

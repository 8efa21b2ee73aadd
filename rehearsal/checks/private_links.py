"""Follows private links through a graph: from an endpoint's address over the service and its load balancer to the machines behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.checks import range_sets
from rehearsal.checks.network_model import NetworkModel, NetworkSegment, key
from rehearsal.checks.range_sets import RangeSet
from rehearsal.checks.security_rules import FlowSet, intersections

TCP = frozenset({"Tcp"})


@dataclass(frozen=True)
class LinkBackend:
    """Machines behind one rule of a load balancer: front is the port in front, port the one on the machines."""

    place: NetworkSegment
    front: int
    port: int


@dataclass(frozen=True)
class PrivateLink:
    """One private endpoint that leads to machines: entry is its subnet, addresses its own, source the addresses that the machines see."""

    name: str
    entry: NetworkSegment
    addresses: RangeSet
    source: RangeSet
    backends: tuple[LinkBackend, ...]

    def entering(self, network: NetworkModel, source: NetworkSegment, backend: LinkBackend) -> tuple[FlowSet, ...]:
        """The flows from a place that the endpoint takes for a backend."""
        if not network.routed(source, self.entry):
            return ()
        asked = FlowSet(TCP, source.addresses, self.addresses, ((backend.front, backend.front),))
        inside = network.let_in(self.entry, asked) if self.entry.rules_on_endpoints else (asked,)
        return intersections(network.let_out(source, asked), inside)

    def leaving(self, network: NetworkModel, backend: LinkBackend) -> tuple[FlowSet, ...]:
        """The flows from the service to the machines that their rules let in."""
        return network.let_in(backend.place, self.to_machines(backend))

    def to_machines(self, backend: LinkBackend) -> FlowSet:
        """All flows from the service to the machines of a backend."""
        return FlowSet(TCP, self.source, backend.place.addresses, ((backend.port, backend.port),))


def private_links_of(network: NetworkModel) -> tuple[PrivateLink, ...]:
    """Every private endpoint of the graphs whose target is a private link service of the graphs."""
    services = {key(resource.id): resource.inputs for resource in network.of_type("network:PrivateLinkService")}
    found = []
    for resource in network.of_type("network:PrivateEndpoint"):
        inputs = resource.inputs
        entry = network.places.get(key((inputs.get("subnet") or {}).get("id")))
        for connection in inputs.get("privateLinkServiceConnections") or ():
            service = services.get(key(connection.get("privateLinkServiceId")))
            if service and entry:
                found.append(_link(network, str(resource.id).rpartition("/")[2], entry, inputs, service))
    return tuple(found)


def _link(network: NetworkModel, name: str, entry: NetworkSegment, endpoint: Mapping[str, Any], service: Mapping[str, Any]) -> PrivateLink:
    own = [item["privateIPAddress"] for item in endpoint.get("ipConfigurations") or () if item.get("privateIPAddress")]
    given = [item["privateIPAddress"] for item in service.get("ipConfigurations") or () if item.get("privateIPAddress")]
    front_ends = [key(item.get("id")) for item in service.get("loadBalancerFrontendIpConfigurations") or ()]
    return PrivateLink(
        name=name,
        entry=entry,
        # An endpoint without a fixed address may be anywhere in its subnet.
        addresses=range_sets.of_networks(own) or entry.addresses,
        source=range_sets.of_networks(given),
        backends=tuple(backend for front_end in front_ends for backend in _backends(network, front_end)),
    )


def _backends(network: NetworkModel, front_end: str) -> Iterator[LinkBackend]:
    for balancer in network.of_type("network:LoadBalancer"):
        if not front_end.startswith(f"{key(balancer.id)}/"):
            continue
        for rule in balancer.inputs.get("loadBalancingRules") or ():
            if key((rule.get("frontendIPConfiguration") or {}).get("id")) == front_end:
                pool = key((rule.get("backendAddressPool") or {}).get("id"))
                front = int(rule["frontendPort"])
                yield from (LinkBackend(place, front, int(rule.get("backendPort") or front)) for place in network.behind.get(pool, ()))

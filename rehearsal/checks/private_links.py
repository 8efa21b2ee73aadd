"""Private links of a graph: from an endpoint through the service and its load balancer to the backend machines."""

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
    """Backend machines of one load-balancing rule: front is the frontend port, port the backend port."""

    segment: NetworkSegment
    front: int
    port: int


@dataclass(frozen=True)
class PrivateLink:
    """One private endpoint with backend machines: entry is its subnet, addresses its own, source the service's addresses."""

    name: str
    entry: NetworkSegment
    addresses: RangeSet
    source: RangeSet
    backends: tuple[LinkBackend, ...]

    def entering(self, network: NetworkModel, source: NetworkSegment, backend: LinkBackend) -> tuple[FlowSet, ...]:
        """Return the flows from a segment to the endpoint for a backend."""
        if not network.routed(source, self.entry):
            return ()
        flows = FlowSet(TCP, source.addresses, self.addresses, ((backend.front, backend.front),))
        entering = network.let_in(self.entry, flows) if self.entry.rules_on_endpoints else (flows,)
        return intersections(network.let_out(source, flows), entering)

    def leaving(self, network: NetworkModel, backend: LinkBackend) -> tuple[FlowSet, ...]:
        """Return the flows from the service that the machines' rules allow."""
        return network.let_in(backend.segment, self.to_machines(backend))

    def to_machines(self, backend: LinkBackend) -> FlowSet:
        """Return all flows from the service to the machines of a backend."""
        return FlowSet(TCP, self.source, backend.segment.addresses, ((backend.port, backend.port),))


def private_links_of(network: NetworkModel) -> tuple[PrivateLink, ...]:
    """Return every private endpoint whose target is a registered private link service."""
    services = {key(resource.id): resource.inputs for resource in network.of_type("network:PrivateLinkService")}
    found = []
    for resource in network.of_type("network:PrivateEndpoint"):
        inputs = resource.inputs
        entry = network.segments.get(key((inputs.get("subnet") or {}).get("id")))
        for connection in inputs.get("privateLinkServiceConnections") or ():
            service = services.get(key(connection.get("privateLinkServiceId")))
            if service and entry:
                found.append(_link(network, str(resource.id).rpartition("/")[2], entry, inputs, service))
    return tuple(found)


def _link(network: NetworkModel, name: str, entry: NetworkSegment, endpoint: Mapping[str, Any], service: Mapping[str, Any]) -> PrivateLink:
    own = [item["privateIPAddress"] for item in endpoint.get("ipConfigurations") or () if item.get("privateIPAddress")]
    service_addresses = [item["privateIPAddress"] for item in service.get("ipConfigurations") or () if item.get("privateIPAddress")]
    front_ends = [key(item.get("id")) for item in service.get("loadBalancerFrontendIpConfigurations") or ()]
    return PrivateLink(
        name=name,
        entry=entry,
        # An endpoint without a fixed address may have any address of its subnet.
        addresses=range_sets.of_networks(own) or entry.addresses,
        source=range_sets.of_networks(service_addresses),
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
                yield from (
                    LinkBackend(segment, front, int(rule.get("backendPort") or front)) for segment in network.backend_subnets.get(pool, ())
                )

"""Route tables and their routes. The path of packets is not modelled.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.child_resources import ListingResourceType, listed_children, siblings
from rehearsal.azure.network.network_resource_type import NetworkResourceType, check_children_idle, properties_of
from rehearsal.azure.network.subnets import Subnet
from rehearsal.azure.resource import Json, Resource

COLLECTION = "routes"
ROUTES_PER_TABLE = 400
"""https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"""
APPLIANCE = "VirtualAppliance"


class Route(NetworkResourceType):
    """A route of a table; changes of one table run one after another."""

    type = "Microsoft.Network/routeTables/routes"
    noun = "Route"
    locks_with_parent = True
    has_location = has_guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse an invalid route, and a second route with the same prefix."""
        check_routes({**{one.id.name: one.body for one in siblings(cloud, arm_id)}, arm_id.name: body})


class RouteTable(ListingResourceType):
    """A route table."""

    type = "Microsoft.Network/routeTables"
    collection = COLLECTION
    noun = "Route table"
    in_use_code = "InUseRouteTableCannotBeDeleted"
    users: Mapping[str, str] = {"subnets": Subnet.type.lower()}
    defaults: Mapping[str, Any] = {"disableBgpRoutePropagation": False}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse invalid routes, and two routes with the same prefix."""
        super().check(cloud, arm_id, body, previous)
        check_children_idle(cloud, arm_id.key)
        check_routes({one.name: route for one, route in (listed_children(arm_id, body, COLLECTION) or {}).values()})


def check_routes(routes: Mapping[str, Json]) -> None:
    """Refuse invalid routes of one table; routes are bodies by name."""
    if len(routes) > ROUTES_PER_TABLE:
        message = f"A route table would have {len(routes)} routes, of at most {ROUTES_PER_TABLE}."
        raise invalid(message, COLLECTION, "RouteCountLimitReached")
    taken: dict[str, str] = {}
    for name, body in routes.items():
        inner = properties_of(body)
        prefix, hop = str(inner.get("addressPrefix", "")), inner.get("nextHopType")
        if not hop:
            raise invalid(f"Route {name} needs a nextHopType.", "properties.nextHopType", "InvalidRequestFormat")
        if bool(inner.get("nextHopIpAddress")) != (hop == APPLIANCE):
            message = f"Route {name} has next hop type {hop}: a nextHopIpAddress belongs to {APPLIANCE}, and to it alone."
            raise invalid(message, name, "RouteNextHopIpAddressNotAllowed")
        try:
            # The prefix can be a service tag.
            key = str(ip_network(prefix, strict=False)) if prefix[:1].isdigit() else prefix
        except ValueError:
            raise invalid(f"Route {name} has invalid address prefix {prefix!r}.", name, "InvalidAddressPrefixFormat") from None
        if not key or key in taken:
            message = f"Route {name} conflicts with route {taken.get(key, name)}. Routes cannot have the same AddressPrefix."
            raise invalid(message, name, "RouteConflict")
        taken[key] = name

"""DNS private resolvers and their inbound endpoints.

https://learn.microsoft.com/azure/dns/dns-private-resolver-overview: the restrictions are all on that page; the codes of the refusals,
which it does not name, are assumed.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid, property_change_not_allowed
from rehearsal.azure.network.address_pools import prefix_of
from rehearsal.azure.network.ip_configurations import AddressHolder
from rehearsal.azure.network.network_resource_type import NetworkResourceType, id_of, list_of, properties_of
from rehearsal.azure.network.subnets import parse_prefix
from rehearsal.azure.resource import Json, Resource, location_key

SUBNET_LENGTHS = range(24, 29)
DELEGATION = "microsoft.network/dnsresolvers"
ENDPOINTS_PER_RESOLVER = 5
RESERVED_FROM, RESERVED_TO = IPv4Address("10.0.1.0"), IPv4Address("10.0.16.255")
"""Addresses that the resolver's service reserves; an endpoint's subnet cannot contain them."""


class DnsResolver(NetworkResourceType):
    """A resolver: one per network, in the network's region."""

    type = "Microsoft.Network/dnsResolvers"
    noun = "DNS resolver"
    has_system_data = True
    put_duration = "resolver.put"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a network of another region, a second resolver in a network, and a change of the network."""
        super().check(cloud, arm_id, body, previous)
        network_id = id_of(properties_of(body).get("virtualNetwork"))
        if not network_id:
            raise invalid(f"DNS resolver {arm_id.text} names no virtualNetwork.", "properties.virtualNetwork")
        if previous is not None and id_of(previous.properties["virtualNetwork"]).lower() != network_id.lower():
            raise property_change_not_allowed("properties.virtualNetwork.id", id_of(previous.properties["virtualNetwork"]), network_id)
        network = cloud.find(network_id)
        if network is not None and network.location != location_key(body["location"]):
            raise self.missing_reference_error(arm_id, network_id)
        for key in cloud.index.users(network_id.lower()):
            other = cloud.resources[key].id
            if key != arm_id.key and other.type.lower() == self.type.lower():
                message = f"Virtual network {network_id} has DNS resolver {other.text} already; a network may have one."
                raise AzureError(409, "Conflict", message, target=network_id)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the state Connected."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["properties"]["dnsResolverState"] = "Connected"
        return whole


class InboundEndpoint(AddressHolder):
    """An inbound endpoint: one address in a subnet of the resolver's network, which is delegated to resolvers and used by no other
    resource.
    """

    type = "Microsoft.Network/dnsResolvers/inboundEndpoints"
    noun = "Inbound endpoint"
    has_system_data = True
    put_duration = "resolver.put"
    address_key, method_key = "privateIpAddress", "privateIpAllocationMethod"
    nested = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require one ipConfiguration in a suitable subnet, and at most five endpoints per resolver."""
        items = list_of(body, "ipConfigurations")
        if len(items) != 1:
            raise invalid(
                f"Inbound endpoint {arm_id.text} has {len(items)} ipConfigurations; it must have one.", "properties.ipConfigurations"
            )
        super().check(cloud, arm_id, body, previous)
        resolver = cloud.get(arm_id.parent or "")
        endpoints = [key for key in cloud.index.children(resolver.key) if key != arm_id.key]
        if len(endpoints) >= ENDPOINTS_PER_RESOLVER:
            message = f"DNS resolver {resolver.id.text} has {len(endpoints)} inbound endpoints, of at most {ENDPOINTS_PER_RESOLVER}."
            raise invalid(message, arm_id.text, "InboundEndpointCountLimitReached")
        subnet = cloud.find(id_of(items[0].get("subnet")))
        if subnet is not None:
            self._check_subnet(cloud, arm_id, subnet, id_of(resolver.properties["virtualNetwork"]))

    def _check_subnet(self, cloud: Cloud, arm_id: ArmId, subnet: Resource, network: str) -> None:
        refused = ""
        prefix = parse_prefix(prefix_of(subnet), subnet.id.text)
        if (subnet.id.parent or "").lower() != network.lower():
            refused = f"is not in the resolver's network {network}"
        elif prefix.prefixlen not in SUBNET_LENGTHS:
            refused = f"is a /{prefix.prefixlen}; an endpoint wants a /{SUBNET_LENGTHS[0]} to /{SUBNET_LENGTHS[-1]}"
        elif prefix.network_address <= RESERVED_TO and prefix.broadcast_address >= RESERVED_FROM:
            refused = f"({prefix}) lies in {RESERVED_FROM} to {RESERVED_TO}, which the service keeps"
        elif not any(properties_of(one).get("serviceName", "").lower() == DELEGATION for one in subnet.properties.get("delegations") or ()):
            refused = "is not delegated to Microsoft.Network/dnsResolvers"
        else:
            others = [cloud.resources[key].id.text for key in cloud.index.users(subnet.key) if key != arm_id.key]
            refused = f"is used by {others[0]} already; an endpoint wants a subnet of its own" if others else ""
        if refused:
            raise invalid(f"Inbound endpoint {arm_id.text} cannot be in subnet {subnet.id.text}: it {refused}.", subnet.id.text)

"""Private link services, private endpoints and their private DNS zone groups.

https://learn.microsoft.com/azure/private-link/private-endpoint-dns-integration

https://learn.microsoft.com/azure/private-link/private-link-service-overview,
https://learn.microsoft.com/azure/private-link/private-endpoint-overview
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid, property_change_not_allowed
from rehearsal.azure.network.child_resources import siblings, store_child
from rehearsal.azure.network.ip_configurations import AddressHolder, IpConfiguration, allocated_addresses, check_one_primary
from rehearsal.azure.network.network_resource_type import NetworkResourceType, check_names, id_of, list_of, properties_of, users_by_type
from rehearsal.azure.resource import Json, Operation, Resource, location_key

NAT_ADDRESSES_PER_SERVICE = 8
"""NAT addresses of a service:
https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#azure-private-link-limits
"""
ENDPOINTS = "microsoft.network/privateendpoints"
CONNECTIONS = ("privateLinkServiceConnections", "manualPrivateLinkServiceConnections")

DOMAINS = {
    "vault": "vault.azure.net",
    "blob": "blob.core.windows.net",
    "file": "file.core.windows.net",
    "queue": "queue.core.windows.net",
    "table": "table.core.windows.net",
    "dfs": "dfs.core.windows.net",
    "web": "web.core.windows.net",
}
"""Public domain by sub-resource of a service: https://learn.microsoft.com/azure/private-link/private-endpoint-dns"""


class PrivateLinkService(AddressHolder):
    """A private link service in front of an internal frontend: its NAT addresses and connections; packets are not modelled.

    It cannot be deleted while endpoints are connected. This is assumed, as are all its error codes except that of the subnet's
    policies.
    """

    type = "Microsoft.Network/privateLinkServices"
    noun = "Private link service"
    in_use_code = "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted"
    defaults: Mapping[str, Any] = {
        "enableProxyProtocol": False,
        "fqdns": [],
        "autoApproval": {"subscriptions": []},
        "visibility": {"subscriptions": []},
    }
    has_guid = False
    items = ("ipConfigurations",)

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a service without a frontend, without one to eight NAT addresses, or in a subnet with network policies."""
        super().check(cloud, arm_id, body, previous)
        items = list_of(body, "ipConfigurations")
        if not 1 <= len(items) <= NAT_ADDRESSES_PER_SERVICE:
            message = f"Private link service {arm_id.text} has {len(items)} ipConfigurations, of 1 to {NAT_ADDRESSES_PER_SERVICE}."
            raise invalid(message, "properties.ipConfigurations", "PrivateLinkServiceIpConfigurationCountInvalid")
        check_one_primary(arm_id, items)
        if not list_of(body, "loadBalancerFrontendIpConfigurations"):
            message = f"Private link service {arm_id.text} names no loadBalancerFrontendIpConfigurations."
            raise invalid(message, "properties.loadBalancerFrontendIpConfigurations", "PrivateLinkServiceMustReferenceLoadBalancerFrontend")
        for one in self.ip_configurations(arm_id, body):
            subnet = cloud.find(one.subnet)
            if subnet is not None and subnet.properties["privateLinkServiceNetworkPolicies"] != "Disabled":
                message = (
                    f"Private link service {arm_id.text} cannot be created in a subnet {subnet.id.text} since it has private link service "
                    "network policies enabled."
                )
                raise invalid(message, subnet.id.text, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, and the alias that consumers connect to."""
        whole = super().complete(cloud, arm_id, body, previous)
        location = location_key(body["location"])
        for item in whole["properties"]["ipConfigurations"]:
            item["properties"].setdefault("privateIPAddressVersion", "IPv4")
        whole["properties"]["alias"] = f"{arm_id.name}.{cloud.stable_uuid('alias', arm_id.key)}.{location}.azure.privatelinkservice"
        return whole

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the connected endpoints."""
        shown = super().view(cloud, resource, query)
        found = [cloud.get(one) for one in users_by_type(cloud, resource).get(ENDPOINTS, [])]
        connections = [
            {
                "id": f"{resource.id.text}/privateEndpointConnections/{one.id.name}",
                "name": one.id.name,
                "type": f"{self.type}/privateEndpointConnections",
                "properties": {
                    "privateEndpoint": {"id": one.id.text},
                    "privateLinkServiceConnectionState": connection_of(one.body)["properties"]["privateLinkServiceConnectionState"],
                    "provisioningState": "Succeeded",
                },
            }
            for one in found
        ]
        interfaces = [{"id": _interface_of(cloud, resource.id)}]
        return {**shown, "properties": {**shown["properties"], "networkInterfaces": interfaces, "privateEndpointConnections": connections}}


class PrivateEndpoint(AddressHolder):
    """A private endpoint: one address in a subnet for one service. Service and subnet cannot change.

    Its network interface is not a resource of the model: the address is in customDnsConfigs, and in the zones of its zone group.
    """

    type = "Microsoft.Network/privateEndpoints"
    noun = "Private endpoint"
    put_duration = "private_endpoint.put"
    has_guid = False
    items = CONNECTIONS

    def ip_configurations(self, arm_id: ArmId, body: Json) -> Iterator[IpConfiguration]:
        """Yield a static address for each ipConfiguration, or one dynamic address without any."""
        subnet = id_of(properties_of(body).get("subnet"))
        items = list_of(body, "ipConfigurations")
        for item in items:
            static = {"privateIPAddress": properties_of(item).get("privateIPAddress"), "privateIPAllocationMethod": "Static"}
            own = f"{arm_id.text}/ipConfigurations/{item.get('name')}"
            yield IpConfiguration(str(item.get("name")), own, subnet, static, self.address_key, self.method_key)
        if subnet and not items:
            yield IpConfiguration("default", arm_id.text, subnet, {}, self.address_key, self.method_key)

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a subnet and one service, which cannot change."""
        for connection in (one for name in CONNECTIONS for one in list_of(body, name)):
            # The published examples send no name.
            connection.setdefault("name", arm_id.name)
        if not id_of(properties_of(body).get("subnet")):
            raise invalid(f"Private endpoint {arm_id.text} names no subnet.", "properties.subnet", "InvalidRequestFormat")
        super().check(cloud, arm_id, body, previous)
        check_names(arm_id, list_of(body, "ipConfigurations"))
        found = [item for name in CONNECTIONS for item in list_of(body, name)]
        if len(found) != 1 or not service_id_of(body):
            message = f"Private endpoint {arm_id.text} has {len(found)} connections; it must have one, with a privateLinkServiceId."
            raise invalid(message, "properties.privateLinkServiceConnections", "PrivateEndpointMustHaveOneConnection")
        if previous is not None:
            old = {"subnet": id_of(previous.properties["subnet"]), "privateLinkServiceId": service_id_of(previous.body)}
            new = {"subnet": id_of(properties_of(body)["subnet"]), "privateLinkServiceId": service_id_of(body)}
            for name, before in old.items():
                if before.lower() != new[name].lower():
                    raise property_change_not_allowed(f"properties.{name}", before, new[name])
        service = cloud.find(service_id_of(body))
        if service is not None and not _names_subscription(service, "visibility", arm_id.subscription, free=True):
            message = f"Private link service {service.id.text} is not visible to subscription {arm_id.subscription}."
            raise AzureError(403, "PrivateLinkServiceNotVisible", message, target=service.id.text)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the connection state: Approved at once unless the request is manual and the service's owner does not auto-approve."""
        whole = super().complete(cloud, arm_id, body, previous)
        connection = connection_of(whole)
        service = cloud.find(service_id_of(whole))
        manual = bool(list_of(whole, CONNECTIONS[1]))
        approved = not manual or (service is not None and _names_subscription(service, "autoApproval", arm_id.subscription, free=False))
        connection["properties"]["privateLinkServiceConnectionState"] = {
            "status": "Approved" if approved else "Pending",
            "description": "Auto-approved" if approved else "Awaiting approval",
            "actionsRequired": "None",
        }
        return whole

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the service's public name and the endpoint's address."""
        shown = super().view(cloud, resource, query)
        addresses = [str(IPv4Address(one)) for one in allocated_addresses(resource).values()]
        groups = connection_of(resource.body)["properties"].get("groupIds") or ()
        names = [f"{parse(service_id_of(resource.body)).name}.{DOMAINS[group]}" for group in groups if group in DOMAINS]
        configs = [{"fqdn": name, "ipAddresses": addresses} for name in names] or [{"ipAddresses": addresses}]
        interfaces = [{"id": _interface_of(cloud, resource.id)}]
        return {**shown, "properties": {**shown["properties"], "networkInterfaces": interfaces, "customDnsConfigs": configs}}

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return whether the endpoint prevents a delete: its subnet and a private link service stay; another service leaves it
        disconnected.
        """
        return target.id.type.lower().startswith("microsoft.network/")


def _interface_of(cloud: Cloud, arm_id: ArmId) -> str:
    """Return the id of the network interface that Azure creates for a service or an endpoint, which is not a resource of the model."""
    interface = f"{arm_id.name}.nic.{cloud.stable_uuid('interface', arm_id.key)}"
    return f"{arm_id.group_id}/providers/Microsoft.Network/networkInterfaces/{interface}"


def connection_of(body: Json) -> Json:
    """Return the only connection of an endpoint's body."""
    return next(item for name in CONNECTIONS for item in list_of(body, name))


def service_id_of(body: Json) -> str:
    """Return the id of the service that an endpoint's body names."""
    return str(properties_of(connection_of(body)).get("privateLinkServiceId") or "")


def _names_subscription(service: Resource, field: str, subscription: str, *, free: bool) -> bool:
    """Return whether a field of a private link service names a subscription; free is the result for an empty list of visibility.

    A service's own subscription sees it always. Services of other types have no such lists.
    """
    if service.id.type.lower() != PrivateLinkService.type.lower() or service.id.subscription.lower() == subscription.lower():
        return True
    named = [str(one).lower() for one in (service.properties.get(field) or {}).get("subscriptions") or ()]
    return "*" in named or subscription.lower() in named or (free and not named)


COLLECTION = "privateDnsZoneGroups"
ZONES_PER_GROUP = 5
"""https://learn.microsoft.com/azure/private-link/private-endpoint-dns#private-dns-zone-group"""
RECORD_SECONDS = 10
CREATOR = "creator"


@dataclass(slots=True)
class WrittenRecords:
    """Keys of the record sets that a zone group wrote."""

    records: tuple[str, ...] = ()


class ZoneGroup(NetworkResourceType):
    """The zone group of an endpoint: in each of its zones an A record set with the service's name and the endpoint's address.

    Two endpoints for one service in one zone share a record set: the later one wins, and a delete of the first preserves the records
    of the other.
    """

    type = "Microsoft.Network/privateEndpoints/privateDnsZoneGroups"
    noun = "Private DNS zone group"
    put_duration = "private_endpoint.put"
    locks_with_parent = True
    has_location = has_guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a second group of an endpoint, and a group without one to five zones."""
        super().check(cloud, arm_id, body, previous)
        configs = list_of(body, "privateDnsZoneConfigs")
        if not 1 <= len(configs) <= ZONES_PER_GROUP:
            message = f"Zone group {arm_id.text} names {len(configs)} zones, of 1 to {ZONES_PER_GROUP}."
            raise invalid(message, "properties.privateDnsZoneConfigs", "PrivateDnsZoneGroupZoneCountInvalid")
        for config in configs:
            if not properties_of(config).get("privateDnsZoneId"):
                raise invalid(
                    f"Zone config {config.get('name')} of {arm_id.text} has no privateDnsZoneId.", arm_id.text, "InvalidRequestFormat"
                )
        if others := siblings(cloud, arm_id):
            message = f"Private endpoint {arm_id.parent} has zone group {others[0].id.text} already, and may have one."
            raise invalid(message, arm_id.text, "OnlyOnePrivateDnsZoneGroupAllowed")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the record sets that the group writes."""
        whole = super().complete(cloud, arm_id, body, previous)
        endpoint = cloud.get(arm_id.parent or "")
        for config in whole["properties"]["privateDnsZoneConfigs"]:
            zone = parse(config["properties"]["privateDnsZoneId"]).name
            name = parse(service_id_of(endpoint.body)).name
            record_set = {
                "recordType": "A",
                "recordSetName": name,
                "fqdn": f"{name}.{zone}",
                "ttl": RECORD_SECONDS,
                "provisioningState": "Succeeded",
                "ipAddresses": _addresses(endpoint),
            }
            config["properties"]["recordSets"] = [record_set]
        return whole

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Write the records, and delete those of zones that the group no longer names."""
        before = resource.state.records if resource.state else ()
        endpoint = cloud.get(resource.id.parent or "")
        record_sets = dict(_record_sets(cloud, resource, endpoint))
        for arm_id, body in record_sets.items():
            store_child(cloud, arm_id, body, resource.owner)
        resource.state = WrittenRecords(tuple(one.key for one in record_sets))
        _delete_records(cloud, endpoint.id, [key for key in before if key not in resource.state.records])

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Delete its records."""
        if resource.state:
            _delete_records(cloud, parse(resource.id.parent or ""), resource.state.records)

    def dump(self, state: Any) -> Any:
        return None if state is None else list(state.records)

    def load(self, data: Any) -> Any:
        return None if data is None else WrittenRecords(tuple(map(str, data)))


def _addresses(endpoint: Resource) -> list[str]:
    return [str(IPv4Address(one)) for one in allocated_addresses(endpoint).values()]


def _record_sets(cloud: Cloud, group: Resource, endpoint: Resource) -> Iterator[tuple[ArmId, Json]]:
    for config in list_of(group.body, "privateDnsZoneConfigs"):
        zone = cloud.get(properties_of(config)["privateDnsZoneId"]).id.text
        records = [{"ipv4Address": one} for one in _addresses(endpoint)]
        body = {"properties": {"ttl": RECORD_SECONDS, "aRecords": records, "metadata": {CREATOR: _creator(endpoint.id)}}}
        yield parse(f"{zone}/A/{parse(service_id_of(endpoint.body)).name}"), body


def _creator(endpoint: ArmId) -> str:
    return f"created by private endpoint {endpoint.text}"


def _delete_records(cloud: Cloud, endpoint: ArmId, keys: list[str] | tuple[str, ...]) -> None:
    for key in keys:
        found = cloud.resources.get(key)
        if found is not None and (found.properties.get("metadata") or {}).get(CREATOR) == _creator(endpoint):
            cloud.remove(found)

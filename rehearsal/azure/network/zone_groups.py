"""Decides what a private endpoint writes into private zones, and takes out again.

https://learn.microsoft.com/azure/private-link/private-endpoint-dns-integration
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.errors import invalid
from rehearsal.azure.network import child_resources
from rehearsal.azure.network.network_resource_type import NetworkKind, list_of, properties_of
from rehearsal.azure.network.private_addresses import addresses_held
from rehearsal.azure.network.private_links import target_of
from rehearsal.azure.resource import Json, Operation, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

COLLECTION = "privateDnsZoneGroups"
ZONES_PER_GROUP = 5
"""https://learn.microsoft.com/azure/private-link/private-endpoint-dns#private-dns-zone-group"""
RECORD_SECONDS = 10
CREATOR = "creator"


@dataclass(slots=True)
class Written:
    """Keys of the record sets that a zone group wrote."""

    records: tuple[str, ...] = ()


class ZoneGroup(NetworkKind):
    """The zone group of an endpoint: for each of its zones an A record set named after the endpoint's service, with the endpoint's address.

    Two endpoints for one service in one zone share a record set: the later one wins, and the first to go leaves the other's records alone.
    """

    type = "Microsoft.Network/privateEndpoints/privateDnsZoneGroups"
    noun = "Private DNS zone group"
    put_takes = "private_endpoint.put"
    shares_lock_of_parent = True
    tracked = guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """An endpoint has one group, of one to five zones."""
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
        others = [one.id.text for one in child_resources.present(cloud, (arm_id.parent or "").lower(), COLLECTION) if one.key != arm_id.key]
        if others:
            message = f"Private endpoint {arm_id.parent} has zone group {others[0]} already, and may have one."
            raise invalid(message, arm_id.text, "OnlyOnePrivateDnsZoneGroupAllowed")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """With the record sets that it stands for."""
        whole = super().complete(cloud, arm_id, body, previous)
        endpoint = cloud.get(arm_id.parent or "")
        for config in whole["properties"]["privateDnsZoneConfigs"]:
            zone = parse(config["properties"]["privateDnsZoneId"]).name
            name = parse(target_of(endpoint.body)).name
            told = {
                "recordType": "A",
                "recordSetName": name,
                "fqdn": f"{name}.{zone}",
                "ttl": RECORD_SECONDS,
                "provisioningState": "Succeeded",
                "ipAddresses": _addresses(endpoint),
            }
            config["properties"]["recordSets"] = [told]
        return whole

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Write the records, and take out those of zones that it no longer names."""
        before = resource.state.records if resource.state else ()
        endpoint = cloud.get(resource.id.parent or "")
        wanted = dict(_record_sets(cloud, resource, endpoint))
        for arm_id, body in wanted.items():
            child_resources.place(cloud, arm_id, body, resource.owner)
        resource.state = Written(tuple(one.key for one in wanted))
        _take_out(cloud, endpoint.id, [key for key in before if key not in resource.state.records])

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Its records go with it."""
        if resource.state:
            _take_out(cloud, parse(resource.id.parent or ""), resource.state.records)

    def dump(self, state: Any) -> Any:
        """The keys of its records."""
        return None if state is None else list(state.records)

    def load(self, data: Any) -> Any:
        """What dump told of."""
        return None if data is None else Written(tuple(map(str, data)))


def _addresses(endpoint: Resource) -> list[str]:
    return [str(IPv4Address(one)) for one in addresses_held(endpoint).values()]


def _record_sets(cloud: Cloud, group: Resource, endpoint: Resource) -> Iterator[tuple[ArmId, Json]]:
    for config in list_of(group.body, "privateDnsZoneConfigs"):
        zone = cloud.get(properties_of(config)["privateDnsZoneId"]).id.text
        records = [{"ipv4Address": one} for one in _addresses(endpoint)]
        body = {"properties": {"ttl": RECORD_SECONDS, "aRecords": records, "metadata": {CREATOR: _creator(endpoint.id)}}}
        yield parse(f"{zone}/A/{parse(target_of(endpoint.body)).name}"), body


def _creator(endpoint: ArmId) -> str:
    return f"created by private endpoint {endpoint.text}"


def _take_out(cloud: Cloud, endpoint: ArmId, keys: list[str] | tuple[str, ...]) -> None:
    for key in keys:
        found = cloud.resources.get(key)
        if found is not None and (found.properties.get("metadata") or {}).get(CREATOR) == _creator(endpoint):
            cloud.drop(found)

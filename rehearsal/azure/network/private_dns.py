"""Private DNS zones, their virtual network links and record sets.

https://learn.microsoft.com/azure/dns/private-dns-privatednszone,
https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links, https://learn.microsoft.com/azure/dns/dns-zones-records,
https://learn.microsoft.com/rest/api/dns/privatedns/record-sets
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.network.child_resources import existing_children, siblings
from rehearsal.azure.network.network_resource_type import NetworkResourceType, id_of, properties_of
from rehearsal.azure.network.virtual_networks import LINKS
from rehearsal.azure.preconditions import etag, resource_not_found
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response
from rehearsal.azure.resource_type import ResourceType

LINKS_PER_ZONE = 1_000
REGISTERING_LINKS_PER_ZONE = 100
MOST_LABELS = 34
STARTS_OF_AUTHORITY = 1
"""All of them: https://learn.microsoft.com/azure/dns/private-dns-privatednszone"""


class PrivateZone(NetworkResourceType):
    """A private zone: global, with at least two labels and a start of authority."""

    type = "Microsoft.Network/privateDnsZones"
    always_global = True
    noun = "Private DNS zone"
    put_duration = "dns.put"
    has_guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a location other than global, and an invalid name."""
        super().check(cloud, arm_id, body, previous)
        check_global(arm_id, body)
        labels = arm_id.name.split(".")
        if not 2 <= len(labels) <= MOST_LABELS or not all(labels):
            message = f"The zone name '{arm_id.name}' has {len(labels)} labels; a private zone has 2 to {MOST_LABELS}."
            raise invalid(message, arm_id.name, "BadRequest")

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while links exist; record sets are deleted with the zone."""
        super().check_deletable(cloud, resource)
        links = [one.id for one in existing_children(cloud, resource.key, "virtualNetworkLinks")]
        if links:
            names = ", ".join(f"'Microsoft.Network/privateDnsZones/{resource.id.name}/virtualNetworkLinks/{one.name}'" for one in links[:3])
            message = (
                f"Cannot delete resource while nested resources exist. Some existing nested resource IDs include: {names}. Please delete "
                "all nested resources before deleting this resource."
            )
            raise conflict("CannotDeleteResource", message, resource.id.text)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with counts and limits of record sets and links."""
        shown = super().view(cloud, resource, query)
        children = [cloud.resources[key] for key in cloud.index.children(resource.key)]
        links = [one for one in children if one.id.type.lower() == LINKS]
        counts = {
            "maxNumberOfRecordSets": RECORD_SETS_PER_ZONE,
            "numberOfRecordSets": len(children) - len(links) + STARTS_OF_AUTHORITY,
            "maxNumberOfVirtualNetworkLinks": LINKS_PER_ZONE,
            "numberOfVirtualNetworkLinks": len(links),
            "maxNumberOfVirtualNetworkLinksWithRegistration": REGISTERING_LINKS_PER_ZONE,
            "numberOfVirtualNetworkLinksWithRegistration": sum(1 for one in links if one.properties["registrationEnabled"]),
        }
        return {**shown, "properties": {**shown["properties"], **counts}}


class VirtualNetworkLink(NetworkResourceType):
    """A link that makes a zone resolvable in a network. Registration of machine names is not modelled."""

    type = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
    always_global = True
    noun = "Virtual network link"
    defaults: Mapping[str, Any] = {"registrationEnabled": False}
    put_duration = "dns.put"
    has_guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a second link of a network to a zone or to a zone of the same name, and registration in a second zone."""
        super().check(cloud, arm_id, body, previous)
        check_global(arm_id, body)
        network = id_of(properties_of(body).get("virtualNetwork"))
        if not network:
            raise invalid(f"Virtual network link {arm_id.text} names no virtualNetwork.", "properties.virtualNetwork", "BadRequest")
        if previous is not None and id_of(previous.properties["virtualNetwork"]).lower() != network.lower():
            raise _link_refusal(f"The virtual network of link {arm_id.text} cannot be changed; delete the link and make another.")
        registers = bool(properties_of(body).get("registrationEnabled"))
        zone = parse(arm_id.parent or "")
        for key in cloud.index.users(network.lower()):
            other = cloud.resources[key]
            if key == arm_id.key or other.id.type.lower() != LINKS:
                continue
            theirs = parse(other.id.parent or "")
            if theirs.name.lower() == zone.name.lower():
                raise _link_refusal(
                    f"A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual network "
                    f"with '{zone.name}' and '{theirs.name}' zones."
                )
            if registers and other.properties["registrationEnabled"]:
                raise _link_refusal(
                    "A virtual network can only be linked to 1 Private DNS zone(s) with auto-registration enabled; conflicting Private DNS "
                    f"zone is '{theirs.name}'."
                )
        self._check_count(cloud, arm_id, registers)

    def _check_count(self, cloud: Cloud, arm_id: ArmId, registers: bool) -> None:
        links = siblings(cloud, arm_id)
        if len(links) >= LINKS_PER_ZONE:
            raise _link_refusal(f"Zone {arm_id.parent} has {len(links)} links, of at most {LINKS_PER_ZONE}.")
        registering = sum(1 for one in links if one.properties["registrationEnabled"])
        if registers and registering >= REGISTERING_LINKS_PER_ZONE:
            raise _link_refusal(f"Zone {arm_id.parent} has {registering} links with registration, of at most {REGISTERING_LINKS_PER_ZONE}.")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults: no registration."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["properties"]["virtualNetworkLinkState"] = "InProgress"
        return whole

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Complete the link."""
        resource.properties["virtualNetworkLinkState"] = "Completed"

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: a network can be deleted, and its links with it."""
        return False


def check_global(arm_id: ArmId, body: Json) -> None:
    """Refuse a location other than global."""
    if str(body.get("location", "")).lower() != "global":
        message = (
            f"The provided location '{body.get('location')}' is not available for resource type '{arm_id.type}'. List of available regions "
            "for the resource type is 'global'."
        )
        raise invalid(message, "location", "LocationNotAvailableForResourceType")


def _link_refusal(message: str) -> AzureError:
    """Return the refusal of a link: https://github.com/Azure/terraform-azurerm-caf-enterprise-scale/issues/157 shows the code."""
    return conflict("Conflict", message)


RECORD_SETS_PER_ZONE = 25_000
RECORDS_PER_SET = 20
"""Both: https://learn.microsoft.com/azure/dns/private-dns-privatednszone"""
TTL_SECONDS = range(1, 2_147_483_648)
"""Allowed time to live of a record, in seconds: https://learn.microsoft.com/azure/dns/dns-zones-records#time-to-live"""
APEX = "@"
ZONE = "microsoft.network/privatednszones"

SOA: Json = {
    "ttl": 3_600,
    "isAutoRegistered": False,
    "soaRecord": {
        "email": "azureprivatedns-host.microsoft.com",
        "host": "azureprivatedns.net",
        "expireTime": 2_419_200,
        "minimumTtl": 10,
        "refreshTime": 3_600,
        "retryTime": 300,
        "serialNumber": 1,
    },
}
"""The start of authority of a zone: https://learn.microsoft.com/azure/dns/dns-zones-records#soa-records"""

Reader = Callable[[str], object]


def _check_ttl(arm_id: ArmId, ttl: object) -> None:
    if not isinstance(ttl, int) or ttl not in TTL_SECONDS:
        message = f"The TTL of {arm_id.text} is {ttl}, outside {TTL_SECONDS[0]} to {TTL_SECONDS[-1]} seconds."
        raise invalid(message, "properties.ttl", "BadRequest")


class RecordSet(NetworkResourceType):
    """The records of one name and type. A PUT is done at once, as on Azure.

    field is the property with the records, key the field of a record that contains its value, and read the parser of that value.
    """

    has_location = has_guid = False
    put_duration = delete_duration = ""

    def __init__(self, record_type: str, field: str, key: str, read: Reader = str) -> None:
        self.record_type, self.field, self.key, self.read = record_type, field, key, read
        self.type = f"Microsoft.Network/privateDnsZones/{record_type}"
        self.noun = f"{record_type} record set"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a set without a time to live, with invalid or too many records, or with a CNAME beside other records."""
        super().check(cloud, arm_id, body, previous)
        inner = properties_of(body)
        _check_ttl(arm_id, inner.get("ttl"))
        records = self.records(inner)
        if len(records) > RECORDS_PER_SET:
            message = f"Record set {arm_id.text} has {len(records)} records, of at most {RECORDS_PER_SET}."
            raise invalid(message, arm_id.text, "BadRequest")
        for record in records:
            self._check_record(arm_id, record)
        self._check_name(arm_id, cloud)
        zone = (arm_id.parent or "").lower()
        if previous is None and sum(1 for key in cloud.index.children(zone)) >= RECORD_SETS_PER_ZONE:
            message = f"Zone {arm_id.parent} holds at most {RECORD_SETS_PER_ZONE} record sets."
            raise conflict("TooManyRecordSets", message, arm_id.text)

    def records(self, inner: Mapping[str, Any]) -> list[Json]:
        """Return the records of a set's properties; a CNAME is a single one."""
        found = inner.get(self.field) or []
        return found if isinstance(found, list) else [found]

    def _check_record(self, arm_id: ArmId, record: Json) -> None:
        value = record.get(self.key)
        try:
            if not value:
                raise ValueError(value)
            self.read(value)
        except ValueError:
            message = f"A record of {arm_id.text} has {self.key} {value!r}, which a record of type {self.record_type} cannot have."
            raise invalid(message, f"properties.{self.field}", "BadRequest") from None

    def _check_name(self, arm_id: ArmId, cloud: Cloud) -> None:
        if self.record_type == "CNAME" and arm_id.name == APEX:
            raise invalid(f"A CNAME record cannot be at the apex of zone {arm_id.parent}.", arm_id.text, "BadRequest")
        for other in RECORD_SET_TYPES:
            found = cloud.find(f"{arm_id.parent}/{other}/{arm_id.name}") if other != self.record_type else None
            if found is not None and "CNAME" in (self.record_type, other):
                message = f"A CNAME record cannot stand beside other records of its name: {found.id.text} exists."
                raise invalid(message, arm_id.text, "BadRequest")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the full name."""
        whole = super().complete(cloud, arm_id, body, previous)
        zone = parse(arm_id.parent or "").name
        whole["properties"]["fqdn"] = f"{zone}." if arm_id.name == APEX else f"{arm_id.name}.{zone}."
        whole["properties"]["isAutoRegistered"] = False
        return whole

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body without a provisioning state, which record sets do not have."""
        shown = super().view(cloud, resource, query)
        return {**shown, "properties": {name: value for name, value in shown["properties"].items() if name != "provisioningState"}}


RECORD_SET_TYPES: Mapping[str, RecordSet] = {
    kind.record_type: kind
    for kind in (
        RecordSet("A", "aRecords", "ipv4Address", IPv4Address),
        RecordSet("AAAA", "aaaaRecords", "ipv6Address", IPv6Address),
        RecordSet("CNAME", "cnameRecord", "cname"),
        RecordSet("MX", "mxRecords", "exchange"),
        RecordSet("PTR", "ptrRecords", "ptrdname"),
        RecordSet("SRV", "srvRecords", "target"),
        RecordSet("TXT", "txtRecords", "value", list),
    )
}
"""Record set types by record type."""


class StartOfAuthority(ResourceType):
    """The start of authority that Azure creates in every zone, which a client can change except for its host.

    The zone's state contains what a client changed. https://learn.microsoft.com/azure/dns/dns-zones-records#soa-records
    """

    type = "Microsoft.Network/privateDnsZones/SOA"
    virtual = True

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer a GET, PUT or PATCH; a DELETE is refused, because the record set is deleted with its zone."""
        found = self.find_virtual(cloud, request.id)
        if found is None:
            raise resource_not_found(request.id)
        match request.method:
            case "GET" | "HEAD":
                return Response(200, found.body)
            case "PUT" | "PATCH":
                zone = cloud.get(request.id.parent or "")
                zone.state = self._changed(cloud, request, found.body["properties"])
                zone.version += 1
                changed = self.find_virtual(cloud, request.id)
                return Response(200, changed.body if changed else None)
            case _:
                message = f"{request.method} of {request.id.text} is refused: a zone's SOA record set is deleted with its zone."
                raise invalid(message, request.id.text, "BadRequest")

    def _changed(self, cloud: Cloud, request: Request, known: Json) -> Json:
        """Return the properties after a PUT or PATCH: those that the request does not set stay, as the record itself does."""
        body = cloud.body_reader.checked(self, request) if cloud.body_reader else dict(request.body or {})
        inner = {name: value for name, value in (body.get("properties") or {}).items() if name in ("ttl", "metadata", "soaRecord")}
        record = {**known["soaRecord"], **(inner.get("soaRecord") or {})}
        if record["host"].rstrip(".") != SOA["soaRecord"]["host"]:
            message = f"The host of {request.id.text} is {record['host']!r}; it stays {SOA['soaRecord']['host']!r}."
            raise invalid(message, "properties.soaRecord.host", "BadRequest")
        ttl = inner.get("ttl", known["ttl"])
        _check_ttl(request.id, ttl)
        changed: Json = {"ttl": ttl, "soaRecord": record}
        metadata = inner.get("metadata", known.get("metadata"))
        return changed if metadata is None else {**changed, "metadata": metadata}

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return the record set of an existing zone."""
        zone = cloud.find(arm_id.parent or "")
        if zone is None or arm_id.name != APEX:
            return None
        own = parse(f"{zone.id.text}/SOA/{APEX}")
        inner = {**SOA, **(zone.state or {}), "fqdn": f"{zone.id.name}."}
        body = {"id": own.text, "name": APEX, "type": self.type, "etag": etag(zone), "properties": inner}
        return Resource(own, body, {}, zone.owner, zone.created, zone.created)

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Yield those of the zones below a scope, which may be a zone."""
        for key in list(cloud.index.of_type(ZONE)):
            found = self.find_virtual(cloud, parse(f"{key}/SOA/{APEX}")) if f"{key}/".startswith(f"{scope.lower().rstrip('/')}/") else None
            if found is not None:
                yield found

"""Base of the resource types of Microsoft.Network: items with ids, zones, durations, and the types that references must have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.preconditions import busy, etag, system_data
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_location

PROVIDER = "Microsoft.Network"
CONFIGURATIONS = ("ipConfigurations", "frontendIPConfigurations")
"""Lists of items that name subnets and public addresses."""


class NetworkResourceType(ResourceType):
    """A resource of Microsoft.Network: https://learn.microsoft.com/rest/api/virtualnetwork

    A GET returns the body with its etag, a resourceGuid, ids of its items, and the ids of the resources that refer to it.
    """

    put_duration = "network.put"
    delete_duration = "network.delete"
    noun = "Resource"
    has_location = True
    """The type has a location and tags of its own."""
    has_guid = True
    """Azure assigns it a resourceGuid."""
    items: tuple[str, ...] = ()
    """Properties that list items with a name and an id, which are not resources."""
    typed_items = True
    """A GET returns the type of an item."""
    has_system_data = False
    """A GET returns the creator and the times of changes."""
    defaults: Mapping[str, Any] = {}
    """Defaults of inner properties."""
    users: Mapping[str, str] = {}
    """Properties of a GET that list the users of the resource, with the users' lower-case type."""
    codes_by_user: Mapping[str, str] = {}
    """Error codes of a refused delete by the lower-case type of the user, where they differ from in_use_code."""

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a missing location, references to another type, and a change of zones."""
        if self.has_location:
            required_location(body)
        check_reference_types(arm_id, body)
        for name in self.items:
            check_names(arm_id, list_of(body, name))
        if previous is not None:
            check_zones_stay(arm_id, previous.body, body)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Return a copy of the body with defaults, and with ids and states of its items."""
        whole = deepcopy(body)
        inner: Json = whole.setdefault("properties", {})
        if self.has_guid:
            inner["resourceGuid"] = cloud.stable_uuid("resourceGuid", arm_id.key)
        for name in self.items:
            for item in inner.get(name) or ():
                item["id"] = f"{arm_id.text}/{name}/{item['name']}"
                if self.typed_items:
                    item["type"] = f"{arm_id.type}/{name}"
                item.setdefault("properties", {})["provisioningState"] = "Succeeded"
        for name, value in self.defaults.items():
            inner.setdefault(name, deepcopy(value))
        return whole

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while a child is being changed."""
        check_children_idle(cloud, resource.key)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its etag and its users."""
        tag = etag(resource)
        shown = {**resource.body, "etag": tag}
        if self.has_system_data:
            shown["systemData"] = system_data(resource)
        inner = resource.properties
        tagged = {name: [{**item, "etag": tag} for item in inner[name]] for name in self.items if name in inner}
        if tagged:
            shown["properties"] = {**inner, **tagged}
        if self.users:
            found = users_by_type(cloud, resource)
            listed = {name: [{"id": one} for one in found[kind]] for name, kind in self.users.items() if kind in found}
            shown["properties"] = {**shown["properties"], **listed}
        return shown

    def in_use_error(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """Return the refusal to delete a resource in use: status 400, with a code named after the type."""
        users = sorted(by)
        types = (parse(user).type.lower() for user in users)
        code = next((self.codes_by_user[one] for one in types if one in self.codes_by_user), self.in_use_code)
        return AzureError(
            400, code, f"{self.noun} {resource.id.text} is in use by {', '.join(users[:3])} and cannot be deleted.", target=resource.id.text
        )


def check_children_idle(cloud: Cloud, key: str) -> None:
    """Refuse a change or delete while a child is being changed."""
    for part in cloud.index.children(key):
        if running := cloud.resources[part].operation:
            raise busy(cloud.resources[part].id, cloud.operations[running])


def users_by_type(cloud: Cloud, resource: Resource) -> dict[str, list[str]]:
    """Return the ids of the resources that refer to a resource, by lower-case type, in the order of their creation."""
    found: dict[str, list[str]] = {}
    for key in cloud.index.users(resource.key):
        user = cloud.resources[key].id
        found.setdefault(user.type.lower(), []).append(user.text)
    return found


def configurations_in(cloud: Cloud, target: Resource, field: str) -> Iterator[str]:
    """Yield the ids of the ipConfigurations of resources whose field, such as `subnet`, names a resource."""
    for key in cloud.index.users(target.key):
        user = cloud.resources[key]
        for name in CONFIGURATIONS:
            for item in list_of(user.body, name):
                if id_of((item.get("properties") or item).get(field)).lower() == target.key:
                    yield f"{user.id.text}/{name}/{item.get('name', 'default')}"


def properties_of(body: Mapping[str, Any]) -> Json:
    """Return the inner properties of a body or an item, empty if it has none."""
    inner: Json = body.get("properties") or {}
    return inner


def list_of(body: Mapping[str, Any], name: str) -> list[Json]:
    """Return a list of the inner properties, empty if there is none."""
    found: list[Json] = properties_of(body).get(name) or []
    return found


def id_of(reference: Mapping[str, Any] | None) -> str:
    """Return the id in a reference such as {"id": …}, empty without one."""
    return str((reference or {}).get("id") or "")


def check_names(arm_id: ArmId, items: Iterable[Json]) -> None:
    """Refuse items without a name, or two items with the same name."""
    seen: set[str] = set()
    for item in items:
        name = str(item.get("name") or "")
        if not name:
            raise invalid(f"A part of {arm_id.text} has no name.", arm_id.text, "InvalidRequestFormat")
        if name.lower() in seen:
            message = f"Cannot parse the request: resource {arm_id.text} has two child resources with the same name ({name})."
            raise invalid(message, arm_id.text, "InvalidRequestFormat")
        seen.add(name.lower())


def zones_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sorted availability zones, empty for a resource without zones."""
    return tuple(sorted(str(zone) for zone in body.get("zones") or ()))


def check_zones_stay(arm_id: ArmId, before: Json, body: Json) -> None:
    """Refuse a change of zones."""
    old, new = zones_of(before), zones_of(body)
    if old != new:
        message = (
            f"Resource {arm_id.text} has an existing availability zone constraint {', '.join(old) or 'Regional'} and the request has "
            f"availability zone constraint {', '.join(new) or 'Regional'}, which do not match. Zones cannot be added/updated/removed once "
            "the resource is created. The resource cannot be updated from regional to zonal or vice-versa."
        )
        raise invalid(message, arm_id.text, "ResourceAvailabilityZonesCannotBeModified")


_NETWORK = "Microsoft.Network"
REFERENCE_TYPES: Mapping[str, str] = {
    "subnet": f"{_NETWORK}/virtualNetworks/subnets",
    "virtualNetwork": f"{_NETWORK}/virtualNetworks",
    "remoteVirtualNetwork": f"{_NETWORK}/virtualNetworks",
    "publicIPAddress": f"{_NETWORK}/publicIPAddresses",
    "publicIpAddresses": f"{_NETWORK}/publicIPAddresses",
    "publicIPPrefix": f"{_NETWORK}/publicIPPrefixes",
    "publicIpPrefixes": f"{_NETWORK}/publicIPPrefixes",
    "natGateway": f"{_NETWORK}/natGateways",
    "networkSecurityGroup": f"{_NETWORK}/networkSecurityGroups",
    "routeTable": f"{_NETWORK}/routeTables",
    "frontendIPConfiguration": f"{_NETWORK}/loadBalancers/frontendIPConfigurations",
    "loadBalancerFrontendIpConfigurations": f"{_NETWORK}/loadBalancers/frontendIPConfigurations",
    "backendAddressPool": f"{_NETWORK}/loadBalancers/backendAddressPools",
    "loadBalancerBackendAddressPools": f"{_NETWORK}/loadBalancers/backendAddressPools",
    "probe": f"{_NETWORK}/loadBalancers/probes",
    "privateDnsZoneId": f"{_NETWORK}/privateDnsZones",
    "privateLinkServiceId": "",
}
"""Resource types by the property that names one, or several in a list; empty for any type."""


def check_reference_types(arm_id: ArmId, body: Json) -> None:
    """Refuse a reference to a resource of another type, or a value that is no id: AzureError LinkedInvalidPropertyId.

    The model itself checks that the resource exists.
    """
    for path, text, required in _references(body, ""):
        try:
            found = parse(text).type
        except AzureError:
            found = ""
        if not found or (required and found.lower() != required.lower()):
            message = (
                f"Property id '{text}' at path '{path}' of {arm_id.text} is invalid. Expect fully qualified resource Id that start with "
                f"'/subscriptions/{{subscriptionId}}'{f', of type {required}' if required else ''}."
            )
            raise invalid(message, path, "LinkedInvalidPropertyId")


def _references(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, id and required type of each reference in a body."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _references(item, f"{path}[{number}]")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            if name not in REFERENCE_TYPES:
                yield from _references(item, inner)
                continue
            for one in item if isinstance(item, list) else [item]:
                text = one.get("id") if isinstance(one, Mapping) else one
                if text is not None:
                    yield inner, str(text), REFERENCE_TYPES[name]
                if isinstance(one, Mapping):
                    yield from _references(one.get("properties"), f"{inner}.properties")

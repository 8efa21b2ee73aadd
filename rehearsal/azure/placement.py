"""Resource types of capacity reservations and proximity placement groups: their members and the checks of them.

https://learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview and
https://learn.microsoft.com/azure/virtual-machines/co-location
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import conflict, invalid, property_change_not_allowed
from rehearsal.azure.quota import size_of
from rehearsal.azure.resource import Json, Operation, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_location, value_at

GROUP = "Microsoft.Compute/capacityReservationGroups"
SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"
INSTANCE = f"{SCALE_SET}/virtualMachines"
PLACEMENT_GROUPS_PER_GROUP = 800
"""Proximity placement groups in a resource group: https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""


class _WithoutState(ResourceType):
    """Resource type without provisioningState."""

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the resources that refer to it."""
        properties = {key: value for key, value in resource.properties.items() if key != "provisioningState"}
        return {**resource.body, "properties": {**properties, **self.found_in(cloud, resource, query)}}

    def found_in(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Add the properties that list current members."""
        raise NotImplementedError


class CapacityReservationGroup(_WithoutState):
    """A capacity reservation group: https://learn.microsoft.com/rest/api/compute/capacity-reservation-groups"""

    type = GROUP

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Reject a change of zones."""
        required_location(body)
        if previous is not None and "zones" in body and body["zones"] != previous.body.get("zones"):
            raise property_change_not_allowed("zones", previous.body.get("zones"), body["zones"])

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        return {**_zones(previous), **body, "properties": dict(body.get("properties") or {})}

    def found_in(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        reservations = [cloud.resources[key] for key in cloud.index.children(resource.key)]
        machines = [machine for one in reservations for machine in _machines(cloud, one)]
        properties: Json = {"capacityReservations": [{"id": one.id.text} for one in reservations], "virtualMachinesAssociated": machines}
        if _wants_instance_view(query):
            views = [{"name": one.id.name, **_instance_view(cloud, one)} for one in reservations]
            properties["instanceView"] = {"capacityReservations": views, "sharedSubscriptionIds": []}
        return properties

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Require that the group has no reservations."""
        inside = list(cloud.index.children(resource.key))
        if inside:
            names = ", ".join(cloud.resources[key].id.name for key in inside[:3])
            message = f"Capacity Reservation Group '{resource.id.name}' cannot be deleted while it holds {names}; delete these first."
            raise conflict("OperationNotAllowed", message, resource.id.text)


class CapacityReservation(ResourceType):
    """Capacity reservation: machines of one size in one zone, reserved for a group:
    https://learn.microsoft.com/rest/api/compute/capacity-reservations"""

    type = f"{GROUP}/capacityReservations"
    put_duration = "reservation.put"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Reject a change of size or zone; only the capacity can change."""
        required_location(body)
        sku, zones = body.get("sku") or {}, body.get("zones") or []
        capacity = sku.get("capacity")
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 0:
            raise invalid(f"sku.capacity is {capacity!r}; give the number of machines to keep.", "sku.capacity")
        size_of(str(sku.get("name", "")), str(body["location"]))
        group = cloud.get(str(arm_id.parent))
        if len(zones) > 1 or not set(zones) <= set(group.body.get("zones") or []):
            allowed = group.body.get("zones") or "none"
            raise invalid(f"zones is {zones!r}; give at most one, of those of the capacity reservation group: {allowed}.", "zones")
        if previous is not None:
            old = previous.body
            if str(sku.get("name")).lower() != str(old["sku"]["name"]).lower():
                raise property_change_not_allowed("sku.name", old["sku"]["name"], sku.get("name"))
            if "zones" in body and zones != (old.get("zones") or []):
                raise property_change_not_allowed("zones", old.get("zones"), zones)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        created = previous.created if previous else cloud.now
        properties = {
            "reservationId": cloud.stable_uuid("reservation", arm_id.key, stamp(cloud.relative(created))),
            "platformFaultDomainCount": 1,
            "provisioningTime": stamp(cloud.now),
            "timeCreated": stamp(created),
        }
        given = body.get("properties") or {}
        return {**_zones(previous), **body, "sku": {"tier": "Standard", **body["sku"]}, "properties": {**given, **properties}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take quota and hardware at once, all or nothing."""
        self._hold(cloud, resource, int(resource.body["sku"]["capacity"]))

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Require that no machine uses the reservation."""
        drawn = capacity_of(cloud).drawn(group=str(resource.id.parent), size=str(resource.body["sku"]["name"]), zone=_zone(resource))
        if drawn:
            message = (
                f"Capacity Reservation '{resource.id.name}' cannot be deleted while {drawn} virtual machines are associated with it; "
                "delete them, or take the group out of their profile."
            )
            raise conflict("OperationNotAllowed", message, resource.id.text)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        self._hold(cloud, resource, 0)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        machines = _machines(cloud, resource)
        properties = {**resource.properties, "virtualMachinesAssociated": machines}
        if _wants_instance_view(query):
            properties["instanceView"] = _instance_view(cloud, resource)
        return {**resource.body, "properties": properties}

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        resource.properties["provisioningTime"] = stamp(cloud.now)

    def _hold(self, cloud: Cloud, resource: Resource, machines: int) -> None:
        capacity_of(cloud).set_reserved(
            cloud,
            subscription=resource.id.subscription,
            location=resource.location,
            size=str(resource.body["sku"]["name"]),
            group=str(resource.id.parent),
            zone=_zone(resource),
            machines=machines,
            attempt=resource.version,
        )


class ProximityPlacementGroup(_WithoutState):
    """A proximity placement group: https://learn.microsoft.com/rest/api/compute/proximity-placement-groups"""

    type = "Microsoft.Compute/proximityPlacementGroups"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Reject a change of type or zone, and check the limit per resource group."""
        required_location(body)
        group_type = (body.get("properties") or {}).get("proximityPlacementGroupType", "Standard")
        if previous is not None:
            old = previous.properties["proximityPlacementGroupType"]
            if group_type != old:
                raise property_change_not_allowed("proximityPlacementGroupType", old, group_type)
            if "zones" in body and body["zones"] != previous.body.get("zones"):
                raise property_change_not_allowed("zones", previous.body.get("zones"), body["zones"])
        elif sum(1 for _ in cloud.list(arm_id.group_id, self.type)) >= PLACEMENT_GROUPS_PER_GROUP:
            message = f"The resource group holds {PLACEMENT_GROUPS_PER_GROUP} proximity placement groups, the most that it may."
            raise conflict("OperationNotAllowed", message, arm_id.name)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        properties = {"proximityPlacementGroupType": "Standard", **(body.get("properties") or {})}
        return {**_zones(previous), **body, "properties": properties}

    def found_in(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        users = [cloud.resources[key] for key in cloud.index.users(resource.key) if key in cloud.resources]
        properties: dict[str, list[Any]] = {"virtualMachines": [], "virtualMachineScaleSets": []}
        for user in users:
            kind = user.id.type.rpartition("/")[2]
            if kind in properties:
                properties[kind].append({"id": user.id.text})
        return {key: value for key, value in properties.items() if value}


def _zones(previous: Resource | None) -> Json:
    """Return the resource's zones for a body that does not repeat them."""
    return {"zones": previous.body["zones"]} if previous is not None and "zones" in previous.body else {}


def _zone(resource: Resource) -> str:
    return "".join((resource.body.get("zones") or [])[:1])


def _wants_instance_view(query: Mapping[str, str]) -> bool:
    return query.get("$expand", "").lower() == "instanceview"


def _machines(cloud: Cloud, resource: Resource) -> list[Json]:
    """Return the virtual machines and instances that use a reservation, which are those of its group, size and zone."""
    size, zone = str(resource.body["sku"]["name"]).lower(), _zone(resource)
    found = []
    for key in cloud.index.users(str(resource.id.parent).lower()):
        user = cloud.resources[key]
        bodies = [one.body for one in cloud.list(user.id.text, INSTANCE)] if user.id.type == SCALE_SET else [user.body]
        for body in bodies:
            has = str(value_at(body, "properties.hardwareProfile.vmSize")).lower()
            if has == size and "".join((body.get("zones") or [])[:1]) == zone:
                found.append({"id": body["id"]})
    return found


def _instance_view(cloud: Cloud, resource: Resource) -> Json:
    state = str(resource.properties.get("provisioningState", "Succeeded"))
    status = {
        "code": f"ProvisioningState/{state.lower()}",
        "level": "Info",
        "displayStatus": f"Provisioning {state.lower()}",
        "time": stamp(resource.changed),
    }
    used = _machines(cloud, resource)[: int(resource.body["sku"]["capacity"])]
    utilization = {"currentCapacity": int(resource.body["sku"]["capacity"]), "virtualMachinesAllocated": used}
    return {"utilizationInfo": utilization, "statuses": [status]}


RESOURCE_TYPES: tuple[ResourceType, ...] = (CapacityReservationGroup(), CapacityReservation(), ProximityPlacementGroup())

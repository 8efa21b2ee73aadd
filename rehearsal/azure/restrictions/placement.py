"""Placement of machines: proximity placement groups, zones, fault domains and network interfaces.

https://learn.microsoft.com/azure/virtual-machines/co-location
"""

from __future__ import annotations

from typing import Any

from rehearsal.azure.resource import location_key
from rehearsal.azure.restrictions.disks import SIZE_LIMITS
from rehearsal.azure.restrictions.machines import MACHINE, SCALE_SET, size_name
from rehearsal.azure.restrictions.restriction import AtMost, Fields, Matches, Restriction, Subject, Where

_PROXIMITY = "https://learn.microsoft.com/azure/virtual-machines/co-location"
_GROUP = dict.fromkeys((MACHINE, SCALE_SET), "properties.proximityPlacementGroup")

ZONAL = (
    "Microsoft.Compute/disks",
    "Microsoft.Compute/proximityPlacementGroups",
    "Microsoft.Compute/capacityReservationGroups",
    "Microsoft.Network/natGateways",
    "Microsoft.Network/publicIPAddresses",
    "Microsoft.Network/publicIPPrefixes",
)


def _zones(subject: Subject) -> list[str]:
    found = subject.body.get("zones") or (subject.previous.body.get("zones") if subject.previous else None) or []
    return [str(one) for one in found]


def _several_zones(_value: Any, subject: Subject) -> Fields | None:
    zones = _zones(subject)
    return {"value": ", ".join(zones)} if len(zones) > 1 else None


def _other_zone(value: Any, subject: Subject) -> Fields | None:
    group = subject.cloud.find(str(value.get("id") or ""))
    theirs = [str(one) for one in (group.body.get("zones") or [])] if group is not None else []
    zones = _zones(subject)
    wrong = group is not None and theirs and zones and zones != theirs
    return {"value": ", ".join(zones), "theirs": ", ".join(theirs), "group": group.id.text} if wrong and group else None


def _other_location(value: Any, subject: Subject) -> Fields | None:
    group = subject.cloud.find(str(value.get("id") or ""))
    own = location_key(subject.body.get("location") or (group.location if group is not None else ""))
    wrong = group is not None and own != group.location
    return {"value": own, "theirs": group.location, "group": group.id.text} if wrong and group else None


def _too_many_interfaces(value: Any, subject: Subject) -> Fields | None:
    limits = SIZE_LIMITS.get(size_name(subject).lower())
    too_many = limits is not None and len(value) > limits.interfaces
    return {"value": len(value), "most": limits.interfaces, "size": size_name(subject)} if too_many and limits else None


_INTERFACES = (
    "The number of {what} exceeds the maximum allowed for the virtual machine size {{size}}. The number of {items} is {{value}}, and the "
    "maximum allowed is {{most}}."
)
ROWS: tuple[Restriction, ...] = (
    Restriction(
        "proximityPlacementGroup zones",
        _GROUP,
        Where("a scale set or machine in at most one zone", _several_zones),
        "Proximity placement group cannot be used with more than one zone. The resource '{name}' has the zones {value}.",
        _PROXIMITY,
        "OperationNotAllowed",
        409,
        target="proximityPlacementGroup",
        code_assumed=True,
    ),
    Restriction(
        "proximityPlacementGroup",
        _GROUP,
        Where("the zone of the proximity placement group", _other_zone),
        "The resource '{name}' is in zone {value}, and its proximity placement group '{group}' in zone {theirs}. They must be the same.",
        _PROXIMITY,
        "OperationNotAllowed",
        409,
        code_assumed=True,
    ),
    Restriction(
        "proximityPlacementGroup location",
        _GROUP,
        Where("the location of the proximity placement group", _other_location),
        "The resource '{name}' is in location {value}, and its proximity placement group '{group}' in location {theirs}. They must be the "
        "same.",
        _PROXIMITY,
        target="proximityPlacementGroup",
        creation_only=True,
        code_assumed=True,
    ),
    Restriction(
        "zones of proximityPlacementGroups",
        {"Microsoft.Compute/proximityPlacementGroups": "zones"},
        AtMost(1),
        "The proximity placement group '{name}' has {value} zones. Only one zone can be specified for this resource.",
        "https://github.com/hashicorp/terraform-provider-azurerm/pull/19675",
        "InvalidParameter",
        target="zones",
        code_assumed=True,
    ),
    Restriction(
        "zones",
        dict.fromkeys(ZONAL, "zones[]"),
        Matches(r"[1-3]", "1, 2 or 3"),
        "The zone(s) '{value}' for resource '{name}' is not supported. The supported zones are '1,2,3'.",
        "https://learn.microsoft.com/azure/reliability/availability-zones-overview",
        "InvalidAvailabilityZone",
        code_assumed=True,
    ),
    Restriction(
        "networkInterfaceConfigurations",
        {SCALE_SET: "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations"},
        Where("as many as the VM size supports", _too_many_interfaces),
        _INTERFACES.format(what="network interface configurations for VM scale set", items="network interface configurations"),
        "https://github.com/fortinet/fortigate-autoscale-azure/issues/60",
        "NetworkInterfaceCountExceeded",
    ),
    Restriction(
        "networkInterfaces",
        {MACHINE: "properties.networkProfile.networkInterfaces"},
        Where("as many as the VM size supports", _too_many_interfaces),
        _INTERFACES.format(what="network interfaces for virtual machine {{name}}", items="network interfaces"),
        "https://github.com/Azure/azure-cli/issues/18780",
        "NetworkInterfaceCountExceeded",
    ),
)

"""Published rules for virtual machines, and their fixed properties."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.disks import attached_to, check_os_disk
from rehearsal.azure.compute.machine import DEALLOCATED
from rehearsal.azure.compute.machine_interfaces import check_configurations, interface_configurations
from rehearsal.azure.errors import AzureError, conflict, invalid, property_change_not_allowed
from rehearsal.azure.quota import size_of
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.validation import required_location, value_at

_REST = "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update"
FIXED_PROPERTIES: Mapping[str, tuple[str, str]] = {
    "zones": ("zones", _REST),
    "customData": ("properties.osProfile.customData", "https://github.com/Azure/azure-sdk-for-java/issues/1976"),
    "osProfile.computerName": ("properties.osProfile.computerName", _REST),
    "adminUsername": ("properties.osProfile.adminUsername", _REST),
    "linuxConfiguration.ssh.publicKeys": ("properties.osProfile.linuxConfiguration.ssh.publicKeys", _REST),
    "imageReference": ("properties.storageProfile.imageReference", _REST),
    "osDisk.name": ("properties.storageProfile.osDisk.name", _REST),
    "osDisk.createOption": ("properties.storageProfile.osDisk.createOption", "https://github.com/Azure/azure-powershell/issues/7621"),
    "osDisk.diffDiskSettings": ("properties.storageProfile.osDisk.diffDiskSettings", _REST),
    "availabilitySet.id": ("properties.availabilitySet.id", _REST),
    "virtualMachineScaleSet.id": ("properties.virtualMachineScaleSet.id", _REST),
    "priority": ("properties.priority", _REST),
    "evictionPolicy": ("properties.evictionPolicy", _REST),
}
"""Properties that are fixed at creation, by the name in Azure's refusal: path in the body, and source."""


def check_machine(cloud: Cloud, arm_id: ArmId, body: Json) -> None:
    """Refuse an invalid virtual machine."""
    required_location(body)
    properties = body.get("properties") or {}
    size = size_of(str((properties.get("hardwareProfile") or {}).get("vmSize") or ""), str(body["location"]))
    storage = properties.get("storageProfile") or {}
    deallocates = properties.get("priority", "Regular") != "Regular" and properties.get("evictionPolicy", "Deallocate") == "Deallocate"
    check_os_disk(storage.get("osDisk") or {}, size, deallocates=deallocates)
    zones = body.get("zones") or []
    if len(zones) > 1 or not set(zones) <= {"1", "2", "3"}:
        raise invalid(f"The zones {zones} are not at most one of '1', '2', '3'.", "zones", "InvalidAvailabilityZone")
    _check_interfaces(cloud, arm_id, properties)
    _check_attached(cloud, arm_id, storage)


def _check_interfaces(cloud: Cloud, arm_id: ArmId, properties: Json) -> None:
    """Require at least one interface, one primary, and none that another machine has."""
    given = (properties.get("networkProfile") or {}).get("networkInterfaces") or []
    if interface_configurations({"properties": properties}):
        check_configurations({"properties": properties})
        return
    if not given:
        raise invalid("Virtual machine must have at least one network interface.", "networkProfile", "NetworkInterfaceMissing")
    primary = sum(1 for one in given if (one.get("properties") or {}).get("primary"))
    if len(given) > 1 and primary != 1:
        message = f"Virtual machine {arm_id.name} must have one network interface set as the primary, and {primary} are."
        raise invalid(message, "networkProfile", "VirtualMachineMustHaveOnePrimaryNetworkInterface")
    for one in given:
        owner = attached_to(cloud, str(one.get("id", "")).lower())
        if owner is not None and owner.key != arm_id.key:
            message = f"Network Interface {one['id']} is used by existing VM {owner.id.text}."
            raise AzureError(400, "NicInUse", message, target=str(one["id"]))


def _check_attached(cloud: Cloud, arm_id: ArmId, storage: Json) -> None:
    """Refuse a disk that another machine has."""
    for disk in storage.get("dataDisks") or []:
        text = str((disk.get("managedDisk") or {}).get("id", ""))
        owner = attached_to(cloud, text.lower()) if text else None
        if owner is not None and owner.key != arm_id.key:
            message = f"Disk '{text.rpartition('/')[2]}' cannot be attached as the disk is already owned by VM '{owner.id.text}'."
            raise conflict("AttachDiskWhileBeingDetached" if owner.operation else "ConflictingUserInput", message, text)


def check_changes(previous: Resource, power: str, body: Json) -> None:
    """Refuse a change of a fixed property; properties that a PUT leaves out are unchanged."""
    for name, (path, _) in FIXED_PROPERTIES.items():
        before, after = value_at(previous.sent, path), value_at(body, path)
        if after is not None and after != before:
            raise property_change_not_allowed(name, before, after)
    path = "properties.networkProfile.networkInterfaces"
    known, requested = [[str(one.get("id", "")).lower() for one in value_at(one_body, path) or []] for one_body in (previous.body, body)]
    if interface_configurations(body):
        # These are of the machine's creation; its interfaces stay.
        return
    if sorted(known) != sorted(requested) and power not in (DEALLOCATED, ""):
        message = (
            f"Adding or deleting network interfaces on the virtual machine {previous.id.text} is not supported while it is {power}; "
            "deallocate it first."
        )
        raise invalid(message, "networkInterfaces", "AddingOrDeletingNetworkInterfacesOnARunningVirtualMachine")

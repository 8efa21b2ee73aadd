"""Decides how managed disks behave, and which ones a virtual machine brings with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.durations import seconds
from rehearsal.azure.errors import AzureError, conflict, invalid, property_change_not_allowed
from rehearsal.azure.resource import SUCCEEDED, Json, Resource
from rehearsal.azure.resource_type import Kind
from rehearsal.azure.validation import required_location

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

DISK = "Microsoft.Compute/disks"
MACHINE = "Microsoft.Compute/virtualMachines"
IMAGE_GIB = 64
"""Size of an OS disk whose image says none: that of microsoft-dsvm's ubuntu-hpc images."""


class Disk(Kind):
    """A managed disk: https://learn.microsoft.com/rest/api/compute/disks"""

    type = DISK

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """A disk has a source and a size, which only grows; zones and source are for good."""
        required_location(body)
        properties = body.get("properties") or {}
        option = (properties.get("creationData") or {}).get("createOption")
        if not option:
            raise invalid("Required parameter 'disk.creationData.createOption' is missing (null).", "disk.creationData")
        size = properties.get("diskSizeGB")
        if option == "Empty" and not size:
            raise invalid("Required parameter 'disk.diskSizeGB' is missing (null).", "disk.diskSizeGB")
        if previous is None:
            return
        if "zones" in body and body["zones"] != previous.body.get("zones"):
            raise property_change_not_allowed("zones", previous.body.get("zones"), body["zones"])
        if option != previous.properties["creationData"]["createOption"]:
            raise property_change_not_allowed("creationData", previous.properties["creationData"]["createOption"], option)
        if size is not None and size < previous.properties["diskSizeGB"]:
            message = f"Disk '{arm_id.name}' has {previous.properties['diskSizeGB']} GiB and cannot be made smaller, as {size} GiB would."
            raise conflict("OperationNotAllowed", message, "diskSizeGB")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Defaults of a disk."""
        given = body.get("properties") or {}
        created = previous.created if previous else cloud.now
        properties = {"diskSizeGB": IMAGE_GIB, "networkAccessPolicy": "AllowAll", "publicNetworkAccess": "Enabled", **given}
        properties |= {"timeCreated": stamp(created), "uniqueId": cloud.stable_uuid("disk", arm_id.key, created)}
        return {**body, "sku": {"name": "Standard_LRS", **(body.get("sku") or {})}, "properties": properties}

    def seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        return seconds(cloud, "disk.put", resource.key, resource.version)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """The body, with the machine that the disk is attached to."""
        owner = attached_to(cloud, resource.key)
        properties = {**resource.properties, "diskState": "Attached" if owner else "Unattached"}
        body = {**resource.body, "properties": properties}
        return {**body, "managedBy": owner.id.text} if owner else body

    def in_use(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """A disk stays while it is attached."""
        message = f"Disk {resource.id.name} is attached to VM {min(by)}."
        return conflict("OperationNotAllowed", message, resource.id.text)


def attached_to(cloud: Cloud, key: str) -> Resource | None:
    """The virtual machine that a disk, or a network interface, belongs to."""
    users = (cloud.resources[user] for user in cloud.index.users(key))
    return next((one for one in users if one.id.type.lower() == MACHINE.lower()), None)


def make(cloud: Cloud, machine: Resource, name: str, told: Json) -> str:
    """Make a disk that comes with a virtual machine: its id. told is the disk as the machine's storageProfile has it."""
    text = f"{machine.id.group_id}/providers/{DISK}/{name}"
    if cloud.find(text) is not None:
        return text
    arm_id = parse(text)
    sku = {"name": (told.get("managedDisk") or {}).get("storageAccountType", "Premium_LRS")}
    properties: Json = {"creationData": {"createOption": told["createOption"]}}
    if told.get("diskSizeGB"):
        properties["diskSizeGB"] = told["diskSizeGB"]
    if "osType" in told:
        properties["osType"] = told["osType"]
    body: Json = {"location": machine.body["location"], "sku": sku, "properties": properties}
    if machine.body.get("zones"):
        body["zones"] = machine.body["zones"]
    kind = cloud.kinds[DISK.lower()]
    disk = cloud.place(arm_id, kind.complete(cloud, arm_id, body, None), machine.owner, sent=body)
    cloud.settle(disk, SUCCEEDED)
    return text

"""Managed disks, and the OS disks and images of machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from components.plan.vm_sizes import VmSize
from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.disk_properties import completed_disk_properties, disk_performance
from rehearsal.azure.compute.instance_disks import DISK, instance_disk, instance_disks
from rehearsal.azure.compute.instances import Instance
from rehearsal.azure.compute.profile_defaults import IMAGE_GIB, LINUX, is_ephemeral
from rehearsal.azure.errors import AzureError, conflict, invalid, property_change_not_allowed
from rehearsal.azure.images.galleries import Image
from rehearsal.azure.images.image_versions import ImageVersion, is_replicated, latest_version
from rehearsal.azure.resource import SUCCEEDED, Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_location
from rehearsal.azure.vm_size_names import NamedSize

MACHINE = "Microsoft.Compute/virtualMachines"


class Disk(ResourceType):
    """A managed disk: https://learn.microsoft.com/rest/api/compute/disks"""

    type = DISK
    put_duration = "disk.put"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a disk without source or size, a smaller size, and a change of zones or source."""
        required_location(body)
        properties = body.get("properties") or {}
        option = (properties.get("creationData") or {}).get("createOption")
        if not option:
            raise invalid("Required parameter 'disk.creationData.createOption' is missing (null).", "disk.creationData")
        size = properties.get("diskSizeGB")
        if option == "Empty" and not size:
            raise invalid("Required parameter 'disk.diskSizeGB' is missing (null).", "disk.diskSizeGB")
        if previous is None:
            if (found := instance_disk(cloud, arm_id)) is not None:
                raise self.in_use_error(self._of_instance(cloud, *found), [f"{found[2].id.text}/virtualMachines/{found[3].id}"])
            return
        if "zones" in body and body["zones"] != previous.body.get("zones"):
            raise property_change_not_allowed("zones", previous.body.get("zones"), body["zones"])
        if option != previous.properties["creationData"]["createOption"]:
            raise property_change_not_allowed("creationData", previous.properties["creationData"]["createOption"], option)
        if size is not None and size < previous.properties["diskSizeGB"]:
            message = f"Disk '{arm_id.name}' has {previous.properties['diskSizeGB']} GiB and cannot be made smaller, as {size} GiB would."
            raise conflict("OperationNotAllowed", message, "diskSizeGB")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults."""
        given = body.get("properties") or {}
        created = previous.created if previous else cloud.now
        sku = {"name": "Standard_LRS", **(body.get("sku") or {})}
        properties = {"diskSizeGB": IMAGE_GIB[given.get("osType", LINUX)], **completed_disk_properties(given)}
        properties |= disk_performance(sku["name"], properties)
        properties |= {"timeCreated": stamp(created), "uniqueId": cloud.stable_uuid("disk", arm_id.key, cloud.relative(created))}
        return {**body, "sku": {**sku, "tier": sku["name"].partition("_")[0].removesuffix("V2")}, "properties": properties}

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return a disk of a scale set's instance, which is part of the set's state."""
        found = instance_disk(cloud, arm_id)
        return self._of_instance(cloud, *found) if found is not None else None

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Yield the disks of all instances below a scope."""
        return (self._of_instance(cloud, *found) for found in instance_disks(cloud, scope))

    def _of_instance(self, cloud: Cloud, arm_id: ArmId, entry: Json, owner: Resource, one: Instance) -> Resource:
        sent = requested_disk(owner.body["location"], entry, [one.zone] if one.zone else [])
        resource = Resource(arm_id, {}, sent, owner.owner, one.created, one.created)
        known = {"id": arm_id.text, "name": arm_id.name, "type": DISK, "managedBy": f"{owner.id.text}/virtualMachines/{one.id}"}
        resource.body = {**self.complete(cloud, arm_id, sent, resource), **known}
        state = "Attached" if one.host else "Reserved"
        owned = {"LastOwnershipUpdateTime": stamp(one.created)}
        resource.body["properties"] |= {"diskState": state, "provisioningState": SUCCEEDED, **owned}
        return resource

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the machine that the disk is attached to, Reserved while that machine has no host."""
        if "managedBy" in resource.body:
            return resource.body
        owner = attached_to(cloud, resource.key)
        state = "Unattached" if owner is None else "Attached" if owner.state is None or owner.state.host else "Reserved"
        owned = {"LastOwnershipUpdateTime": stamp(owner.created)} if owner else {}
        body = {**resource.body, "properties": {**resource.properties, "diskState": state, **owned}}
        return {**body, "managedBy": owner.id.text} if owner else body

    def in_use_error(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """Return the refusal to delete an attached disk."""
        message = f"Disk {resource.id.name} is attached to VM {min(by)}."
        return conflict("OperationNotAllowed", message, resource.id.text)


def attached_to(cloud: Cloud, key: str) -> Resource | None:
    """Return the virtual machine that a disk or a network interface is attached to."""
    users = (cloud.resources[user] for user in cloud.index.users(key))
    return next((one for one in users if one.id.type.lower() == MACHINE.lower()), None)


def create_disk(cloud: Cloud, machine: Resource, name: str, entry: Json) -> str:
    """Create a disk of a virtual machine from its entry in the machine's storageProfile, and return its id."""
    text = f"{machine.id.group_id}/providers/{DISK}/{name}"
    if cloud.find(text) is not None:
        return text
    arm_id = parse(text)
    body = requested_disk(machine.body["location"], entry, machine.body.get("zones") or [])
    kind = cloud.resource_types[DISK.lower()]
    disk = cloud.insert(arm_id, kind.complete(cloud, arm_id, body, None), machine.owner, sent=body)
    cloud.set_provisioning_state(disk, SUCCEEDED)
    return text


def requested_disk(location: str, entry: Json, zones: list[str]) -> Json:
    """Return the body of a disk that a machine's storageProfile describes."""
    properties: Json = {"creationData": {"createOption": entry.get("createOption", "FromImage")}}
    if entry.get("diskSizeGB"):
        properties["diskSizeGB"] = entry["diskSizeGB"]
    if "osType" in entry:
        properties |= {"osType": entry["osType"], "hyperVGeneration": "V2", "supportedCapabilities": {"acceleratedNetwork": True}}
    body: Json = {
        "location": location,
        "sku": {"name": (entry.get("managedDisk") or {}).get("storageAccountType", "Premium_LRS")},
        "properties": properties,
    }
    return {**body, "zones": zones} if zones else body


def check_os_disk(os_disk: Json, size: VmSize, *, deallocates: bool) -> None:
    """Refuse an OS disk that the size or the eviction policy does not allow.

    https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks and ephemeral-os-disks-faq
    """
    if not is_ephemeral(os_disk):
        return
    settings = os_disk["diffDiskSettings"]
    if settings["option"] != "Local":
        raise invalid(f"The value '{settings['option']}' of parameter 'osDisk.diffDiskSettings.option' is not 'Local'.", "diffDiskSettings")
    if os_disk.get("caching", "None") != "ReadOnly":
        message = f"Ephemeral OS disks need caching 'ReadOnly', not '{os_disk.get('caching', 'None')}'."
        raise invalid(message, "osDisk.caching")
    storage = (os_disk.get("managedDisk") or {}).get("storageAccountType", "Standard_LRS")
    if storage != "Standard_LRS":
        raise invalid(f"An ephemeral OS disk has no storage account type, and '{storage}' is given.", "osDisk.managedDisk")
    placement = settings.get("placement", size.os_disk_placement)
    known = not isinstance(size, NamedSize)
    if known and (size.os_disk_placement is None or placement != size.os_disk_placement):
        gib = os_disk.get("diskSizeGB", 0)
        message = (
            f"OS disk of Ephemeral VM with size greater than 0 GB is not allowed for VM size {size.name} when the DiffDiskPlacement is "
            f"{placement or 'ResourceDisk'} (asked for: {gib or 'the image size'}); "
            + (f"use placement {size.os_disk_placement}." if size.os_disk_placement else "use a managed OS disk.")
        )
        raise conflict("OperationNotAllowed", message, "osDisk.diffDiskSettings.placement")
    if deallocates:
        message = "An ephemeral OS disk does not outlive a deallocation; set evictionPolicy 'Delete'."
        raise invalid(message, "virtualMachineProfile.evictionPolicy")


def deallocation_refused(name: str) -> AzureError:
    """Return the refusal to deallocate a machine whose OS disk is on the host."""
    message = "Operation 'deallocate' is not supported for VMs or VM Scale Set instances using an ephemeral OS disk."
    return conflict("OperationNotAllowed", message, name)


MANAGED = "microsoft.compute/images"


def is_managed(image: Json) -> bool:
    """Return whether an image reference names a managed image, which limits a scale set to fewer machines."""
    return bool(image.get("id")) and parse(str(image["id"])).type.lower() == MANAGED


def check_image(cloud: Cloud, image: Json, location: str) -> None:
    """Refuse a gallery image that does not exist or is not replicated to the location; other images are not checked."""
    text = str(image.get("id") or "")
    if not text:
        return
    kind = parse(text).type.lower()
    if kind == ImageVersion.type.lower():
        usable = cloud.find(text) is not None and is_replicated(cloud, text, location)
    elif kind == Image.type.lower():
        usable = latest_version(cloud, text, location) is not None
    else:
        return
    if not usable:
        message = (
            f"The gallery image {text} is not available in {location} region. Please contact image owner to replicate to this region, or "
            "change your requested region."
        )
        raise AzureError(404, "GalleryImageNotFound", message, target="imageReference")

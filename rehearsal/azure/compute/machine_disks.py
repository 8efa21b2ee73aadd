"""Disks of a virtual machine: its storageProfile, creation with the machine, and the OS disk that a reimage replaces."""

from __future__ import annotations

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.disks import create_disk
from rehearsal.azure.compute.profile_defaults import completed_storage, is_ephemeral
from rehearsal.azure.references import references
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.validation import value_at


def storage_body(arm_id: ArmId, given: Json, kind: str, size: str, previous: Resource | None) -> Json:
    """Return the storageProfile with Azure's defaults, and the disks that the machine has already."""
    attached = [disk for disk in given.get("dataDisks") or [] if not disk.get("toBeDetached")]
    disks = [{"caching": "None", "toBeDetached": False, **disk} for disk in _data_disks(attached, previous)]
    storage = completed_storage({**given, "dataDisks": disks}, kind, size)
    os_disk = {"name": f"{arm_id.name}_OsDisk_1", "deleteOption": "Detach", **storage["osDisk"]}
    if previous is not None and (known := value_at(previous.body, "properties.storageProfile.osDisk.managedDisk")):
        os_disk["managedDisk"] = known
    return {**storage, "osDisk": os_disk}


def _data_disks(given: list[Json], previous: Resource | None) -> list[Json]:
    """Return the requested data disks, those of the existing machine with their ids."""
    known = {disk["lun"]: disk for disk in value_at(previous.body, "properties.storageProfile.dataDisks") or []} if previous else {}
    preserved = ("name", "managedDisk")
    return [{**{name: value for name, value in known.get(disk["lun"], {}).items() if name in preserved}, **disk} for disk in given]


def create_disks(cloud: Cloud, resource: Resource) -> None:
    """Create the managed disks of the machine, and write their ids into its body."""
    storage = resource.properties["storageProfile"]
    disks = [(storage["osDisk"], storage["osDisk"]["name"])]
    disks += [(disk, disk.get("name") or f"{resource.id.name}_DataDisk_{disk['lun']}") for disk in storage["dataDisks"]]
    for disk, name in disks:
        if not is_ephemeral(disk) and "vhd" not in disk and not (disk.get("managedDisk") or {}).get("id"):
            text = create_disk(cloud, resource, name, {"createOption": "FromImage", **disk})
            disk |= {"name": name, "managedDisk": {"storageAccountType": "Premium_LRS", **(disk.get("managedDisk") or {}), "id": text}}
    cloud.index.add(resource.id, references(resource.body, resource.key))


def deleted_with_machine(properties: Json) -> list[str]:
    """Return the ids of the disks and interfaces with deleteOption Delete."""
    storage = properties.get("storageProfile") or {}
    disks = [storage.get("osDisk") or {}, *(storage.get("dataDisks") or [])]
    found = [value_at(one, "managedDisk.id") for one in disks if one.get("deleteOption") == "Delete"]
    nics = (properties.get("networkProfile") or {}).get("networkInterfaces") or []
    found += [one.get("id") for one in nics if (one.get("properties") or {}).get("deleteOption") == "Delete"]
    return [str(one) for one in found if one]


def replace_os_disk(cloud: Cloud, resource: Resource, number: int) -> None:
    """Attach a new OS disk to a reimaged machine; number counts them. The old one is deleted or stays, as its deleteOption says.

    https://learn.microsoft.com/rest/api/compute/virtual-machines/reimage
    """
    os_disk = resource.properties["storageProfile"]["osDisk"]
    old = cloud.find(str(value_at(os_disk, "managedDisk.id")))
    managed = {name: value for name, value in (os_disk.get("managedDisk") or {}).items() if name != "id"}
    os_disk |= {"name": f"{resource.id.name}_OsDisk_{number}", "managedDisk": managed}
    requested = value_at(resource.sent, "properties.storageProfile.osDisk")
    if requested and "name" in requested:
        requested["name"] = os_disk["name"]
    create_disks(cloud, resource)
    if old is not None and os_disk.get("deleteOption") == "Delete":
        cloud.delete(old)

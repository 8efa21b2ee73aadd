"""Managed disks of a scale set's instances: names, ids, and the disks as resources, which follow from the state of the set.

https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-attached-disks
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.profile_defaults import completed_storage, is_ephemeral
from rehearsal.azure.resource import Json, Resource

DISK = "Microsoft.Compute/disks"
SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"
_NAME = re.compile(r"(?P<set>.+)_(?P=set)_(?P<id>\d{1,9})_(?:OsDisk_1|disk\d{1,4})_[0-9a-f]{32}", re.IGNORECASE)


def os_disk_name(cloud: Cloud, resource: Resource, one: Instance) -> str:
    """Return the name of an instance's present OS disk, which a reimage replaces."""
    name = resource.id.name
    return f"{name}_{name}_{one.id}_OsDisk_1_{_unique(cloud, resource, one, 'os', one.os_disk)}"


def data_disk_name(cloud: Cloud, resource: Resource, one: Instance, lun: int) -> str:
    """Return the name of an instance's data disk."""
    name = resource.id.name
    return f"{name}_{name}_{one.id}_disk{lun + 2}_{_unique(cloud, resource, one, lun)}"


def _unique(cloud: Cloud, resource: Resource, one: Instance, *which: object) -> str:
    return cloud.stable_uuid(state_of(resource).born, one.id, "disk", *which).replace("-", "")


def instance_storage(cloud: Cloud, resource: Resource, one: Instance) -> Json:
    """Return an instance's storageProfile with the names and ids of its disks."""
    model = state_of(resource).models[one.model]
    if "storage" not in model.shown:
        model.shown["storage"] = completed_storage(model.profile.get("storageProfile") or {}, model.os_type, model.size)
    storage = model.shown["storage"]
    disks = [
        {**_named(resource, disk, data_disk_name(cloud, resource, one, int(disk.get("lun", 0)))), "toBeDetached": False}
        for disk in storage.get("dataDisks") or []
    ]
    whole = {**storage, "osDisk": _named(resource, storage["osDisk"], os_disk_name(cloud, resource, one)), "dataDisks": disks}
    if storage.get("imageReference") and one.image:
        whole["imageReference"] = {**storage["imageReference"], "exactVersion": one.image}
    return whole


def _named(resource: Resource, disk: Json, name: str) -> Json:
    """Return a disk's entry with its name, and with its id if it is a managed disk."""
    if is_ephemeral(disk) or "managedDisk" not in disk:
        return {**disk, "name": name}
    return {**disk, "name": name, "managedDisk": {**disk["managedDisk"], "id": f"{resource.id.group_id}/providers/{DISK}/{name}"}}


def instance_disk(cloud: Cloud, arm_id: ArmId) -> tuple[ArmId, Json, Resource, Instance] | None:
    """Return the id and the entry of the instance's disk that an id names, the scale set and the instance; None for another id."""
    found = _NAME.fullmatch(arm_id.name)
    resource = cloud.resources.get(f"{arm_id.group_id}/providers/{SCALE_SET}/{found['set']}".lower()) if found else None
    one = state_of(resource).instances.get(found["id"]) if found and resource is not None and resource.state else None
    if resource is None or one is None:
        return None
    disks = (row for row in _disks_of(cloud, resource, one) if row[0].key == arm_id.key)
    return next(((found_id, entry, resource, one) for found_id, entry in disks), None)


def instance_disks(cloud: Cloud, scope: str) -> Iterator[tuple[ArmId, Json, Resource, Instance]]:
    """Yield the disks of all instances below a subscription or group, as instance_disk returns one."""
    for resource in cloud.list(scope, SCALE_SET):
        for one in list(state_of(resource).instances.values()):
            for arm_id, entry in _disks_of(cloud, resource, one):
                yield arm_id, entry, resource, one


def _disks_of(cloud: Cloud, resource: Resource, one: Instance) -> Iterator[tuple[ArmId, Json]]:
    storage = instance_storage(cloud, resource, one)
    for entry in (storage["osDisk"], *storage["dataDisks"]):
        if text := (entry.get("managedDisk") or {}).get("id"):
            yield parse(text), entry

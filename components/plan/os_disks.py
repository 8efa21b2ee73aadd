"""OS disks of machines: ephemeral or managed, and their size."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.vm_sizes import VmSize

EPHEMERAL_DISKS = "https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks-faq"
MANAGED_OS_DISK_GIB = 256
"""Size of the managed OS disk of a machine without space for an ephemeral one. It also stores container images and logs. 256 GiB is a
P15 with 1,100 IOPS:
https://learn.microsoft.com/azure/virtual-machines/disks-types"""


@dataclass(frozen=True)
class OsDisk:
    """OS disk of a machine: ephemeral on a local disk (placement, with Azure's name), or managed (storage, the disk's SKU).

    Exactly one of placement and storage is None; gib is the size in GiB, None for the image's size.
    """

    placement: str | None
    storage: str | None
    gib: int | None


def stateless_os_disk(size: VmSize) -> OsDisk:
    """Return the OS disk of a stateless machine: ephemeral if the size has space for one.

    On an NVMe disk it takes the whole disk, so its size is that of the disk (EPHEMERAL_DISKS).
    """
    if size.os_disk_placement is None:
        return OsDisk(None, "Premium_LRS", MANAGED_OS_DISK_GIB)
    whole = size.os_disk_placement == "NvmeDisk"
    return OsDisk(size.os_disk_placement, None, size.local_nvme_gib // size.local_nvme_disks if whole else None)


def etcd_os_disk() -> OsDisk:
    """Return the OS disk of an etcd member: managed, so that all local NVMe disks are available for etcd's data."""
    return OsDisk(None, "Premium_LRS", None)

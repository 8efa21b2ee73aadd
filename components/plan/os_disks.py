"""Where a machine's OS disk lies, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.vm_sizes import VmSize

EPHEMERAL_DISKS = "https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks-faq"
MANAGED_OS_DISK_GIB = 256
"""Managed OS disk of a machine without room for an ephemeral one: it holds container images and logs too; 256 GiB is a P15 with 1,100 IOPS:
https://learn.microsoft.com/azure/virtual-machines/disks-types"""


@dataclass(frozen=True)
class OsDisk:
    """One machine's OS disk: ephemeral on a local disk (placement, as Azure names it), or managed (storage, the disk's SKU).

    Exactly one of placement and storage is None; gib is the size in GiB, None for the image's own.
    """

    placement: str | None
    storage: str | None
    gib: int | None


def stateless_os_disk(size: VmSize) -> OsDisk:
    """OS disk of a machine that keeps nothing: ephemeral where the size has room for one.

    On an NVMe disk it takes the whole disk, of which nothing else is left to the machine, so it is as large as that disk (EPHEMERAL_DISKS).
    """
    if size.os_disk_placement is None:
        return OsDisk(None, "Premium_LRS", MANAGED_OS_DISK_GIB)
    whole = size.os_disk_placement == "NvmeDisk"
    return OsDisk(size.os_disk_placement, None, size.local_nvme_gib // size.local_nvme_disks if whole else None)


def etcd_os_disk() -> OsDisk:
    """OS disk of an etcd member: managed, so that every local NVMe disk is left to etcd's data."""
    return OsDisk(None, "Premium_LRS", None)

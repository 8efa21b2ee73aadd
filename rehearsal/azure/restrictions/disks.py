"""Disks of machines, and managed disks: sizes, LUNs and types.

https://learn.microsoft.com/azure/virtual-machines/disks-types
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.restrictions.machines import in_profile, profile_of, size_name
from rehearsal.azure.restrictions.restriction import Between, Fields, Restriction, Subject, Where

DISK = "Microsoft.Compute/disks"
LUNS = (0, 63)
OS_DISK_GIB, DISK_GIB, ULTRA_DISK_GIB = 4_095, 32_767, 65_536
ULTRA, PREMIUM_V2 = "UltraSSD_LRS", "PremiumV2_LRS"
_TYPES = "https://learn.microsoft.com/azure/virtual-machines/disks-types"
_OUT_OF_RANGE = "The value '{value}' of parameter '%s' is out of range. Value '{value}' must be between '%s' and '%s' inclusive."


@dataclass(frozen=True)
class SizeLimits:
    """What a VM size supports: data disks, network interfaces, and generations of images."""

    data_disks: int
    interfaces: int
    generations: tuple[str, ...] = ("V1", "V2")


_GEN2 = ("V2",)
SIZE_LIMITS: Mapping[str, SizeLimits] = {
    name.lower(): limits
    for name, limits in {
        "Standard_ND96isr_H100_v5": SizeLimits(32, 8, _GEN2),
        "Standard_ND96isr_H200_v5": SizeLimits(16, 8, _GEN2),
        "Standard_ND96amsr_A100_v4": SizeLimits(32, 8, _GEN2),
        "Standard_NC24ads_A100_v4": SizeLimits(8, 2, _GEN2),
        "Standard_NC48ads_A100_v4": SizeLimits(16, 4, _GEN2),
        "Standard_NC96ads_A100_v4": SizeLimits(32, 8, _GEN2),
        "Standard_L8s_v3": SizeLimits(16, 4),
        "Standard_L16s_v3": SizeLimits(32, 8),
        "Standard_D2s_v5": SizeLimits(4, 2),
        "Standard_D4s_v5": SizeLimits(8, 2),
        "Standard_D8s_v5": SizeLimits(16, 4),
        "Standard_D16s_v5": SizeLimits(32, 8),
        "Standard_D32s_v5": SizeLimits(32, 8),
        "Standard_D64s_v5": SizeLimits(32, 8),
        "Standard_D96s_v5": SizeLimits(32, 8),
        "Standard_E16s_v5": SizeLimits(32, 8),
        "Standard_E32s_v5": SizeLimits(32, 8),
        "Standard_E64s_v5": SizeLimits(32, 8),
        "Standard_D2ads_v6": SizeLimits(4, 2, _GEN2),
        "Standard_D4ads_v6": SizeLimits(8, 2, _GEN2),
        "Standard_D8ads_v6": SizeLimits(16, 4, _GEN2),
        "Standard_D16ads_v6": SizeLimits(32, 8, _GEN2),
    }.items()
}
"""Limits by VM size in lower case, from the pages of the series that components/plan/vm_sizes.py names. A size without a row has no
limit here.
"""


def _too_many_disks(value: Any, subject: Subject) -> Fields | None:
    limits = SIZE_LIMITS.get(size_name(subject).lower())
    return {"value": len(value), "most": limits.data_disks} if limits and len(value) > limits.data_disks else None


def _repeated_lun(value: Any, _subject: Subject) -> Fields | None:
    luns = [one.get("lun") for one in value if isinstance(one, Mapping)]
    twice = next((lun for lun in luns if luns.count(lun) > 1), None)
    return None if twice is None else {"value": twice}


def _not_for_os(value: Any, _subject: Subject) -> Fields | None:
    return {"value": value} if value in (ULTRA, PREMIUM_V2) else None


def _ultra_not_enabled(value: Any, subject: Subject) -> Fields | None:
    inner = subject.body.get("properties") or {}
    capable = (inner.get("additionalCapabilities") or profile_of(subject).get("additionalCapabilities") or {}).get("ultraSSDEnabled")
    return {"value": value} if value == ULTRA and not capable else None


def _cached_ultra(value: Any, _subject: Subject) -> Fields | None:
    kind, caching = (value.get("managedDisk") or {}).get("storageAccountType"), value.get("caching", "None")
    return {"value": caching, "kind": kind} if kind in (ULTRA, PREMIUM_V2) and caching != "None" else None


def _disk_size(value: Any, subject: Subject) -> Fields | None:
    large = (subject.body.get("sku") or {}).get("name") in (ULTRA, PREMIUM_V2)
    return _outside(value, ULTRA_DISK_GIB if large else DISK_GIB)


def _data_disk_size(value: Any, _subject: Subject) -> Fields | None:
    large = (value.get("managedDisk") or {}).get("storageAccountType") in (ULTRA, PREMIUM_V2)
    return _outside(value["diskSizeGB"], ULTRA_DISK_GIB if large else DISK_GIB) if value.get("diskSizeGB") is not None else None


def _no_size(value: Any, _subject: Subject) -> Fields | None:
    return {} if value.get("createOption") == "Empty" and value.get("diskSizeGB") is None else None


def _outside(value: Any, most: int) -> Fields | None:
    return None if isinstance(value, int) and 1 <= value <= most else {"value": value, "most": most}


def _disk_zones(value: Any, _subject: Subject) -> Fields | None:
    return {"value": ", ".join(map(str, value))} if len(value) > 1 else None


ROWS: tuple[Restriction, ...] = (
    Restriction(
        "dataDisks",
        in_profile("storageProfile.dataDisks"),
        Where("as many as the VM size supports", _too_many_disks),
        "The maximum number of data disks allowed to be attached to a VM of this size is {most}. The request has {value}.",
        "https://github.com/kubernetes-sigs/azuredisk-csi-driver/pull/2883",
        "OperationNotAllowed",
        409,
    ),
    Restriction(
        "dataDisk.lun",
        in_profile("storageProfile.dataDisks[].lun"),
        Between(*LUNS),
        _OUT_OF_RANGE % ("dataDisk.lun", *LUNS),
        "https://github.com/microsoft/lisa/pull/692",
    ),
    Restriction(
        "dataDisks.lun",
        in_profile("storageProfile.dataDisks"),
        Where("each LUN once", _repeated_lun),
        "The LUN '{value}' is used by more than one data disk. Each data disk needs a LUN of its own.",
        "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#datadisk",
        target="dataDisk.lun",
        code_assumed=True,
    ),
    Restriction(
        "dataDisk.diskSizeGB",
        in_profile("storageProfile.dataDisks[]"),
        Where(f"1 to {DISK_GIB:,} GiB; {ULTRA_DISK_GIB:,} for Ultra Disk and Premium SSD v2", _data_disk_size),
        _OUT_OF_RANGE % ("dataDisk.diskSizeGB", 1, "{most}"),
        _TYPES,
    ),
    Restriction(
        "dataDisk.diskSizeGB missing",
        in_profile("storageProfile.dataDisks[]"),
        Where("with a diskSizeGB if createOption is Empty", _no_size),
        "Required parameter 'dataDisk.diskSizeGB' is missing (null).",
        "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#datadisk",
        target="dataDisk.diskSizeGB",
        creation_only=True,
        code_assumed=True,
    ),
    Restriction(
        "osDisk.diskSizeGB",
        in_profile("storageProfile.osDisk.diskSizeGB"),
        Between(1, OS_DISK_GIB),
        _OUT_OF_RANGE % ("osDisk.diskSizeGB", 1, OS_DISK_GIB),
        "https://github.com/hashicorp/terraform-provider-azurerm/pull/9202",
    ),
    Restriction(
        "osDisk.storageAccountType",
        in_profile("storageProfile.osDisk.managedDisk.storageAccountType"),
        Where(f"not {ULTRA} and not {PREMIUM_V2}", _not_for_os),
        "Storage account type '{value}' is not supported for an OS disk. It can only be used with data disks.",
        "https://github.com/Azure/azure-rest-api-specs/pull/7882",
        target="osDisk.managedDisk.storageAccountType",
        code_assumed=True,
    ),
    Restriction(
        "dataDisk.storageAccountType",
        in_profile("storageProfile.dataDisks[].managedDisk.storageAccountType"),
        Where(f"{ULTRA} only if ultraSSDEnabled is true", _ultra_not_enabled),
        "StorageAccountType {value} can be used only when additionalCapabilities.ultraSSDEnabled is set.",
        "https://github.com/MicrosoftDocs/azure-docs/issues/59977",
        target="managedDisk.storageAccountType",
    ),
    Restriction(
        "dataDisk.caching",
        in_profile("storageProfile.dataDisks[]"),
        Where(f"None for {ULTRA} and {PREMIUM_V2}", _cached_ultra),
        "Storage Account type {kind} is not supported with caching type '{value}'.",
        "https://github.com/kubernetes-sigs/cluster-api-provider-azure/issues/2429",
        target="dataDisk.caching",
    ),
    Restriction(
        "disk.diskSizeGB",
        {DISK: "properties.diskSizeGB"},
        Where(f"1 to {DISK_GIB:,} GiB; {ULTRA_DISK_GIB:,} for Ultra Disk and Premium SSD v2", _disk_size),
        _OUT_OF_RANGE % ("disk.diskSizeGB", 1, "{most}"),
        _TYPES,
    ),
    Restriction(
        "maxShares",
        {DISK: "properties.maxShares"},
        Between(1, 15),
        _OUT_OF_RANGE % ("disk.maxShares", 1, 15),
        "https://learn.microsoft.com/azure/virtual-machines/disks-shared#disk-sizes",
        target="disk.maxShares",
    ),
    Restriction(
        "disk.zones",
        {DISK: "zones"},
        Where("at most one", _disk_zones),
        "The disk '{name}' has the zones {value}. A disk can be in at most one zone.",
        "https://learn.microsoft.com/azure/virtual-machines/disks-redundancy",
        "InvalidAvailabilityZone",
        target="zones",
        code_assumed=True,
    ),
)

"""Decides which OS disks Azure lets a machine have: ephemeral ones need room on the VM size, and bind what may be done to it."""

from __future__ import annotations

from components.plan.vm_sizes import VmSize
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json


def is_ephemeral(os_disk: Json) -> bool:
    """Whether an OS disk lies on the host: https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks"""
    return bool((os_disk.get("diffDiskSettings") or {}).get("option"))


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
    if size.os_disk_placement is None or placement != size.os_disk_placement:
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
    """The refusal to deallocate a machine whose OS disk lies on the host."""
    message = "Operation 'deallocate' is not supported for VMs or VM Scale Set instances using an ephemeral OS disk."
    return conflict("OperationNotAllowed", message, name)

"""Machine properties of all roles: login, OS disk and boot diagnostics.

The properties are dictionaries: the SDK would convert a shared Args object again for each scale set, a tenth of the cost of a scale set.
"""

from __future__ import annotations

import pulumi
from pulumi_azure_native import compute

from components.plan.os_disks import OsDisk

ADMIN_USER = "gpufleet"


def linux(ssh_public_key: str) -> compute.LinuxConfigurationArgsDict:
    """Return the Linux configuration: login with one SSH key, never with a password."""
    key = compute.SshPublicKeyArgsDict(key_data=ssh_public_key, path=f"/home/{ADMIN_USER}/.ssh/authorized_keys")
    return compute.LinuxConfigurationArgsDict(
        disable_password_authentication=True, provision_vm_agent=True, ssh=compute.SshConfigurationArgsDict(public_keys=[key])
    )


def diagnostics() -> compute.DiagnosticsProfileArgsDict:
    """Return boot diagnostics in storage of Azure: serial console and screenshot, the only information from a machine without network."""
    return compute.DiagnosticsProfileArgsDict(boot_diagnostics=compute.BootDiagnosticsArgsDict(enabled=True))


def scale_set_identity(identity_id: pulumi.Input[str]) -> compute.VirtualMachineScaleSetIdentityArgsDict:
    """Return the user-assigned identity with which the machines read their secrets."""
    return compute.VirtualMachineScaleSetIdentityArgsDict(
        type=compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[identity_id]
    )


def scale_set_storage(
    image_id: pulumi.Input[str], disk: OsDisk, disk_controller: str
) -> compute.VirtualMachineScaleSetStorageProfileArgsDict:
    """Return image and OS disk of a scale set's machines."""
    return compute.VirtualMachineScaleSetStorageProfileArgsDict(
        image_reference=compute.ImageReferenceArgsDict(id=image_id), os_disk=_os_disk(disk), disk_controller_type=disk_controller
    )


def _os_disk(disk: OsDisk) -> compute.VirtualMachineScaleSetOSDiskArgsDict:
    os_disk = compute.VirtualMachineScaleSetOSDiskArgsDict(create_option=compute.DiskCreateOptionTypes.FROM_IMAGE)
    if disk.gib is not None:
        os_disk["disk_size_gb"] = disk.gib
    if disk.placement is None:
        os_disk["caching"] = compute.CachingTypes.READ_WRITE
        os_disk["managed_disk"] = compute.VirtualMachineScaleSetManagedDiskParametersArgsDict(storage_account_type=disk.storage)
    else:
        # Azure accepts no other caching for an ephemeral OS disk.
        os_disk["caching"] = compute.CachingTypes.READ_ONLY
        os_disk["diff_disk_settings"] = compute.DiffDiskSettingsArgsDict(option=compute.DiffDiskOptions.LOCAL, placement=disk.placement)
    return os_disk

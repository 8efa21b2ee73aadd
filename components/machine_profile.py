"""What machines of every role have alike: who may log in, where the OS disk lies, and that the console can be read."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import compute

from components.plan.os_disks import OsDisk

ADMIN_USER = "gpufleet"


def linux(ssh_public_key: str) -> compute.LinuxConfigurationArgs:
    """Log-in with one SSH key, never with a password."""
    key = compute.SshPublicKeyArgs(key_data=ssh_public_key, path=f"/home/{ADMIN_USER}/.ssh/authorized_keys")
    return compute.LinuxConfigurationArgs(
        disable_password_authentication=True, provision_vm_agent=True, ssh=compute.SshConfigurationArgs(public_keys=[key])
    )


def diagnostics() -> compute.DiagnosticsProfileArgs:
    """Serial console and screenshot in storage that Azure manages: the only view of a machine that does not reach the network."""
    return compute.DiagnosticsProfileArgs(boot_diagnostics=compute.BootDiagnosticsArgs(enabled=True))


def scale_set_identity(identity_id: pulumi.Input[str]) -> compute.VirtualMachineScaleSetIdentityArgs:
    """One user-assigned identity, with which the machines read their secrets."""
    return compute.VirtualMachineScaleSetIdentityArgs(
        type=compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[identity_id]
    )


def scale_set_storage(image_id: pulumi.Input[str], disk: OsDisk, disk_controller: str) -> compute.VirtualMachineScaleSetStorageProfileArgs:
    """Image and OS disk of a scale set's machines."""
    return compute.VirtualMachineScaleSetStorageProfileArgs(
        image_reference=compute.ImageReferenceArgs(id=image_id), os_disk=_os_disk(disk), disk_controller_type=disk_controller
    )


def _os_disk(disk: OsDisk) -> compute.VirtualMachineScaleSetOSDiskArgs:
    if disk.placement is None:
        return compute.VirtualMachineScaleSetOSDiskArgs(
            create_option=compute.DiskCreateOptionTypes.FROM_IMAGE,
            caching=compute.CachingTypes.READ_WRITE,
            disk_size_gb=disk.gib,
            managed_disk=compute.VirtualMachineScaleSetManagedDiskParametersArgs(storage_account_type=disk.storage),
        )
    return compute.VirtualMachineScaleSetOSDiskArgs(
        create_option=compute.DiskCreateOptionTypes.FROM_IMAGE,
        # Azure accepts no other caching for an ephemeral OS disk.
        caching=compute.CachingTypes.READ_ONLY,
        disk_size_gb=disk.gib,
        diff_disk_settings=compute.DiffDiskSettingsArgs(option=compute.DiffDiskOptions.LOCAL, placement=disk.placement),
    )

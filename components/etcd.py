"""Machines of etcd members, with fixed names, addresses and zones; an update never replaces them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute, network

from components.machine_profile import ADMIN_USER, diagnostics, linux
from components.plan.model import ClusterPlan, EtcdMemberPlan, EtcdPlan, RegionPlan
from components.plan.os_disks import etcd_os_disk

CHANGED_BY_PLAYBOOKS = (
    # Azure refuses a change of these two on an existing machine.
    "osProfile.customData",
    "osProfile.linuxConfiguration",
    # For another image the provider replaces the machine.
    "storageProfile.imageReference",
    # Azure changes these in place after deallocation, which erases the local NVMe with the etcd data. Pulumi would do it to all
    # members at the same time: https://learn.microsoft.com/azure/virtual-machines/sizes/storage-optimized/lsv3-series
    "hardwareProfile",
    "storageProfile.osDisk",
    "storageProfile.diskControllerType",
    "networkProfile",
)
"""Properties that an update does not change; a playbook replaces one member after the other under quorum checks."""


@dataclass(frozen=True)
class EtcdArgs:
    """One etcd cluster: custom_data is base64, one per member; provisioned are the resources that a member needs at its first boot."""

    region: RegionPlan
    plan: ClusterPlan
    etcd: EtcdPlan
    resource_group: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    identity_id: pulumi.Input[str]
    image_id: pulumi.Input[str]
    custom_data: tuple[str, ...]
    provisioned: Sequence[pulumi.Resource]


class Etcd(pulumi.ComponentResource):
    """The machines of one etcd cluster, spread over zones."""

    def __init__(self, name: str, args: EtcdArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:etcd:Etcd", name, {}, opts)
        for member, custom_data in zip(args.etcd.members, args.custom_data, strict=True):
            interface = self._interface(f"{name}-{member.member}-nic", args, member)
            self._machine(f"{name}-{member.member}", args, member, interface, custom_data)
        self.register_outputs({})

    def _interface(self, name: str, args: EtcdArgs, member: EtcdMemberPlan) -> network.NetworkInterface:
        return network.NetworkInterface(
            name,
            resource_group_name=args.resource_group,
            network_interface_name=member.nic_name,
            location=args.region.spec.location,
            enable_accelerated_networking=True,
            ip_configurations=[
                {
                    "name": "member",
                    "primary": True,
                    "subnet": {"id": args.subnet_id},
                    "private_ip_address": member.address,
                    "private_ip_allocation_method": network.IPAllocationMethod.STATIC,
                }
            ],
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _machine(
        self, name: str, args: EtcdArgs, member: EtcdMemberPlan, interface: network.NetworkInterface, custom_data: str
    ) -> compute.VirtualMachine:
        return compute.VirtualMachine(
            name,
            resource_group_name=args.resource_group,
            vm_name=member.name,
            location=args.region.spec.location,
            zones=[member.zone],
            identity=compute.VirtualMachineIdentityArgs(
                type=compute.ResourceIdentityType.USER_ASSIGNED, user_assigned_identities=[args.identity_id]
            ),
            hardware_profile=compute.HardwareProfileArgs(vm_size=args.etcd.size.name),
            storage_profile=_storage(args, member),
            os_profile=compute.OSProfileArgsDict(
                computer_name=member.name,
                admin_username=ADMIN_USER,
                custom_data=custom_data,
                linux_configuration=linux(args.region.spec.access.ssh_public_key),
            ),
            network_profile=compute.NetworkProfileArgs(
                network_interfaces=[
                    # A replacement member gets the interface, and therefore the address.
                    compute.NetworkInterfaceReferenceArgs(id=interface.id, primary=True, delete_option=compute.DeleteOptions.DETACH)
                ]
            ),
            diagnostics_profile=diagnostics(),
            # The tag explains why an update does not change the machine.
            tags={**args.plan.tags, "gpufleet-changed-by": args.etcd.changed_by},
            opts=pulumi.ResourceOptions(
                parent=self,
                # A member reads its key from the vault at its first boot, so role assignment and secrets must exist before.
                depends_on=args.provisioned,
                # A member has etcd data on local disks and is replaced only under quorum checks, never by an update.
                protect=True,
                ignore_changes=list(CHANGED_BY_PLAYBOOKS),
            ),
        )


def _storage(args: EtcdArgs, member: EtcdMemberPlan) -> compute.StorageProfileArgs:
    disk = etcd_os_disk()
    return compute.StorageProfileArgs(
        image_reference=compute.ImageReferenceArgs(id=args.image_id),
        disk_controller_type=args.etcd.size.disk_controller,
        os_disk=compute.OSDiskArgs(
            name=member.disk_name,
            create_option=compute.DiskCreateOptionTypes.FROM_IMAGE,
            caching=compute.CachingTypes.READ_WRITE,
            disk_size_gb=disk.gib,
            managed_disk=compute.ManagedDiskParametersArgs(storage_account_type=disk.storage),
            delete_option=compute.DiskDeleteOptionTypes.DELETE,
        ),
    )

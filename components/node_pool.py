"""Decides what a pool's machines are to Azure: one Uniform scale set for each that the plan names, created lane by lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from components.machine_profile import ADMIN_USER, diagnostics, linux, scale_set_identity, scale_set_storage
from components.plan import naming
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan, ScaleSetPlan
from components.plan.os_disks import stateless_os_disk
from components.spec.pool import Capacity

TERMINATE_NOTICE = "PT15M"
"""Longest notice before a delete, time to drain; Spot has none:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification"""
UP_TO_PAY_AS_YOU_GO = -1
"""Spot price bound that means: never evict for price, pay at most the regular price."""


@dataclass(frozen=True)
class NodePoolArgs:
    """One pool: custom_data is base64, one per scale set; provisioned is what a machine needs at its first boot.

    subnet_ids are by role; backend_pool_id is None where the pool is not load-balanced.
    """

    region: RegionPlan
    plan: ClusterPlan
    pool: PoolPlan
    resource_group: pulumi.Input[str]
    subnet_ids: Mapping[str, pulumi.Input[str]]
    identity_id: pulumi.Input[str]
    image_id: pulumi.Input[str]
    backend_pool_id: pulumi.Input[str] | None
    custom_data: tuple[str, ...]
    provisioned: Sequence[pulumi.Resource]


class NodePool(pulumi.ComponentResource):
    """The scale sets of one pool.

    Each is protected: an update that drops or replaces one is refused until a person has drained its machines and unprotected it. A
    capacity that shrinks is not refused: Azure then deletes machines of its own choice, drained or not.
    """

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:node_pool:NodePool", name, {}, opts)
        alike = _Alike.of(args)
        made: dict[str, compute.VirtualMachineScaleSet] = {}
        for plan, custom_data in zip(args.pool.scale_sets, args.custom_data, strict=True):
            # A machine reads its join credentials from the vault at its first boot: the role and the secrets must be there before it.
            # A later set waits only for the one a lane's width before it, which waited for them: so no more machines than planned read
            # the image's replicas at once, and no set waits for all.
            after = args.provisioned if plan.after is None else [made[plan.after]]
            made[plan.name] = compute.VirtualMachineScaleSet(
                f"{name}-{plan.index:03d}",
                resource_group_name=args.resource_group,
                vm_scale_set_name=plan.name,
                location=args.region.spec.location,
                zones=alike.zones,
                sku=compute.SkuArgs(name=args.pool.size.name, tier="Standard", capacity=plan.capacity),
                orchestration_mode=compute.OrchestrationMode.UNIFORM,
                single_placement_group=plan.single_placement_group,
                platform_fault_domain_count=1,
                # A surplus machine would register itself as a node before Azure deletes it.
                overprovision=False,
                upgrade_policy=alike.upgrade_policy,
                identity=alike.identity,
                virtual_machine_profile=alike.machine(plan, custom_data),
                tags=alike.tags,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after, protect=True),
            )
        self.register_outputs({})


@dataclass(frozen=True)
class _Alike:
    """What all scale sets of a pool share, built once, as dictionaries (machine_profile says why); networks are by subnet role."""

    zones: list[str]
    tags: dict[str, str]
    upgrade_policy: compute.UpgradePolicyArgsDict
    identity: compute.VirtualMachineScaleSetIdentityArgsDict
    linux: compute.LinuxConfigurationArgsDict
    profile: compute.VirtualMachineScaleSetVMProfileArgsDict
    networks: dict[str, compute.VirtualMachineScaleSetNetworkProfileArgsDict]

    @classmethod
    def of(cls, args: NodePoolArgs) -> _Alike:
        pool = args.pool
        return cls(
            zones=[pool.spec.zone.value],
            tags=naming.tags(args.region.name, args.plan.name, pool.name),
            # Rotation alone decides when a machine takes a new model: it drains first.
            upgrade_policy=compute.UpgradePolicyArgsDict(mode=compute.UpgradeMode.MANUAL),
            identity=scale_set_identity(args.identity_id),
            linux=linux(args.region.spec.access.ssh_public_key),
            profile=_profile(args),
            networks={role: _network(args, args.subnet_ids[role]) for role in pool.subnet_roles},
        )

    def machine(self, plan: ScaleSetPlan, custom_data: str) -> compute.VirtualMachineScaleSetVMProfileArgsDict:
        """What one machine of a scale set is."""
        return {
            **self.profile,
            "os_profile": compute.VirtualMachineScaleSetOSProfileArgsDict(
                computer_name_prefix=plan.computer_name_prefix,
                admin_username=ADMIN_USER,
                custom_data=custom_data,
                linux_configuration=self.linux,
            ),
            "network_profile": self.networks[plan.subnet_role],
        }


def _profile(args: NodePoolArgs) -> compute.VirtualMachineScaleSetVMProfileArgsDict:
    """What all machines of a pool are; a key that does not apply stays away, because a dictionary's None is sent as null.

    It names no security type: under this API version that means Standard, without the secure boot that refuses GPU drivers.
    """
    pool = args.pool
    profile = compute.VirtualMachineScaleSetVMProfileArgsDict(
        priority=compute.VirtualMachinePriorityTypes.REGULAR,
        storage_profile=scale_set_storage(args.image_id, stateless_os_disk(pool.size), pool.size.disk_controller),
        diagnostics_profile=diagnostics(),
    )
    if pool.spec.capacity is Capacity.SPOT:
        profile["priority"] = compute.VirtualMachinePriorityTypes.SPOT
        profile["eviction_policy"] = compute.VirtualMachineEvictionPolicyTypes.DELETE
        profile["billing_profile"] = compute.BillingProfileArgsDict(max_price=UP_TO_PAY_AS_YOU_GO)
    else:
        notice = compute.TerminateNotificationProfileArgsDict(enable=True, not_before_timeout=TERMINATE_NOTICE)
        profile["scheduled_events_profile"] = compute.ScheduledEventsProfileArgsDict(terminate_notification_profile=notice)
    if pool.spec.reservation_group is not None:
        group = compute.SubResourceArgsDict(id=pool.spec.reservation_group)
        profile["capacity_reservation"] = compute.CapacityReservationProfileArgsDict(capacity_reservation_group=group)
    return profile


def _network(args: NodePoolArgs, subnet_id: pulumi.Input[str]) -> compute.VirtualMachineScaleSetNetworkProfileArgsDict:
    """One interface with the machine's own address, which alone is primary and takes ingress traffic, and one address per pod."""
    subnet = compute.ApiEntityReferenceArgsDict(id=subnet_id)
    own = compute.VirtualMachineScaleSetIPConfigurationArgsDict(name="ipconfig1", primary=True, subnet=subnet)
    if args.backend_pool_id is not None:
        own["load_balancer_backend_address_pools"] = [compute.SubResourceArgsDict(id=args.backend_pool_id)]
    pods = [
        compute.VirtualMachineScaleSetIPConfigurationArgsDict(name=f"ipconfig{number}", primary=False, subnet=subnet)
        for number in range(2, args.pool.addresses_per_machine + 1)
    ]
    interface = compute.VirtualMachineScaleSetNetworkConfigurationArgsDict(
        name="nic", primary=True, enable_accelerated_networking=True, ip_configurations=[own, *pods]
    )
    return compute.VirtualMachineScaleSetNetworkProfileArgsDict(network_interface_configurations=[interface])

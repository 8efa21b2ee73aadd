"""Scale sets of a pool in Uniform mode, created with limited parallelism."""

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
"""Maximum notice before a delete, as time to drain; Spot has none:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification"""
UP_TO_PAY_AS_YOU_GO = -1
"""Maximum spot price that means: never evict for price, and pay at most the regular price."""


@dataclass(frozen=True)
class NodePoolArgs:
    """One pool: custom_data is base64, one per scale set; provisioned are the resources that a machine needs at its first
    boot.

    subnet_ids are by role; backend_pool_id is None if the pool is not load-balanced.
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
    shrink_guard: pulumi.ResourceHookBinding


class NodePool(pulumi.ComponentResource):
    """The scale sets of one pool.

    Each is protected: an update that removes or replaces one is refused until a person has drained its machines and unprotected it. The
    shrink guard refuses a capacity below the number of live machines, of which Azure would choose some to delete, drained or not.
    """

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:node_pool:NodePool", name, {}, opts)
        shared = _SharedProperties.of(args)
        made: dict[str, compute.VirtualMachineScaleSet] = {}
        for plan, custom_data in zip(args.pool.scale_sets, args.custom_data, strict=True):
            # A machine reads its join credentials from the vault at its first boot, so role assignment and secrets must exist before. A
            # later set depends only on one earlier set, which depends on them. This limits the machines that read the image's replicas
            # at the same time, and no set waits for all others.
            after = args.provisioned if plan.after is None else [made[plan.after]]
            made[plan.name] = compute.VirtualMachineScaleSet(
                f"{name}-{plan.index:03d}",
                resource_group_name=args.resource_group,
                vm_scale_set_name=plan.name,
                location=args.region.spec.location,
                zones=shared.zones,
                sku=compute.SkuArgs(name=args.pool.size.name, tier="Standard", capacity=plan.capacity),
                orchestration_mode=compute.OrchestrationMode.UNIFORM,
                single_placement_group=plan.single_placement_group,
                platform_fault_domain_count=1,
                # A surplus machine would register itself as a node before Azure deletes it.
                overprovision=False,
                upgrade_policy=shared.upgrade_policy,
                identity=shared.identity,
                virtual_machine_profile=shared.machine(plan, custom_data),
                tags=shared.tags,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after, protect=True, hooks=args.shrink_guard),
            )
        self.register_outputs({})


@dataclass(frozen=True)
class _SharedProperties:
    """Properties that all scale sets of a pool share, as dictionaries (see machine_profile); networks are by subnet role."""

    zones: list[str]
    tags: dict[str, str]
    upgrade_policy: compute.UpgradePolicyArgsDict
    identity: compute.VirtualMachineScaleSetIdentityArgsDict
    linux: compute.LinuxConfigurationArgsDict
    profile: compute.VirtualMachineScaleSetVMProfileArgsDict
    networks: dict[str, compute.VirtualMachineScaleSetNetworkProfileArgsDict]

    @classmethod
    def of(cls, args: NodePoolArgs) -> _SharedProperties:
        pool = args.pool
        return cls(
            zones=[pool.spec.zone.value],
            tags=naming.tags(args.region.name, args.plan.name, pool.name),
            # Only rotation updates machines to a new model, after a drain.
            upgrade_policy=compute.UpgradePolicyArgsDict(mode=compute.UpgradeMode.MANUAL),
            identity=scale_set_identity(args.identity_id),
            linux=linux(args.region.spec.access.ssh_public_key),
            profile=_profile(args),
            networks={role: _network(args, args.subnet_ids[role]) for role in pool.subnet_roles},
        )

    def machine(self, plan: ScaleSetPlan, custom_data: str) -> compute.VirtualMachineScaleSetVMProfileArgsDict:
        """Return the machine profile of a scale set."""
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
    """Return the profile of all machines of a pool; keys that do not apply are omitted, because a dictionary's None is sent as null.

    Without a security type, this API version uses Standard, without secure boot, which would refuse GPU drivers.
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
    """Return one interface with the machine's primary address, which also gets ingress traffic, and one address per pod."""
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

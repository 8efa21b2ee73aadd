"""API servers of a cluster: a scale set with automatic repairs behind an internal load balancer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute, network

from components.machine_profile import ADMIN_USER, diagnostics, linux, scale_set_identity, scale_set_storage
from components.plan import naming
from components.plan.locations import ALL_ZONES
from components.plan.model import API_SERVER_PORT, ClusterPlan, RegionPlan
from components.plan.os_disks import stateless_os_disk

NAME = "api"
PROBE_SECONDS = 5
PROBE_FAILURES = 2
PROBE_PATH = "/readyz?exclude=etcd&exclude=etcd-readiness"
"""Readiness without etcd: docs/adr/0008-probes-without-etcd.md. The first name also covers the etcd clusters of overrides."""
IDLE_MINUTES = 30
"""Idle timeout: a watch may be idle for longer than the load balancer's default of 4 minutes, after which the connection is reset:
https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-reset"""
REPAIR_GRACE = "PT30M"
"""Time for a new machine to become ready before automatic repairs check it, 10 to 90 minutes; it includes the first start of etcd.
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-instance-repairs"""
PAUSE_BETWEEN_BATCHES = "PT2M"
"""Time for watches to spread over the servers before the next server is upgraded."""
LEAST_PERCENT = 5
"""Azure's minimum batch of a rolling upgrade."""


def batch_percent(count: int) -> int:
    """Return the share of one of count machines in percent, rounded down, so that the upgrade takes one machine at a time."""
    return max(LEAST_PERCENT, 100 // count)


def tolerated_percent(count: int) -> int:
    """Return the share of one of count machines in percent, rounded up, so that one bad machine does not stop its own upgrade."""
    return max(LEAST_PERCENT, math.ceil(100 / count))


@dataclass(frozen=True)
class ApiServersArgs:
    """The API servers of one cluster: custom_data is base64; provisioned are the resources that a machine needs at its first boot."""

    region: RegionPlan
    plan: ClusterPlan
    resource_group: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    identity_id: pulumi.Input[str]
    image_id: pulumi.Input[str]
    custom_data: str
    provisioned: Sequence[pulumi.Resource]
    shrink_guard: pulumi.ResourceHookBinding


class ApiServers(pulumi.ComponentResource):
    """The API servers of one cluster and their load balancer."""

    frontend_id: pulumi.Output[str]
    """Id of the load balancer's frontend configuration."""

    def __init__(self, name: str, args: ApiServersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:api_servers:ApiServers", name, {}, opts)
        balancer = self._balancer(f"{name}-lb", args)
        self.frontend_id = pulumi.Output.concat(balancer.id, f"/frontendIPConfigurations/{NAME}")
        self._scale_set(f"{name}-vmss", args, balancer)
        self.register_outputs({"frontend_id": self.frontend_id})

    def _balancer(self, name: str, args: ApiServersArgs) -> network.LoadBalancer:
        plan = args.plan.api_servers
        group = (args.plan.subscription, args.plan.resource_group, "Microsoft.Network", "loadBalancers", plan.load_balancer)
        return network.LoadBalancer(
            name,
            resource_group_name=args.resource_group,
            load_balancer_name=plan.load_balancer,
            location=args.region.spec.location,
            sku=network.LoadBalancerSkuArgs(name=network.LoadBalancerSkuName.STANDARD),
            frontend_ip_configurations=[
                {
                    "name": NAME,
                    "subnet": {"id": args.subnet_id},
                    "private_ip_address": plan.address,
                    "private_ip_allocation_method": network.IPAllocationMethod.STATIC,
                    "zones": list(ALL_ZONES),
                }
            ],
            backend_address_pools=[network.BackendAddressPoolArgs(name=NAME)],
            probes=[_probe()],
            load_balancing_rules=[
                network.LoadBalancingRuleArgs(
                    name=NAME,
                    protocol=network.TransportProtocol.TCP,
                    frontend_port=API_SERVER_PORT,
                    backend_port=API_SERVER_PORT,
                    frontend_ip_configuration=network.SubResourceArgs(id=naming.resource_id(*group, "frontendIPConfigurations", NAME)),
                    backend_address_pool=network.SubResourceArgs(id=naming.resource_id(*group, "backendAddressPools", NAME)),
                    probe=network.SubResourceArgs(id=naming.resource_id(*group, "probes", NAME)),
                    disable_outbound_snat=True,
                    enable_tcp_reset=True,
                    idle_timeout_in_minutes=IDLE_MINUTES,
                )
            ],
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _scale_set(self, name: str, args: ApiServersArgs, balancer: network.LoadBalancer) -> None:
        plan = args.plan.api_servers
        compute.VirtualMachineScaleSet(
            name,
            resource_group_name=args.resource_group,
            vm_scale_set_name=plan.name,
            location=args.region.spec.location,
            zones=list(plan.zones),
            sku=compute.SkuArgs(name=plan.size.name, tier="Standard", capacity=plan.count),
            orchestration_mode=compute.OrchestrationMode.UNIFORM,
            single_placement_group=False,
            platform_fault_domain_count=1,
            overprovision=False,
            upgrade_policy=_one_at_a_time(plan.count),
            automatic_repairs_policy=compute.AutomaticRepairsPolicyArgs(
                enabled=True, grace_period=REPAIR_GRACE, repair_action=compute.RepairAction.REPLACE
            ),
            identity=scale_set_identity(args.identity_id),
            virtual_machine_profile=_machine(args, balancer),
            tags=args.plan.tags,
            # A machine reads its keys from the vault at its first boot, so role assignment and secrets must exist before. So must etcd: a
            # server without etcd never becomes ready, and automatic repairs would replace it repeatedly.
            opts=pulumi.ResourceOptions(parent=self, depends_on=args.provisioned, hooks=args.shrink_guard),
        )


def _probe() -> network.ProbeArgs:
    """Return an HTTPS probe of /readyz: a server that has not filled its caches, or is shutting down, answers 500 and gets no connections.

    It ignores etcd: without quorum, all servers would fail the probe, also those that answer from caches, and repairs would replace them by
    servers that cannot start. Azure requires SHA-256 in the certificate chain but does not verify the issuer. The probe has no client
    certificate, so /readyz must allow anonymous requests:
    https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview
    """
    return network.ProbeArgs(
        name=NAME,
        protocol=network.ProbeProtocol.HTTPS,
        port=API_SERVER_PORT,
        request_path=PROBE_PATH,
        interval_in_seconds=PROBE_SECONDS,
        probe_threshold=PROBE_FAILURES,
    )


def _one_at_a_time(count: int) -> compute.UpgradePolicyArgs:
    """Return a rolling upgrade of one machine after the other, each ready before the next; the servers have no state."""
    return compute.UpgradePolicyArgs(
        mode=compute.UpgradeMode.ROLLING,
        rolling_upgrade_policy=compute.RollingUpgradePolicyArgs(
            max_batch_instance_percent=batch_percent(count),
            max_unhealthy_instance_percent=tolerated_percent(count),
            max_unhealthy_upgraded_instance_percent=tolerated_percent(count),
            pause_time_between_batches=PAUSE_BETWEEN_BATCHES,
            prioritize_unhealthy_instances=True,
        ),
    )


def _machine(args: ApiServersArgs, balancer: network.LoadBalancer) -> compute.VirtualMachineScaleSetVMProfileArgsDict:
    plan = args.plan.api_servers
    backend = pulumi.Output.concat(balancer.id, f"/backendAddressPools/{NAME}")
    address = compute.VirtualMachineScaleSetIPConfigurationArgsDict(
        name="ipconfig1",
        primary=True,
        subnet=compute.ApiEntityReferenceArgsDict(id=args.subnet_id),
        load_balancer_backend_address_pools=[compute.SubResourceArgsDict(id=backend)],
    )
    return compute.VirtualMachineScaleSetVMProfileArgsDict(
        os_profile=compute.VirtualMachineScaleSetOSProfileArgsDict(
            computer_name_prefix=plan.computer_name_prefix,
            admin_username=ADMIN_USER,
            custom_data=args.custom_data,
            linux_configuration=linux(args.region.spec.access.ssh_public_key),
        ),
        storage_profile=scale_set_storage(args.image_id, stateless_os_disk(plan.size), plan.size.disk_controller),
        network_profile=compute.VirtualMachineScaleSetNetworkProfileArgsDict(
            # Repairs and rolling upgrades use the same health probe as the load balancer.
            health_probe=compute.ApiEntityReferenceArgsDict(id=pulumi.Output.concat(balancer.id, f"/probes/{NAME}")),
            network_interface_configurations=[
                compute.VirtualMachineScaleSetNetworkConfigurationArgsDict(
                    name="nic", primary=True, enable_accelerated_networking=True, ip_configurations=[address]
                )
            ],
        ),
        diagnostics_profile=diagnostics(),
    )

"""Internal load balancer of a cluster's ingress, for the load-balanced pools."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network

from components.plan import naming
from components.plan.locations import ALL_ZONES
from components.plan.model import INGRESS_PORTS, ClusterPlan, IngressPlan, RegionPlan

NAME = "ingress"
PROBE_SECONDS = 5
PROBE_FAILURES = 2


@dataclass(frozen=True)
class IngressArgs:
    """The ingress of one cluster, in its ingress subnet."""

    region: RegionPlan
    plan: ClusterPlan
    ingress: IngressPlan
    resource_group: pulumi.Input[str]
    subnet_id: pulumi.Input[str]


class Ingress(pulumi.ComponentResource):
    """The internal load balancer of the load-balanced pools."""

    backend_pool_id: pulumi.Output[str]
    """Id of the backend pool that the pools' machines join."""

    def __init__(self, name: str, args: IngressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:ingress:Ingress", name, {}, opts)
        balancer = network.LoadBalancer(
            f"{name}-lb",
            resource_group_name=args.resource_group,
            load_balancer_name=args.ingress.load_balancer,
            location=args.region.spec.location,
            sku=network.LoadBalancerSkuArgs(name=network.LoadBalancerSkuName.STANDARD),
            frontend_ip_configurations=[
                {
                    "name": NAME,
                    "subnet": {"id": args.subnet_id},
                    "private_ip_address": args.ingress.address,
                    "private_ip_allocation_method": network.IPAllocationMethod.STATIC,
                    "zones": list(ALL_ZONES),
                }
            ],
            backend_address_pools=[network.BackendAddressPoolArgs(name=NAME)],
            probes=[_probe(node_port) for _, node_port in INGRESS_PORTS],
            load_balancing_rules=[_rule(args, port, node_port) for port, node_port in INGRESS_PORTS],
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.backend_pool_id = pulumi.Output.concat(balancer.id, f"/backendAddressPools/{NAME}")
        self.register_outputs({"backend_pool_id": self.backend_pool_id})


def _probe(node_port: int) -> network.ProbeArgs:
    """Return a TCP probe: a machine without an ingress pod refuses the connection; HTTP responses depend on a team's ingress."""
    return network.ProbeArgs(
        name=f"{NAME}-{node_port}",
        protocol=network.ProbeProtocol.TCP,
        port=node_port,
        interval_in_seconds=PROBE_SECONDS,
        probe_threshold=PROBE_FAILURES,
    )


def _rule(args: IngressArgs, port: int, node_port: int) -> network.LoadBalancingRuleArgs:
    group = (args.plan.subscription, args.plan.resource_group, "Microsoft.Network", "loadBalancers", args.ingress.load_balancer)
    return network.LoadBalancingRuleArgs(
        name=f"{NAME}-{port}",
        protocol=network.TransportProtocol.TCP,
        frontend_port=port,
        backend_port=node_port,
        frontend_ip_configuration=network.SubResourceArgs(id=naming.resource_id(*group, "frontendIPConfigurations", NAME)),
        backend_address_pool=network.SubResourceArgs(id=naming.resource_id(*group, "backendAddressPools", NAME)),
        probe=network.SubResourceArgs(id=naming.resource_id(*group, "probes", f"{NAME}-{node_port}")),
        disable_outbound_snat=True,
        enable_tcp_reset=True,
    )

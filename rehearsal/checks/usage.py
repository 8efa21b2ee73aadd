"""Count a region's use of Azure's limits from the registered resources alone, and compare it with the plan's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from components.plan import azure_limits
from components.plan.limits import HUB_ADDRESSES, check
from components.plan.model import RegionPlan
from components.plan.subscription_limits import SPOT_FAMILY, subscription_label
from components.plan.vm_sizes import VM_SIZES
from rehearsal.checks.expected_resources import ResourceGroupIds
from rehearsal.checks.finding import Finding
from rehearsal.checks.network_model import NetworkModel, key
from rehearsal.checks.registered_properties import properties_of
from rehearsal.program.graph import Resource

COUNTED = "the numbers of addresses, machines, vCPUs and GPUs in the graph are those of the plan"
GATEWAY_INSTANCES = 2
"""Addresses of a VPN gateway, one per instance: https://learn.microsoft.com/azure/vpn-gateway/about-gateway-skus"""
GPUS = "GPUs"

Use = tuple[str, str]
"""A limit's name, or GPUs, and its location, as in the plan's rows."""


def check_usage(plan: RegionPlan, network: NetworkModel) -> tuple[Finding, ...]:
    """Compare counts with the plan's limit rows: they are equal, except for the hub, whose plan reserves a few addresses."""
    found = uses(plan, network)
    planned = {(row.limit, row.where): int(row.use) for row in check(plan) if row.limit in COUNTABLE} | _planned_gpus(plan)
    return tuple(_differences(planned, found))


def _differences(planned: dict[Use, int], found: Counter[Use]) -> Iterator[Finding]:
    for use in sorted({*planned, *(use for use, count in found.items() if count)}):
        expected, count = planned.get(use, 0), found[use]
        least = expected - HUB_ADDRESSES if use[0] == azure_limits.PEERED_ADDRESSES.name else expected
        if not least <= count <= expected:
            yield Finding(COUNTED, f"{use[1]}: {use[0]}", f"{expected:,}", f"{count:,}", "find out which of the two counts is wrong")


def uses(plan: RegionPlan, network: NetworkModel) -> Counter[Use]:
    """Return the use of the graphs, by limit and location."""
    found = Counter(_addresses(plan, network))
    for resource, size, count, spot in _machines(network):
        where = _subscription(resource)
        found[azure_limits.MACHINES.name, where] += count
        found[azure_limits.INTERFACES.name, where] += count
        known = VM_SIZES.get(size)
        if known:
            family = SPOT_FAMILY if spot else known.family
            found[azure_limits.VCPUS.name, f"{where}/{family}"] += count * known.vcpus
            found[GPUS, f"{where}/{known.gpu}"] += count * known.gpus
    for limit, type_ in PER_SUBSCRIPTION.items():
        for resource in network.of_type(type_):
            found[limit, _subscription(resource)] += 1
    for resource in network.of_type("network:PublicIPPrefix"):
        found[azure_limits.PUBLIC_ADDRESSES.name, _subscription(resource)] += 1 << (32 - int(resource.inputs["prefixLength"]))
    for resource in network.of_type("network:PublicIPAddress"):
        found[azure_limits.PUBLIC_ADDRESSES.name, _subscription(resource)] += 1
    return found


PER_SUBSCRIPTION = {
    azure_limits.SCALE_SETS.name: "compute:VirtualMachineScaleSet",
    azure_limits.VNETS.name: "network:VirtualNetwork",
    azure_limits.SECURITY_GROUPS.name: "network:NetworkSecurityGroup",
    azure_limits.RESOURCE_GROUPS.name: "resources:ResourceGroup",
}
"""Limits on the number of resources of a type in a subscription."""
COUNTABLE = {
    *PER_SUBSCRIPTION,
    *(limit.name for limit in (azure_limits.VNET_ADDRESSES, azure_limits.PEERED_ADDRESSES, azure_limits.MACHINES, azure_limits.INTERFACES)),
    *(limit.name for limit in (azure_limits.VCPUS, azure_limits.PUBLIC_ADDRESSES)),
}
"""Limits whose use a graph shows."""


def _subscription(resource: Resource) -> str:
    """Return the subscription of a resource, as in the plan's rows."""
    return subscription_label(str(resource.id).split("/")[2])


def _machines(network: NetworkModel) -> Iterator[tuple[Resource, str, int, bool]]:
    """Yield every scale set and single machine with its size, number of machines, and whether it is spot."""
    for resource in network.of_type("compute:VirtualMachineScaleSet"):
        facts = properties_of(resource)
        yield resource, str(facts["size"]), int(facts["machines"] or 0), bool(facts["spot"])
    for resource in network.of_type("compute:VirtualMachine"):
        yield resource, str(properties_of(resource)["size"]), 1, resource.inputs.get("priority") == "Spot"


def _planned_gpus(plan: RegionPlan) -> dict[Use, int]:
    found: Counter[Use] = Counter()
    for cluster in plan.clusters:
        for pool in cluster.pools:
            if pool.size.gpus:
                found[GPUS, subscription_label(cluster.subscription, pool.size.gpu)] += pool.spec.nodes * pool.size.gpus
    return dict(found)


def used_addresses(network: NetworkModel) -> Counter[str]:
    """Return the private addresses in use by subnet key: ipConfigurations times machines, interfaces, front ends and endpoints."""
    found: Counter[str] = Counter()
    capacity = {
        str(resource.id): int(properties_of(resource)["machines"] or 0) for resource in network.of_type("compute:VirtualMachineScaleSet")
    }
    for owner, item in network.interfaces():
        found[_subnet(item)] += capacity.get(owner, 1)
    for type_, field in (
        ("network:LoadBalancer", "frontendIPConfigurations"),
        ("network:PrivateLinkService", "ipConfigurations"),
        ("dnsresolver:InboundEndpoint", "ipConfigurations"),
    ):
        found.update(_subnet(item) for resource in network.of_type(type_) for item in resource.inputs.get(field) or ())
    found.update(_subnet(resource.inputs) for resource in network.of_type("network:PrivateEndpoint"))
    for resource in network.of_type("network:VirtualNetworkGateway"):
        for item in resource.inputs.get("ipConfigurations") or ():
            found[_subnet(item)] += GATEWAY_INSTANCES
    return found


def _subnet(item: Mapping[str, Any]) -> str:
    """Return the key of the subnet of an item; empty without one."""
    return key((item.get("subnet") or {}).get("id") or "")


def _addresses(plan: RegionPlan, network: NetworkModel) -> dict[Use, int]:
    """Return the private addresses in use per cluster network, and of the hub with all its peers."""
    by_vnet: Counter[str] = Counter()
    for subnet, count in used_addresses(network).items():
        by_vnet[subnet.rpartition("/subnets/")[0]] += count
    names = {
        key(ResourceGroupIds(cluster.subscription, cluster.resource_group).vnet(cluster.network.vnet_name)): cluster.name
        for cluster in plan.clusters
    }
    hub = key(ResourceGroupIds(plan.spec.subscription, plan.base_resource_group).vnet(plan.hub.vnet_name))
    found = {(azure_limits.VNET_ADDRESSES.name, names.get(vnet, vnet)): by_vnet[vnet] for vnet in network.vnets if vnet != hub}
    found[azure_limits.PEERED_ADDRESSES.name, f"{plan.name}/hub"] = sum(by_vnet[member] for member in (hub, *network.peers.get(hub, ())))
    return found

"""How many network resources the first update of a stack writes in each subscription."""

from __future__ import annotations

from collections import Counter

from components.plan.model import ClusterPlan, HubPlan, NetworkPlan, RegionPlan

RESOLVER = 2
"""A DNS resolver and its inbound endpoint."""
GATEWAY = 2
"""A VPN gateway and its public address."""
ZONE = 2
"""A private DNS zone and its link to a network."""
PRIVATE_ENDPOINT = 2
"""A private endpoint and its group of names."""
NAT_GATEWAY = 2
"""A NAT gateway and its public prefix."""
ENDPOINT_ZONES = 2
"""Zones of the services behind private endpoints: vaults and blobs."""


def network_writes(plan: RegionPlan) -> Counter[tuple[str, str]]:
    """Resources of Microsoft.Network by stack and subscription: each costs one write when it is first made.

    The machines' interfaces in scale sets are not among them: Azure makes those itself.
    """
    found: Counter[tuple[str, str]] = Counter()
    found[plan.base_stack, plan.spec.subscription] = RESOLVER + GATEWAY + ZONE + _virtual_network(plan.hub)
    for cluster in plan.clusters:
        found[plan.stack, cluster.subscription] += _in_cluster(cluster)
        found[plan.stack, plan.spec.subscription] += _in_hub(cluster)
    return found


def _virtual_network(plan: HubPlan | NetworkPlan) -> int:
    """A virtual network with its subnets, security groups and NAT gateways."""
    return 1 + len(plan.subnets) + len(plan.security_groups) + NAT_GATEWAY * len(plan.nat_gateways)


def _in_cluster(cluster: ClusterPlan) -> int:
    """What stands in a cluster's own resource group."""
    members = len(cluster.etcd.members) + len(cluster.events_etcd.members)
    own_zone = ZONE + members + 1
    endpoints = ENDPOINT_ZONES * ZONE + PRIVATE_ENDPOINT * (len(cluster.vaults) + 1)
    balancers = 1 + (cluster.ingress is not None)
    into_hub = (cluster.network.peering_name is not None) + (cluster.api_servers.private_link_name is not None)
    return _virtual_network(cluster.network) + own_zone + endpoints + members + balancers + into_hub


def _in_hub(cluster: ClusterPlan) -> int:
    """What a cluster adds to the hub: its API servers' name, and the hub's side of the peering or a private endpoint."""
    return 1 + (cluster.network.hub_peering_name is not None) + (cluster.api_servers.endpoint_name is not None)

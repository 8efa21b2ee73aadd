"""Limits of subscriptions, counted over all regions that use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.plan import azure_limits
from components.plan.limit import Limit, LimitRow, compare
from components.plan.model import ClusterPlan, HubPlan, NetworkPlan, RegionPlan
from components.plan.pools import concurrent_sets
from components.plan.vm_sizes import VmSize
from components.spec.pool import Capacity

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
    """Return the number of Microsoft.Network resources by stack and subscription; the first update writes each once.

    Interfaces of machines in scale sets are not included, since Azure creates them.
    """
    found: Counter[tuple[str, str]] = Counter()
    found[plan.base_stack, plan.spec.subscription] = RESOLVER + GATEWAY + ZONE + _virtual_network(plan.hub)
    for cluster in plan.clusters:
        found[plan.stack, cluster.subscription] += _in_cluster(cluster)
        found[plan.stack, plan.spec.subscription] += _in_hub(cluster)
    return found


def _virtual_network(plan: HubPlan | NetworkPlan) -> int:
    """Return the writes of a virtual network with its subnets, security groups and NAT gateways."""
    return 1 + len(plan.subnets) + len(plan.security_groups) + NAT_GATEWAY * len(plan.nat_gateways)


def _in_cluster(cluster: ClusterPlan) -> int:
    """Return the writes in a cluster's own resource group."""
    members = len(cluster.etcd.members) + len(cluster.events_etcd.members)
    own_zone = ZONE + members + 1
    endpoints = ENDPOINT_ZONES * ZONE + PRIVATE_ENDPOINT * (len(cluster.vaults) + 1)
    balancers = 1 + (cluster.ingress is not None)
    into_hub = (cluster.network.peering_name is not None) + (cluster.api_servers.private_link_name is not None)
    return _virtual_network(cluster.network) + own_zone + endpoints + members + balancers + into_hub


def _in_hub(cluster: ClusterPlan) -> int:
    """Return the writes of a cluster in the hub: the API servers' DNS record, and the hub's side of the peering or a private endpoint."""
    return 1 + (cluster.network.hub_peering_name is not None) + (cluster.api_servers.endpoint_name is not None)


SPOT_FAMILY = "lowPriorityCores"
"""The family under which Azure counts all spot vCPUs, apart from every other: https://learn.microsoft.com/azure/quotas/spot-quota"""
ALL_FAMILIES = "cores"
"""The family under which Azure counts the vCPUs of all families but spot's: https://learn.microsoft.com/azure/quotas/regional-quota-requests"""
GATEWAY_ADDRESSES = 1
IN_LOCATION = (
    azure_limits.MACHINES,
    azure_limits.INTERFACES,
    azure_limits.SCALE_SETS,
    azure_limits.PUBLIC_ADDRESSES,
    azure_limits.VNETS,
    azure_limits.SECURITY_GROUPS,
    azure_limits.INSTANCE_CALLS,
    azure_limits.GALLERIES,
    azure_limits.IMAGE_DEFINITIONS,
    azure_limits.IMAGE_VERSIONS,
)
"""Limits that Azure counts by subscription and location."""
ANYWHERE = (azure_limits.RESOURCE_GROUPS,)
"""Limits that Azure counts by subscription over all locations."""

Uses = Counter[tuple[str, Limit]]
"""Use by subscription and limit."""


@dataclass(frozen=True)
class DeclaredQuota:
    """One quota of a region file: the region, the index in its quotas, and the granted vCPUs."""

    region: str
    index: int
    vcpus: int


def subscription_rows(plan: RegionPlan, siblings: Sequence[RegionPlan]) -> Iterator[LimitRow]:
    """Yield the rows of each subscription of the region, counted over the region and its siblings, the plans of other regions.

    Limits of one update, such as a burst of creates, count the region alone.
    """
    here = [sibling for sibling in siblings if sibling.spec.location == plan.spec.location]
    own, burst, anywhere = uses(plan), _burst(plan), {sibling.name: uses(sibling) for sibling in siblings}
    in_location = {sibling.name: anywhere[sibling.name] for sibling in here}
    for subscription in dict.fromkeys(subscription for subscription, _ in own):
        for limits, others in ((IN_LOCATION, in_location), (ANYWHERE, anywhere)):
            for limit in limits:
                yield _summed(limit, subscription, own, others, plan)
        if subscription in burst:
            yield compare(azure_limits.SET_CREATES, subscription_label(subscription), burst[subscription])
    for (stack, subscription), writes in network_writes(plan).items():
        yield compare(azure_limits.NETWORK_WRITES, f"{subscription_label(subscription)}, update of {stack}", writes)
    yield from _vcpu_rows(plan, here)


def subscription_label(subscription: str, family: str = "", others: Iterable[str] = ()) -> str:
    """Return the label of a subscription in rows: its first digits, a VM family, and the other regions that are counted too."""
    names = ", ".join(sorted(others))
    return f"subscription {subscription[:8]}{f'/{family}' if family else ''}{f', with {names}' if names else ''}"


def _summed(limit: Limit, subscription: str, own: Uses, siblings: Mapping[str, Uses], plan: RegionPlan) -> LimitRow:
    """Return the row of a subscription's limit over the region and its siblings; siblings maps names to uses."""
    shared = {name: used[subscription, limit] for name, used in siblings.items() if used[subscription, limit]}
    remedy = _calls_remedy(subscription, plan, shared) if limit is azure_limits.INSTANCE_CALLS else ""
    where = subscription_label(subscription, others=shared)
    return compare(limit, where, own[subscription, limit] + sum(shared.values()), remedy=remedy)


def _calls_remedy(subscription: str, plan: RegionPlan, shared: Mapping[str, int]) -> str:
    """Return the remedy for too many instance operations: the calls per minute that each cluster of the region may have beside others."""
    most = int(azure_limits.INSTANCE_CALLS.bound or 0)
    names = [cluster.name for cluster in plan.clusters if cluster.subscription == subscription]
    each = (most - sum(shared.values())) // max(len(names), 1)
    if each < 1:
        return f"lower rotation.azure_calls_per_minute in {', '.join(sorted((plan.name, *shared)))}, to {most} in total"
    return f"write at most azure_calls_per_minute: {each} under rotation of {', '.join(names)}"


def uses(plan: RegionPlan) -> Uses:
    """Return the uses of one region by subscription and limit; the hub's subscription comes first."""
    found: Uses = Counter()
    hub = plan.spec.subscription
    found[hub, azure_limits.VNETS] = found[hub, azure_limits.RESOURCE_GROUPS] = found[hub, azure_limits.GALLERIES] = 1
    found[hub, azure_limits.SECURITY_GROUPS] = len(plan.hub.security_groups)
    found[hub, azure_limits.PUBLIC_ADDRESSES] = GATEWAY_ADDRESSES + sum(gateway.public_addresses for gateway in plan.hub.nat_gateways)
    found[hub, azure_limits.IMAGE_DEFINITIONS] = len({image.definition.name for image in plan.gallery.images})
    found[hub, azure_limits.IMAGE_VERSIONS] = len(plan.gallery.images)
    for cluster in plan.clusters:
        for limit, use in _of_cluster(cluster).items():
            found[cluster.subscription, limit] += use
    for subscription in {cluster.subscription for cluster in plan.clusters}:
        found[subscription, azure_limits.INSTANCE_CALLS] = _instance_calls(plan, subscription)
    return found


def _instance_calls(plan: RegionPlan, subscription: str) -> int:
    """Return the calls per minute of the region's rotating clusters, if they are those of the subscription with the most calls."""
    calls = (cluster.spec.rotation.azure_calls_per_minute for cluster in plan.clusters if cluster.subscription == subscription)
    return sum(sorted(calls, reverse=True)[: plan.spec.clusters_rotating_at_once])


def _of_cluster(cluster: ClusterPlan) -> dict[Limit, int]:
    """Return the uses of one cluster by limit."""
    machines = cluster.nodes + len(cluster.etcd.members) + len(cluster.events_etcd.members) + cluster.api_servers.count
    return {
        azure_limits.MACHINES: machines,
        azure_limits.INTERFACES: machines,
        azure_limits.SCALE_SETS: 1 + sum(len(pool.scale_sets) for pool in cluster.pools),
        azure_limits.PUBLIC_ADDRESSES: sum(gateway.public_addresses for gateway in cluster.network.nat_gateways),
        azure_limits.VNETS: 1,
        azure_limits.SECURITY_GROUPS: len(cluster.network.security_groups),
        azure_limits.RESOURCE_GROUPS: 1,
    }


def _burst(plan: RegionPlan) -> Counter[str]:
    """Return the number of scale sets that one update of the region creates in parallel, by subscription."""
    found: Counter[str] = Counter()
    for cluster in plan.clusters:
        side_by_side = (min(len(pool.scale_sets), concurrent_sets(pool.spec, pool.machines_per_set)) for pool in cluster.pools)
        found[cluster.subscription] += 1 + sum(side_by_side)
    return found


def _vcpu_rows(plan: RegionPlan, siblings: Sequence[RegionPlan]) -> Iterator[LimitRow]:
    """Yield the rows of vCPUs by subscription and family, and of all families together, with the quotas from region files as bounds.

    A use without a declared quota has no bound. If files declare different quotas of one family, the lowest applies.
    """
    granted = quotas(plan, siblings)
    shared = {sibling.name: _with_totals(vcpus(sibling)) for sibling in siblings}
    for (subscription, family), own in sorted(_with_totals(vcpus(plan)).items()):
        others = {name: used[subscription, family] for name, used in shared.items() if used[subscription, family]}
        limit = azure_limits.REGIONAL_VCPUS if family == ALL_FAMILIES else azure_limits.VCPUS
        where = subscription_label(subscription, family, others)
        declared = granted.get((subscription, family), ())
        bound = min((one.vcpus for one in declared), default=None)
        use = own + sum(others.values())
        reason, remedy = _different(declared, use) if len({one.vcpus for one in declared}) > 1 else ("", _quota_remedy(family, use))
        yield compare(limit, where, use, bound, reason, remedy)


def quotas(plan: RegionPlan, siblings: Sequence[RegionPlan]) -> dict[tuple[str, str], tuple[DeclaredQuota, ...]]:
    """Return the declared quotas by subscription and family: those of the region, and those of its siblings in the same location."""
    found: dict[tuple[str, str], tuple[DeclaredQuota, ...]] = {}
    for declaring in (plan, *(sibling for sibling in siblings if sibling.spec.location == plan.spec.location)):
        for index, quota in enumerate(declaring.spec.quotas):
            named = (quota.subscription or declaring.spec.subscription, quota.family)
            found[named] = (*found.get(named, ()), DeclaredQuota(declaring.name, index, quota.vcpus))
    return found


def _quota_remedy(family: str, use: int) -> str:
    """Return the remedy for an exceeded quota: the vCPUs to request from Azure, and to write after the grant."""
    return f"request {use:,} vCPUs (az quota update, resource {family}), then write quotas: {{family: {family}, vcpus: {use}}}"


def _different(declared: Iterable[DeclaredQuota], use: int) -> tuple[str, str]:
    """Return reason and remedy of an exceeded quota that region files declare differently; use is in vCPUs."""
    values = ", and ".join(f"{one.region}.yaml declares {one.vcpus:,}" for one in declared)
    remedy = f"write in all of them what Azure has granted (az vm list-usage); if that is less than {use:,}, request {use:,}"
    return f"{values}; the lowest counts", remedy


def _with_totals(used: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Return vCPUs by subscription and family, with the sum over each subscription's regular families added."""
    found = Counter(used)
    for (subscription, family), count in used.items():
        if family != SPOT_FAMILY:
            found[subscription, ALL_FAMILIES] += count
    return found


def vcpus(plan: RegionPlan) -> Counter[tuple[str, str]]:
    """Return the vCPUs of one region by subscription and VM family."""
    used: Counter[tuple[str, str]] = Counter()
    for cluster in plan.clusters:
        plane: tuple[tuple[VmSize, int], ...] = (
            (cluster.api_servers.size, cluster.api_servers.count),
            *((etcd.size, len(etcd.members)) for etcd in (cluster.etcd, cluster.events_etcd)),
        )
        for size, count in plane:
            used[cluster.subscription, size.family] += size.vcpus * count
        for pool in cluster.pools:
            family = SPOT_FAMILY if pool.spec.capacity is Capacity.SPOT else pool.size.family
            used[cluster.subscription, family] += pool.size.vcpus * pool.spec.nodes
    return used

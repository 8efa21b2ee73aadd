"""Comparison of a region's plan with all limits: one row per limit and scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from components.errors import GpufleetError
from components.plan import addresses, azure_limits, cluster_limits
from components.plan.control_plane import EVENTS_PER_NODE_BYTES, STORE_HEADROOM, STORE_PER_NODE_BYTES
from components.plan.limit import Limit, LimitRow, amount, compare
from components.plan.model import INGRESS_PORTS, ClusterPlan, EtcdPlan, NatGatewayPlan, NetworkPlan, PoolPlan, RegionPlan
from components.plan.pools import set_bound
from components.plan.subscription_limits import subscription_rows
from components.plan.vm_sizes import GIB
from components.spec.cluster import Connectivity
from components.spec.pool import NODE_SUBNET_SLOTS, Interconnect, Zone

__all__ = ["HUB_ADDRESSES", "LimitRow", "LimitsExceededError", "amount", "broken", "check", "raise_if_broken"]

HUB_ADDRESSES = 8
"""Addresses in the hub besides private endpoints: gateway instances, resolver and a runner."""
MOST_ETCD_MEMBERS = 7
ZONES = len(Zone)
NAT_CONNECTIONS = 2_000_000
"""Connections of one NAT gateway to all destinations together: cluster_limits.NAT."""
NAT_DESTINATION_CONNECTIONS = 50_000
"""Connections of one public address of a NAT gateway to one destination: cluster_limits.NAT."""
NAT_MEGABITS_PER_SECOND = 50_000
"""Throughput of one NAT gateway, both directions together: cluster_limits.NAT."""


class LimitsExceededError(GpufleetError):
    """A plan that breaks limits; its text is one line per breach."""

    exit_status = 1

    def __init__(self, rows: tuple[LimitRow, ...]) -> None:
        self.rows = rows
        super().__init__("\n".join(row.sentence() for row in rows))


def check(plan: RegionPlan, siblings: Sequence[RegionPlan] = ()) -> tuple[LimitRow, ...]:
    """Return all rows of a plan: clusters in order, then subscriptions, then the region.

    siblings are the plans of other regions: their use of the plan's subscriptions counts too, and `where` names them.
    """
    return tuple(_rows(plan, siblings))


def broken(plan: RegionPlan, siblings: Sequence[RegionPlan] = ()) -> tuple[LimitRow, ...]:
    """Return the rows of broken limits."""
    return tuple(item for item in check(plan, siblings) if item.broken)


def raise_if_broken(plan: RegionPlan, siblings: Sequence[RegionPlan] = ()) -> None:
    """Raise LimitsExceededError if the plan breaks a limit."""
    rows = broken(plan, siblings)
    if rows:
        raise LimitsExceededError(rows)


def _rows(plan: RegionPlan, siblings: Sequence[RegionPlan]) -> Iterator[LimitRow]:
    for cluster in plan.clusters:
        yield from _cluster(cluster)
        for pool in cluster.pools:
            yield from _pool(f"{cluster.name}/{pool.name}", cluster, pool)
        for etcd in (cluster.etcd, cluster.events_etcd):
            yield from _etcd(f"{cluster.name}/{etcd.role}", cluster, etcd)
    yield from subscription_rows(plan, siblings)
    yield from _region(plan)


def _cluster(cluster: ClusterPlan) -> Iterator[LimitRow]:
    """Yield the rows of one cluster and its network."""
    where, network = cluster.name, cluster.network
    pods = sum(pool.spec.nodes * pool.spec.pods_per_node for pool in cluster.pools)
    servers = cluster.api_servers
    yield compare(cluster_limits.NODES, where, cluster.nodes)
    yield compare(cluster_limits.PODS, where, pods)
    yield compare(azure_limits.VNET_ADDRESSES, where, cluster.private_addresses)
    yield compare(azure_limits.SUBNETS, where, len(network.subnets))
    yield compare(azure_limits.SECURITY_RULES, where, max(len(group.rules) for group in network.security_groups))
    yield compare(cluster_limits.API_MEMORY, where, round(servers.memory_needed_bytes / GIB, 1), servers.size.memory_gib)
    yield compare(azure_limits.BACKENDS, f"{where}/api-servers", servers.count)
    yield compare(
        azure_limits.SUBNET_ADDRESSES, f"{where}/api", servers.count + 1, addresses.usable(addresses.Network(network.subnet("api").cidr))
    )
    if cluster.ingress:
        yield compare(azure_limits.BACKENDS, f"{where}/ingress", cluster.ingress.machines)
        yield compare(azure_limits.BACKEND_RULES, f"{where}/ingress", cluster.ingress.machines * len(INGRESS_PORTS))
    yield compare(azure_limits.NAT_ADDRESSES, where, max(gateway.public_addresses for gateway in network.nat_gateways))
    yield from _egress(where, network)


def _egress(where: str, network: NetworkPlan) -> Iterator[LimitRow]:
    """Yield the smallest share of a machine in its NAT gateway, if the gateway's maximum number of machines use it at the same time."""
    shares: tuple[tuple[Limit, Callable[[NatGatewayPlan], int]], ...] = (
        (cluster_limits.SNAT_PORTS, lambda gateway: gateway.snat_ports_per_machine),
        (
            cluster_limits.NAT_DESTINATION_CONNECTIONS,
            lambda gateway: gateway.public_addresses * NAT_DESTINATION_CONNECTIONS // max(gateway.machines, 1),
        ),
        (cluster_limits.NAT_CONNECTIONS, lambda gateway: NAT_CONNECTIONS // max(gateway.machines, 1)),
        (cluster_limits.NAT_THROUGHPUT, lambda gateway: NAT_MEGABITS_PER_SECOND // max(gateway.machines, 1)),
    )
    for limit, share in shares:
        fewest = min(network.nat_gateways, key=share)
        yield compare(limit, f"{where}/{fewest.role}", share(fewest))


def _pool(where: str, cluster: ClusterPlan, pool: PoolPlan) -> Iterator[LimitRow]:
    """Yield the rows of one pool: scale sets, addresses, gangs and allocations."""
    spec = pool.spec
    bound, reason = set_bound(spec.interconnect, pool.image.definition.store)
    usable = addresses.usable(addresses.Network(f"10.0.0.0/{addresses.NODE_SUBNET_LENGTH}"))
    yield compare(cluster_limits.PODS_PER_NODE, where, spec.pods_per_node)
    yield compare(azure_limits.NIC_ADDRESSES, where, pool.addresses_per_machine)
    yield _node_subnets(where, cluster, pool)
    yield compare(azure_limits.SUBNET_ADDRESSES, where, min(pool.machines_per_subnet, spec.nodes) * pool.addresses_per_machine, usable)
    yield compare(azure_limits.SET_SIZE, where, spec.machines_per_set or pool.machines_per_set, bound, reason)
    if spec.interconnect is Interconnect.INFINIBAND and spec.largest_gang:
        yield compare(cluster_limits.GANG, where, spec.largest_gang, min(pool.machines_per_set, bound))
    allocated = sum(item.nodes for item in cluster.spec.tenancy.allocations if item.pool == spec.name)
    if allocated:
        yield compare(cluster_limits.ALLOCATED, where, allocated, spec.nodes)


def _node_subnets(where: str, cluster: ClusterPlan, pool: PoolPlan) -> LimitRow:
    """Return the row of a pool's last slot; the remedy is the lowest run of slots that is free for the pool, if there is one."""
    last, length = _slot(pool.subnet_roles[-1]), len(pool.subnet_roles)
    used = {_slot(role) for other in cluster.pools if other is not pool for role in other.subnet_roles}
    free = addresses.free_slot(length, used)
    remedy = f"give the pool slot {free}, or lower its nodes" if free is not None and last >= NODE_SUBNET_SLOTS else ""
    return compare(cluster_limits.NODE_SUBNETS, where, last, remedy=remedy)


def _slot(role: str) -> int:
    """Return the slot of a node subnet's role."""
    return int(role.removeprefix("nodes-"))


def _etcd(where: str, cluster: ClusterPlan, etcd: EtcdPlan) -> Iterator[LimitRow]:
    """Yield the rows of one etcd cluster."""
    plane = cluster.spec.control_plane
    group = plane.etcd if etcd.role == "etcd" else plane.events_etcd
    count, zones = group.count, group.zones
    odd = count if count % 2 else count - 1
    yield compare(cluster_limits.ETCD_MEMBERS, where, count, min(MOST_ETCD_MEMBERS, odd))
    if count > 1:
        in_one = max(Counter(member.zone for member in etcd.members).values())
        yield compare(cluster_limits.ETCD_ZONE, where, in_one, (count - 1) // 2, remedy=_zone_remedy(count, len(zones)))
    per_node = STORE_PER_NODE_BYTES if etcd.role == "etcd" else EVENTS_PER_NODE_BYTES
    yield compare(cluster_limits.ETCD_STORE, where, round(cluster.nodes * per_node * STORE_HEADROOM / GIB, 2))
    yield compare(cluster_limits.ETCD_DISK, where, round(etcd.data_bytes_needed / GIB, 1), etcd.size.local_nvme_gib)


def _zone_remedy(count: int, zones: int) -> str:
    """Return the remedy by which an etcd cluster survives the loss of any zone: an odd number of members, from three, over three zones."""
    if zones < ZONES:
        return f"name all {ZONES} zones{'' if count % 2 else ', and use an odd number of members'}"
    return "use an odd number of members; over three zones an even number loses its quorum with the fullest zone"


def _region(plan: RegionPlan) -> Iterator[LimitRow]:
    """Yield the rows of the hub's peered group and of the image versions."""
    peered = [cluster for cluster in plan.clusters if cluster.connectivity is Connectivity.PEERING]
    linked = len(plan.clusters) - len(peered)
    yield compare(
        azure_limits.PEERED_ADDRESSES, f"{plan.name}/hub", HUB_ADDRESSES + linked + sum(cluster.private_addresses for cluster in peered)
    )
    yield compare(azure_limits.PEERINGS, f"{plan.name}/hub", len(peered))
    for image in plan.gallery.images:
        yield compare(azure_limits.REPLICAS, f"{plan.name}/{image.pin}", image.replicas)

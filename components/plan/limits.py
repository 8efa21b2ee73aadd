"""Which limits a plan comes near or breaks: one row for each limit and each place where it applies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from components.plan import addresses, azure_limits, cluster_limits
from components.plan.control_plane import EVENTS_PER_NODE_BYTES, STORE_HEADROOM, STORE_PER_NODE_BYTES
from components.plan.limit import Limit
from components.plan.model import INGRESS_PORTS, ClusterPlan, EtcdPlan, PoolPlan, RegionPlan
from components.plan.pools import lanes, set_bound
from components.plan.vm_sizes import GIB, VmSize
from components.spec.cluster import Connectivity
from components.spec.pool import Capacity, Interconnect

SPOT_FAMILY = "lowPriorityCores"
"""The family under which Azure counts all spot vCPUs: https://learn.microsoft.com/azure/virtual-machines/quotas"""
HUB_ADDRESSES = 8
"""Addresses in the hub besides private endpoints: gateway instances, resolver and a runner."""
MOST_ETCD_MEMBERS = 7
GATEWAY_ADDRESSES = 1


@dataclass(frozen=True)
class Row:
    """The use of one limit in one place.

    use and bound are in unit; bound is None where nobody has declared it; headroom is the unused share of the bound, negative when broken,
    None for a rule that is kept and for a use without bound; at_least marks a bound that the use must reach.
    """

    limit: str
    where: str
    use: float
    bound: float | None
    unit: str
    source: str
    reason: str
    remedy: str
    broken: bool
    headroom: float | None
    at_least: bool = False

    def sentence(self) -> str:
        """One line for a person: where, value, bound, reason and remedy."""
        bound = "no declared bound" if self.bound is None else f"the bound of {amount(self.bound)}"
        side = "is under" if self.bound is not None and self.use < self.bound else "is over"
        return f"{self.where}: {self.limit}: {amount(self.use)} {self.unit} {side} {bound}: {self.reason}; {self.remedy}"


def amount(value: float) -> str:
    """A number for a person: thousands separated, at most two decimals."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0")


class LimitsBroken(Exception):
    """A plan that breaks limits; its text is one line per breach."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        super().__init__("\n".join(row.sentence() for row in rows))


def row(limit: Limit, where: str, use: float, bound: float | None = None, reason: str = "") -> Row:
    """Compare a use with a limit; bound and reason stand in where the table leaves them open."""
    limited = limit.bound if limit.bound is not None else bound
    broken, headroom = False, None
    if limited is not None:
        small, large = (limited, use) if limit.at_least else (use, limited)
        broken = small > large
        headroom = None if limit.rule and not broken else 1 - small / large if large else float(small == 0) - 1
    return Row(
        limit.name, where, use, limited, limit.unit, limit.source, reason or limit.reason, limit.remedy, broken, headroom, limit.at_least
    )


def check(plan: RegionPlan) -> tuple[Row, ...]:
    """All rows of a plan: clusters in order, then subscriptions, then the region."""
    return tuple(_rows(plan))


def broken(plan: RegionPlan) -> tuple[Row, ...]:
    """The rows of broken limits."""
    return tuple(item for item in check(plan) if item.broken)


def refuse_broken(plan: RegionPlan) -> None:
    """Raise LimitsBroken if the plan breaks a limit, so that nothing is created from it."""
    rows = broken(plan)
    if rows:
        raise LimitsBroken(rows)


def _rows(plan: RegionPlan) -> Iterator[Row]:
    for cluster in plan.clusters:
        yield from _cluster(cluster)
        for pool in cluster.pools:
            yield from _pool(f"{cluster.name}/{pool.name}", cluster, pool)
        for ring in (cluster.etcd, cluster.events_etcd):
            yield from _etcd(f"{cluster.name}/{ring.role}", cluster, ring)
    yield from _subscriptions(plan)
    yield from _region(plan)


def _cluster(cluster: ClusterPlan) -> Iterator[Row]:
    """Limits of one cluster and its network."""
    where, network = cluster.name, cluster.network
    pods = sum(pool.spec.nodes * pool.spec.pods_per_node for pool in cluster.pools)
    servers = cluster.api_servers
    yield row(cluster_limits.NODES, where, cluster.nodes)
    yield row(cluster_limits.PODS, where, pods)
    yield row(azure_limits.VNET_ADDRESSES, where, cluster.private_addresses)
    yield row(azure_limits.SUBNETS, where, len(network.subnets))
    yield row(azure_limits.SECURITY_RULES, where, max(len(group.rules) for group in network.security_groups))
    yield row(cluster_limits.API_MEMORY, where, round(servers.memory_needed_bytes / GIB, 1), servers.size.memory_gib)
    yield row(azure_limits.BACKENDS, f"{where}/api-servers", servers.count)
    yield row(
        azure_limits.SUBNET_ADDRESSES, f"{where}/api", servers.count + 1, addresses.usable(addresses.Network(network.subnet("api").cidr))
    )
    if cluster.ingress:
        yield row(azure_limits.BACKENDS, f"{where}/ingress", cluster.ingress.machines)
        yield row(azure_limits.BACKEND_RULES, f"{where}/ingress", cluster.ingress.machines * len(INGRESS_PORTS))
    fewest = min(network.nat_gateways, key=lambda gateway: gateway.snat_ports_per_machine)
    yield row(azure_limits.NAT_ADDRESSES, where, max(gateway.public_addresses for gateway in network.nat_gateways))
    yield row(cluster_limits.SNAT_PORTS, f"{where}/{fewest.role}", fewest.snat_ports_per_machine)


def _pool(where: str, cluster: ClusterPlan, pool: PoolPlan) -> Iterator[Row]:
    """Limits of one pool: its sets, its addresses, its gangs and its promises."""
    spec = pool.spec
    bound, reason = set_bound(spec.interconnect, pool.image.definition.store)
    usable = addresses.usable(addresses.Network(f"10.0.0.0/{addresses.NODE_SUBNET_LENGTH}"))
    yield row(cluster_limits.PODS_PER_NODE, where, spec.pods_per_node)
    yield row(azure_limits.NIC_ADDRESSES, where, pool.addresses_per_machine)
    yield row(cluster_limits.NODE_SUBNETS, where, int(pool.subnet_roles[-1].removeprefix("nodes-")))
    yield row(azure_limits.SUBNET_ADDRESSES, where, min(pool.machines_per_subnet, spec.nodes) * pool.addresses_per_machine, usable)
    yield row(azure_limits.SET_SIZE, where, spec.machines_per_set or pool.machines_per_set, bound, reason)
    if spec.interconnect is Interconnect.INFINIBAND and spec.largest_gang:
        yield row(cluster_limits.GANG, where, spec.largest_gang, min(pool.machines_per_set, bound))
    promised = sum(item.nodes for item in cluster.spec.tenancy.allocations if item.pool == spec.name)
    if promised:
        yield row(cluster_limits.ALLOCATED, where, promised, spec.nodes)


def _etcd(where: str, cluster: ClusterPlan, ring: EtcdPlan) -> Iterator[Row]:
    """Limits of one etcd ring."""
    plane = cluster.spec.control_plane
    count = (plane.etcd if ring.role == "etcd" else plane.events_etcd).count
    odd = count if count % 2 else count - 1
    yield row(cluster_limits.ETCD_MEMBERS, where, count, min(MOST_ETCD_MEMBERS, odd))
    if count > 1:
        yield row(cluster_limits.ETCD_ZONE, where, max(Counter(member.zone for member in ring.members).values()), (count - 1) // 2)
    per_node = STORE_PER_NODE_BYTES if ring.role == "etcd" else EVENTS_PER_NODE_BYTES
    yield row(cluster_limits.ETCD_STORE, where, round(cluster.nodes * per_node * STORE_HEADROOM / GIB, 2))
    yield row(cluster_limits.ETCD_DISK, where, round(ring.data_bytes_needed / GIB, 1), ring.size.local_nvme_gib)


@dataclass
class _Use:
    """What one subscription is used for."""

    machines: int = 0
    sets: int = 0
    burst: int = 0
    public: int = 0
    networks: int = 0
    groups: int = 0
    resource_groups: int = 0
    calls: int = 0


def _subscriptions(plan: RegionPlan) -> Iterator[Row]:
    """Limits of each subscription in the region."""
    uses: dict[str, _Use] = defaultdict(_Use)
    hub = uses[plan.spec.subscription]
    hub.networks, hub.groups, hub.resource_groups = 1, len(plan.hub.security_groups), 1
    hub.public = GATEWAY_ADDRESSES + sum(gateway.public_addresses for gateway in plan.hub.nat_gateways)
    for cluster in plan.clusters:
        use = uses[cluster.subscription]
        pools = cluster.pools
        use.machines += cluster.nodes + len(cluster.etcd.members) + len(cluster.events_etcd.members) + cluster.api_servers.count
        use.sets += 1 + sum(len(pool.scale_sets) for pool in pools)
        use.burst += 1 + sum(min(len(pool.scale_sets), lanes(pool.spec, pool.machines_per_set)) for pool in pools)
        use.public += sum(gateway.public_addresses for gateway in cluster.network.nat_gateways)
        use.networks += 1
        use.groups += len(cluster.network.security_groups)
        use.resource_groups += 1
        use.calls += cluster.spec.rotation.azure_calls_per_minute
    for subscription, use in uses.items():
        where = f"subscription {subscription[:8]}"
        yield row(azure_limits.MACHINES, where, use.machines)
        yield row(azure_limits.INTERFACES, where, use.machines)
        yield row(azure_limits.SCALE_SETS, where, use.sets)
        yield row(azure_limits.SET_CREATES, where, use.burst)
        yield row(azure_limits.PUBLIC_ADDRESSES, where, use.public)
        yield row(azure_limits.VNETS, where, use.networks)
        yield row(azure_limits.SECURITY_GROUPS, where, use.groups)
        yield row(azure_limits.RESOURCE_GROUPS, where, use.resource_groups)
        yield row(azure_limits.INSTANCE_CALLS, where, use.calls)
    yield from _vcpus(plan)


def _vcpus(plan: RegionPlan) -> Iterator[Row]:
    """vCPUs by subscription and family against what the region file says was granted; families without a declaration have no bound."""
    used: Counter[tuple[str, str]] = Counter()
    for cluster in plan.clusters:
        plane: tuple[tuple[VmSize, int], ...] = (
            (cluster.api_servers.size, cluster.api_servers.count),
            *((ring.size, len(ring.members)) for ring in (cluster.etcd, cluster.events_etcd)),
        )
        for size, count in plane:
            used[cluster.subscription, size.family] += size.vcpus * count
        for pool in cluster.pools:
            family = SPOT_FAMILY if pool.spec.capacity is Capacity.SPOT else pool.size.family
            used[cluster.subscription, family] += pool.size.vcpus * pool.spec.nodes
    granted = {(quota.subscription or plan.spec.subscription, quota.family): quota.vcpus for quota in plan.spec.quotas}
    for (subscription, family), vcpus in sorted(used.items()):
        yield row(azure_limits.VCPUS, f"subscription {subscription[:8]}/{family}", vcpus, granted.get((subscription, family)))


def _region(plan: RegionPlan) -> Iterator[Row]:
    """Limits of the hub's peered group and of the gallery."""
    peered = [cluster for cluster in plan.clusters if cluster.connectivity is Connectivity.PEERING]
    linked = len(plan.clusters) - len(peered)
    yield row(
        azure_limits.PEERED_ADDRESSES, f"{plan.name}/hub", HUB_ADDRESSES + linked + sum(cluster.private_addresses for cluster in peered)
    )
    yield row(azure_limits.PEERINGS, f"{plan.name}/hub", len(peered))
    for image in plan.gallery.images:
        yield row(azure_limits.REPLICAS, f"{plan.name}/{image.pin}", image.replicas)
    yield row(azure_limits.IMAGE_DEFINITIONS, f"{plan.name}/gallery", len({image.definition.name for image in plan.gallery.images}))
    yield row(azure_limits.IMAGE_VERSIONS, f"{plan.name}/gallery", len(plan.gallery.images))

"""Rows of the report's tables: machines with their cost, and registered resources by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from components.plan.model import ClusterPlan, RegionPlan
from components.plan.vm_sizes import VmSize
from rehearsal.program.graph import Graph

FAMILIES = {"azure-native": "Azure", "kubernetes": "Kubernetes", "gpufleet": "Components", "pulumi": "Pulumi", "pulumi-python": "Pulumi"}
CONTROL_PLANE = "control plane"


@dataclass(frozen=True)
class MachineRow:
    """Machines of one pool or control-plane role; usd_per_hour is for all of them, None where the size has no list price."""

    cluster: str
    role: str
    size: VmSize
    note: str
    machines: int

    @property
    def gpus(self) -> int:
        """Return the GPUs of all machines."""
        return self.machines * self.size.gpus

    @property
    def vcpus(self) -> int:
        """Return the vCPUs of all machines."""
        return self.machines * self.size.vcpus

    @property
    def usd_per_hour(self) -> float | None:
        """Return the list price of all machines, in dollars per hour."""
        return None if self.size.usd_per_hour is None else self.machines * self.size.usd_per_hour


@dataclass(frozen=True)
class MachineTotals:
    """Sums over machine rows; unpriced counts machines whose size has no list price, gpus_by_model GPUs by name."""

    machines: int
    gpus: int
    vcpus: int
    usd_per_hour: float
    unpriced: int
    gpus_by_model: tuple[tuple[str, int], ...]


def machine_rows(plan: RegionPlan) -> tuple[MachineRow, ...]:
    """Return a row for every pool and every control-plane role of the region."""
    return tuple(row for cluster in plan.clusters for row in (*_pools(cluster), *_control_plane(cluster)))


def _pools(cluster: ClusterPlan) -> Iterable[MachineRow]:
    for pool in cluster.pools:
        yield MachineRow(cluster.name, pool.name, pool.size, f"zone {pool.spec.zone.value}, {pool.spec.capacity.value}", pool.spec.nodes)


def _control_plane(cluster: ClusterPlan) -> Iterable[MachineRow]:
    servers = cluster.api_servers
    yield MachineRow(cluster.name, "API servers", servers.size, CONTROL_PLANE, servers.count)
    for etcd in (cluster.etcd, cluster.events_etcd):
        yield MachineRow(cluster.name, f"{etcd.role} members", etcd.size, CONTROL_PLANE, len(etcd.members))


def totals(rows: Sequence[MachineRow]) -> MachineTotals:
    """Return the sums of rows."""
    models: Counter[str] = Counter()
    for row in rows:
        if row.size.gpus:
            models[row.size.gpu] += row.gpus
    return MachineTotals(
        machines=sum(row.machines for row in rows),
        gpus=sum(row.gpus for row in rows),
        vcpus=sum(row.vcpus for row in rows),
        usd_per_hour=sum(row.usd_per_hour or 0.0 for row in rows),
        unpriced=sum(row.machines for row in rows if row.usd_per_hour is None),
        gpus_by_model=tuple(models.most_common()),
    )


@dataclass(frozen=True)
class TypeRow:
    """Number of resources of one type in the base stack and in the region's stack."""

    name: str
    base: int
    region: int

    @property
    def total(self) -> int:
        """Return the number of resources of the type in both stacks."""
        return self.base + self.region


def type_rows(base: Graph, clusters: Graph) -> dict[str, tuple[TypeRow, ...]]:
    """Return the rows of resource types by provider; the most frequent type is first."""
    counts = [Counter(resource.type for resource in graph) for graph in (base, clusters)]
    groups: dict[str, list[TypeRow]] = {}
    for name in sorted({*counts[0], *counts[1]}):
        provider, _, short = name.partition(":")
        groups.setdefault(FAMILIES.get(provider, provider), []).append(TypeRow(short, counts[0][name], counts[1][name]))
    return {family: tuple(sorted(rows, key=lambda row: (-row.total, row.name))) for family, rows in groups.items()}

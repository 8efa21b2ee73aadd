"""Size of a cluster that is run with a real control plane, and the memory that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.errors import GpufleetError
from components.plan.model import ClusterPlan, RegionPlan

MIB, GIB = 2**20, 2**30
SERVER_MIB = 750
"""An idle API server with its controller manager, scheduler and approver, measured on two cores."""
MEMBER_MIB = 60
"""An idle etcd member, measured on two cores."""
NODE_MIB = 0.4
"""Memory per node with its DaemonSets' pods in each API server: 2.9 GiB at 7,500 nodes with a pod each, measured on two cores."""
NODE_ELSEWHERE_MIB = 0.25
"""Memory per node in controller manager, scheduler, kwok and etcd together, measured in the same way."""
JOINING_MIB = 0.3
JOINING_AT_ONCE = 1_500
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


class ClusterSizeError(GpufleetError):
    """The requested cluster cannot run here; the text contains value, bound, reason and remedy."""


@dataclass(frozen=True)
class ClusterSize:
    """A cluster, and the numbers of its nodes and API servers to run."""

    cluster: ClusterPlan
    nodes: int
    api_servers: int

    @property
    def bytes_needed(self) -> int:
        """Return an estimate of the peak memory of all programs."""
        members = len(self.cluster.etcd.members) + len(self.cluster.events_etcd.members)
        servers = self.api_servers * (SERVER_MIB + self.nodes * NODE_MIB)
        rest = members * MEMBER_MIB + self.nodes * NODE_ELSEWHERE_MIB + min(self.nodes, JOINING_AT_ONCE) * JOINING_MIB
        return int((servers + rest) * MIB)


def requested_size(plan: RegionPlan, cluster: str | None, nodes: int | None, api_servers: int | None) -> ClusterSize:
    """Return the size to run, or raise ClusterSizeError; None means the smallest cluster, and the planned numbers."""
    chosen = _cluster(plan, cluster)
    return ClusterSize(
        chosen,
        _at_most(nodes, chosen.nodes, "--nodes", f"{chosen.name} has {chosen.nodes:,} nodes"),
        _at_most(api_servers, chosen.api_servers.count, "--api-servers", f"{chosen.name} has {chosen.api_servers.count} API servers"),
    )


def check_memory(size: ClusterSize, free: int | None = None) -> None:
    """Raise ClusterSizeError if the cluster needs more than the free memory in bytes."""
    room = free_bytes() if free is None else free
    if size.bytes_needed > room:
        need = f"{size.nodes:,} nodes and {size.api_servers} API servers need about {size.bytes_needed / GIB:.1f} GiB"
        raise ClusterSizeError(
            f"{size.cluster.name}: {need}, more than the {room / GIB:.1f} GiB of free memory;"
            " join fewer nodes with --nodes, or run fewer API servers with --api-servers"
        )


def free_bytes() -> int:
    """Return the memory in bytes that programs can still use: what the kernel reports, or less if a control group limits it."""
    lines = MEMORY.read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    limit, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if limit.is_file() and used.is_file() and (bound := limit.read_text().strip()) != "max":
        return min(available, int(bound) - int(used.read_text()))
    return available


def _cluster(plan: RegionPlan, name: str | None) -> ClusterPlan:
    if name is None:
        return min(plan.clusters, key=lambda one: one.nodes)
    for one in plan.clusters:
        if one.name == name:
            return one
    raise ClusterSizeError(f"--cluster {name}: {plan.name} has no such cluster; give one of {', '.join(one.name for one in plan.clusters)}")


def _at_most(requested: int | None, planned: int, option: str, bound: str) -> int:
    if requested is not None and not 1 <= requested <= planned:
        raise ClusterSizeError(f"{option} {requested}: {bound}; give a number from 1 to {planned}")
    return planned if requested is None else requested

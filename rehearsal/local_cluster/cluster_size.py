"""Decides which cluster of a region is run for real, with how many machines, and whether this machine has the memory for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.errors import GpufleetError
from components.plan.model import ClusterPlan, RegionPlan

MIB, GIB = 2**20, 2**30
SERVER_MIB = 750
"""An API server at rest with the controller manager, scheduler and approver beside it, measured on two cores."""
MEMBER_MIB = 60
"""An etcd member at rest, measured on two cores."""
NODE_MIB = 0.4
"""What a node with its DaemonSets' pods adds to each API server: at 7,500 nodes with a pod each it was 2.9 GiB, measured on two cores."""
NODE_ELSEWHERE_MIB = 0.25
"""What it adds to controller manager, scheduler, kwok and etcd together, measured the same way."""
JOINING_MIB = 0.3
JOINING_AT_ONCE = 1_500
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


class ClusterSizeError(GpufleetError):
    """What was asked for cannot be run here; the text says value, bound, reason and remedy."""


@dataclass(frozen=True)
class ClusterSize:
    """What is run: nodes and API servers of one cluster."""

    cluster: ClusterPlan
    nodes: int
    api_servers: int

    @property
    def bytes_needed(self) -> int:
        """Estimate of the memory of everything at its highest."""
        members = len(self.cluster.etcd.members) + len(self.cluster.events_etcd.members)
        servers = self.api_servers * (SERVER_MIB + self.nodes * NODE_MIB)
        rest = members * MEMBER_MIB + self.nodes * NODE_ELSEWHERE_MIB + min(self.nodes, JOINING_AT_ONCE) * JOINING_MIB
        return int((servers + rest) * MIB)


def wanted(plan: RegionPlan, cluster: str | None, nodes: int | None, api_servers: int | None) -> ClusterSize:
    """What is to be run, None standing for the smallest cluster and for as many as planned; RealRefused."""
    chosen = _chosen(plan, cluster)
    return ClusterSize(
        chosen,
        _at_most(nodes, chosen.nodes, "--nodes", f"{chosen.name} has {chosen.nodes:,} nodes"),
        _at_most(api_servers, chosen.api_servers.count, "--api-servers", f"{chosen.name} has {chosen.api_servers.count} API servers"),
    )


def check_memory(asked: ClusterSize, free: int | None = None) -> None:
    """RealRefused where the memory that is free, in bytes, does not take what is asked for."""
    room = free_bytes() if free is None else free
    if asked.bytes_needed > room:
        need = f"{asked.nodes:,} nodes and {asked.api_servers} API servers need about {asked.bytes_needed / GIB:.1f} GiB"
        raise ClusterSizeError(
            f"{asked.cluster.name}: {need}, more than the {room / GIB:.1f} GiB of memory that are free here;"
            " join fewer with --nodes, or run fewer with --api-servers"
        )


def free_bytes() -> int:
    """Memory that programs may still take: what the kernel says is available, less where a control group allows less."""
    lines = MEMORY.read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    most, used = CGROUP / "memory.max", CGROUP / "memory.current"
    if most.is_file() and used.is_file() and (bound := most.read_text().strip()) != "max":
        return min(available, int(bound) - int(used.read_text()))
    return available


def _chosen(plan: RegionPlan, name: str | None) -> ClusterPlan:
    if name is None:
        return min(plan.clusters, key=lambda one: one.nodes)
    for one in plan.clusters:
        if one.name == name:
            return one
    raise ClusterSizeError(f"--cluster {name}: {plan.name} has no such cluster; give one of {', '.join(one.name for one in plan.clusters)}")


def _at_most(asked: int | None, planned: int, option: str, bound: str) -> int:
    if asked is not None and not 1 <= asked <= planned:
        raise ClusterSizeError(f"{option} {asked}: {bound}; give a number from 1 to {planned}")
    return planned if asked is None else asked

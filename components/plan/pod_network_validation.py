"""Validation of a cluster's pod network against its pools, machines and teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from components.plan.cluster_limits import PODS_PER_NODE
from components.plan.invalid_value import InvalidValue, Path, Raw, nearest, whole_number
from components.plan.vm_sizes import VM_SIZES, VmSize
from components.spec.pod_network import MOST_MBIT, Cni, Internet

MOST_PODS_OF_AZURE_VNET = 150
"""Pods of a node that are created at the same time; with more, calls of azure-vnet time out on its lock:
https://github.com/Azure/azure-container-networking/issues/2817"""

MOST_PODS = int(PODS_PER_NODE.bound or 0)
"""Pods per node that Kubernetes is tested to; the limit's check refuses more."""


@dataclass(frozen=True)
class _Pool:
    """Relevant values of a raw pool; 0 or None if a value is missing or invalid."""

    path: Path
    name: str
    pods: int
    size: VmSize | None


def validate_pod_network(path: Path, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield the invalid values of the raw pod_network of a raw cluster at path."""
    network = cluster.get("pod_network")
    if not isinstance(network, Mapping):
        return
    pools = tuple(_pools(path, cluster))
    if network.get("cni") == Cni.AZURE_VNET.value:
        yield from _azure_vnet(pools)
    internet = network.get("internet")
    if isinstance(internet, Mapping):
        below = (*path, "pod_network", "internet")
        yield from _rates(below, internet, pools)
        yield from _weights(below, internet, cluster)


def _pools(path: Path, cluster: Raw) -> Iterator[_Pool]:
    items = cluster.get("pools")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping):
            size, pods = item.get("vm_size"), whole_number(item.get("pods_per_node"))
            yield _Pool((*path, "pools", index), str(item.get("name")), pods or 0, VM_SIZES.get(size) if isinstance(size, str) else None)


def _azure_vnet(pools: tuple[_Pool, ...]) -> Iterator[InvalidValue]:
    """Yield pools with more pods per node than Microsoft's plugins can create at the same time."""
    for pool in pools:
        if pool.pods > MOST_PODS_OF_AZURE_VNET:
            reason = f"is more pods than azure-vnet makes at once: beyond {MOST_PODS_OF_AZURE_VNET} its calls give up waiting for its lock"
            yield InvalidValue((*pool.path, "pods_per_node"), pool.pods, reason, f"use at most {MOST_PODS}, to which Kubernetes is tested")


def _rate(internet: Raw, key: str) -> int | None:
    """Return a rate of the raw mapping: the model's default if it is missing, None if it is no number."""
    return whole_number(internet[key]) if internet.get(key) is not None else Internet.model_fields[key].default


def _rates(path: Path, internet: Raw, pools: tuple[_Pool, ...]) -> Iterator[InvalidValue]:
    """Yield rates that conflict with each other, with the pools' pods or with their machines."""
    machine, floor, ceiling = (_rate(internet, key) for key in ("machine_mbit", "floor_mbit", "ceiling_mbit"))
    if machine is None or floor is None:
        return
    for pool in pools:
        rate = pool.size.network_mbit if pool.size else None
        if pool.size and rate and machine > rate:
            reason = f"is more than the {rate:,} Mbit/s of {pool.size.name} in pool {pool.name}"
            yield InvalidValue((*path, "machine_mbit"), machine, reason, f"use {rate} at most")
            break
    fullest = max(pools, key=lambda pool: pool.pods, default=None)
    if fullest and floor * fullest.pods > machine:
        reason = f"times {fullest.pods} pods of a machine of pool {fullest.name} is more than machine_mbit, {machine}"
        most = machine // fullest.pods
        fastest = min([MOST_MBIT, *(pool.size.network_mbit for pool in pools if pool.size and pool.size.network_mbit)])
        raised = f"raise machine_mbit to {floor * fullest.pods}" if floor * fullest.pods <= fastest else ""
        lowered = f"use {most} at most" if most else "" if raised else f"use 1, and raise machine_mbit to {fullest.pods}"
        remedy = ", or ".join(filter(None, (lowered, raised)))
        yield InvalidValue((*path, "floor_mbit"), floor, reason, remedy)
    if ceiling is not None and floor > ceiling:
        yield InvalidValue((*path, "ceiling_mbit"), ceiling, f"is less than floor_mbit, {floor}", "raise it, or lower floor_mbit")
    if ceiling is not None and ceiling > machine:
        reason = f"is more than machine_mbit, {machine}, which all pods of a machine share"
        yield InvalidValue((*path, "ceiling_mbit"), ceiling, reason, f"use {machine} at most, or raise machine_mbit")


def _weights(path: Path, internet: Raw, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield weights of teams that are not in the cluster."""
    tenancy, weights = cluster.get("tenancy"), internet.get("weights")
    teams = tenancy.get("teams") if isinstance(tenancy, Mapping) else None
    if not isinstance(weights, Mapping) or not isinstance(teams, list):
        return
    known = tuple(str(team.get("name")) for team in teams if isinstance(team, Mapping))
    for team in weights:
        if team not in known:
            yield InvalidValue((*path, "weights", team), team, "is no team of this cluster", nearest(team, known))

"""Boot files of one machine per role, cluster and region, for the tests in this folder."""

from __future__ import annotations

import re
from functools import cache

from components.boot.api_server import boot_api_server
from components.boot.etcd import boot_etcd
from components.boot.machine import MachineBoot
from components.boot.node import boot_nodes
from components.plan.model import ClusterPlan, RegionPlan
from stacks.load import load_plan

REGIONS = ("dev", "southcentralus", "swedencentral")


@cache
def regions() -> tuple[RegionPlan, ...]:
    """Plans of the three regions."""
    return tuple(load_plan(name) for name in REGIONS)


@cache
def machines() -> dict[str, MachineBoot]:
    """First machine of every kind, by region, cluster and kind: "dev/dev/etcd", "dev/dev/api", "dev/dev/gpu"."""
    return {
        f"{region.name}/{cluster.name}/{kind}": boot
        for region in regions()
        for cluster in region.clusters
        for kind, boot in _of_cluster(region, cluster).items()
    }


def _of_cluster(region: RegionPlan, cluster: ClusterPlan) -> dict[str, MachineBoot]:
    etcd_clusters = {ring.role: boot_etcd(cluster, ring, ring.members[0]) for ring in (cluster.etcd, cluster.events_etcd)}
    nodes = {pool.name: boot_nodes(region, cluster, pool)[0] for pool in cluster.pools}
    return {**etcd_clusters, "api": boot_api_server(region, cluster), **nodes}


@cache
def distinct() -> dict[str, MachineBoot]:
    """Of each region, one machine for each set of files and units: those that differ in names alone are left out."""
    seen: dict[tuple[str, ...], str] = {}
    for name, boot in machines().items():
        shape = (name.partition("/")[0], boot.role, *(item.path for item in boot.files), *boot.enable)
        seen.setdefault(shape, name)
    return {name: machines()[name] for name in seen.values()}


def flags_of(unit: str) -> dict[str, str]:
    """Flags of a unit's ExecStart, read as systemd reads it: one line, continued by backslashes."""
    line = next(line for line in unit.replace("\\\n", " ").splitlines() if line.startswith("ExecStart="))
    return {name: value.replace("%%", "%") for name, value in re.findall(r" --([a-z0-9-]+)=(\S*)", line)}

"""Objects of all clusters of the three regions, planned once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from components.manifests.objects import cluster_objects
from components.manifests.owned import Object
from components.plan.model import ClusterPlan, RegionPlan
from stacks.load import load_plan

REGIONS = ("dev", "southcentralus", "swedencentral")
WORKLOADS = ("Deployment", "DaemonSet")


@cache
def clusters() -> dict[str, tuple[RegionPlan, ClusterPlan]]:
    """Plan of every cluster, by region and cluster name."""
    regions = [load_plan(name) for name in REGIONS]
    return {f"{region.name}/{cluster.name}": (region, cluster) for region in regions for cluster in region.clusters}


@cache
def objects(name: str) -> tuple[Object, ...]:
    """Objects of one cluster."""
    return cluster_objects(*clusters()[name])


def of_kind(name: str, *kinds: str) -> list[Object]:
    """Objects of some kinds of one cluster."""
    return [item for item in objects(name) if item["kind"] in kinds]


def containers(name: str) -> Iterator[tuple[str, Object]]:
    """Every container, init containers included, with "<workload>/<container>"."""
    for item in of_kind(name, *WORKLOADS):
        spec = item["spec"]["template"]["spec"]
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            yield f"{item['metadata']['name']}/{container['name']}", container

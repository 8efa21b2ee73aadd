"""Resource graphs of clusters: the shipped dev region, and a small region with the features that dev lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest

from components.plan.model import ClusterPlan, RegionPlan
from components.plan.region import plan_region
from components.spec.cluster import Cluster
from components.spec.pool import Capacity
from components.spec.region import Region
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph, Resource, reveal
from rehearsal.program.run import run_program
from stacks.load import load_catalog, load_region
from stacks.program import make

RESERVATION = (
    "/subscriptions/a3c5e1f0-1b2d-4e6f-8a90-b1c2d3e4f501/resourceGroups/reserved/providers/Microsoft.Compute/capacityReservationGroups/a100"
)
SECOND_SUBSCRIPTION = "a3c5e1f0-1b2d-4e6f-8a90-b1c2d3e4f599"
SCALE_SET = "azure-native:compute:VirtualMachineScaleSet"
MACHINE = "azure-native:compute:VirtualMachine"


@cache
def planned(name: str) -> RegionPlan:
    """Plan of "dev", or of "small": two clusters of southcentralus, cut to a few sets and in a subscription each.

    One pool is reserved, one load-balanced.
    """
    catalog = load_catalog()
    if name == "dev":
        return plan_region(load_region("dev", catalog), catalog)
    region = load_region("southcentralus", catalog)
    clusters = tuple(_small(cluster) for cluster in region.clusters if cluster.name in ("research-a", "frontier"))
    return plan_region(Region.model_copy(region, update={"clusters": clusters}), catalog)


def _small(cluster: Cluster) -> Cluster:
    pools: dict[str, dict[str, Any]] = {
        "h100": {"nodes": 450, "create_at_once": 200},
        "a100": {"nodes": 120, "capacity": Capacity.RESERVED, "reservation_group": RESERVATION},
        "nc-a100": {"nodes": 20},
        "cpu": {"nodes": 4},
    }
    cut = tuple(pool.model_copy(update=pools[pool.name]) for pool in cluster.pools)
    return cluster.model_copy(update={"pools": cut, "subscription": SECOND_SUBSCRIPTION if cluster.name == "frontier" else None})


@cache
def graph(name: str) -> Graph:
    """The region's own stack, on its rehearsed base stack."""
    plan = planned(name)
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    base = run_program(lambda: make(plan, plan.base_stack), "gpufleet", plan.base_stack, backend=backend)
    outputs = {plan.base_stack: base.stack_outputs}
    return run_program(lambda: make(plan, plan.stack), "gpufleet", plan.stack, backend=backend, stack_outputs=outputs)


def of_cluster(name: str, cluster: ClusterPlan) -> tuple[Resource, ...]:
    """Everything below one cluster's component."""
    found = graph(name)
    (top,) = (item for item in found.of_type("gpufleet:cluster:Cluster") if item.name.endswith(f"-{cluster.name}"))
    return found.descendants(top.urn)


def named(resources: Iterable[Resource], resource_type: str, key: str) -> dict[str, Mapping[str, Any]]:
    """Inputs of the resources of a type, secrets shown, by their physical name; a name that comes twice is refused."""
    found: dict[str, Mapping[str, Any]] = {}
    for resource in resources:
        if resource.type == resource_type:
            inputs = reveal(resource.inputs)
            assert inputs[key] not in found, f"{inputs[key]} is made twice"
            found[inputs[key]] = inputs
    return found


def clusters() -> list[tuple[str, ClusterPlan]]:
    """Every cluster of the rehearsed regions, with its region's name."""
    return [(name, cluster) for name in ("dev", "small") for cluster in planned(name).clusters]


EVERY_CLUSTER = pytest.mark.parametrize(("name", "cluster"), clusters(), ids=lambda value: getattr(value, "name", value))
EVERY_REGION = pytest.mark.parametrize("name", ["dev", "small"])

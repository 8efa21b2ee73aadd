"""Checks that a region that was brought up has every machine that it plans, each with its addresses."""

from __future__ import annotations

from collections.abc import Iterator

from components.plan import naming
from components.plan.model import ClusterPlan, RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.compute.machine import SUCCEEDED
from rehearsal.checks.finding import Finding

ALL_UP = "every planned machine is up, with an address of its own for each of its ipConfigurations"
REMEDY = "bring the region up by itself to see why: gpufleet up"


def brought_up(plan: RegionPlan, cloud: Cloud) -> Iterator[Finding]:
    """What a plan has in scale sets and the model of Azure has not."""
    for cluster in plan.clusters:
        taken: set[int] = set()
        for name, capacity, each in scale_sets(cluster):
            found = cloud.find(scale_set_id(cluster, name))
            up = [one for one in state_of(found).living() if one.state == SUCCEEDED] if found is not None else []
            own = {address for one in up for address in one.addresses}
            if len(up) != capacity:
                yield Finding(ALL_UP, f"{cluster.name}/{name}", f"{capacity:,} machines", f"{len(up):,}", REMEDY)
            elif len(own - taken) != capacity * each:
                yield Finding(ALL_UP, f"{cluster.name}/{name}", f"{capacity * each:,} addresses", f"{len(own - taken):,}", REMEDY)
            taken |= own


def scale_set_id(cluster: ClusterPlan, name: str) -> str:
    """Azure resource id of a cluster's scale set."""
    return naming.resource_id(cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachineScaleSets", name)


def scale_sets(cluster: ClusterPlan) -> Iterator[tuple[str, int, int]]:
    """Name, machines and addresses per machine of each scale set."""
    yield cluster.api_servers.name, cluster.api_servers.count, 1
    for pool in cluster.pools:
        yield from ((one.name, one.capacity, pool.addresses_per_machine) for one in pool.scale_sets)

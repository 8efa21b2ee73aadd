"""Check that a region on the model has every planned machine, each with its addresses."""

from __future__ import annotations

from collections.abc import Iterator

from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.compute.machine import SUCCEEDED
from rehearsal.checks.finding import Finding
from rehearsal.local_up.machine_counts import scale_set_id, scale_sets

ALL_UP = "every planned machine is up, with its own address for each of its ipConfigurations"
REMEDY = "run gpufleet up for this region to see the reason"


def check_machines(plan: RegionPlan, cloud: Cloud) -> Iterator[Finding]:
    """Yield a finding for each scale set that lacks machines or addresses in the model."""
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

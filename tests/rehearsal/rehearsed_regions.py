"""Rehearsed regions for the tests of what is done with a graph: the shipped ones, and a small one with both ways of reaching a cluster."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.cluster import Cluster
from components.spec.region import Region
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph, Resource, reveal
from rehearsal.program.run import run_program
from stacks.load import load_catalog, load_region
from stacks.program import make

SHIPPED = ("dev", "swedencentral", "southcentralus")


@dataclass(frozen=True)
class Rehearsed:
    """A region's plan, and the graphs of its two stacks."""

    plan: RegionPlan
    base: Graph
    clusters: Graph

    def changed(self, name: str, change: Callable[[dict[str, Any]], None]) -> "Rehearsed":
        """The same with the inputs of the resources whose Azure id ends with a name changed in place."""
        touched: list[Resource] = []

        def copy(resource: Resource) -> Resource:
            if resource.id is None or not resource.id.endswith(f"/{name}"):
                return resource
            inputs = deepcopy(reveal(resource.inputs))
            change(inputs)
            touched.append(resource)
            return replace(resource, inputs=inputs)

        base, clusters = (replace(graph, resources=tuple(map(copy, graph.resources))) for graph in (self.base, self.clusters))
        assert touched, f"no resource is called {name}"
        return Rehearsed(self.plan, base, clusters)

    def without(self, name: str) -> "Rehearsed":
        """The same without the resource whose Azure id ends with a name."""
        base, clusters = (
            replace(graph, resources=tuple(item for item in graph if not (item.id or "").endswith(f"/{name}")))
            for graph in (self.base, self.clusters)
        )
        assert len(base) + len(clusters) < len(self.base) + len(self.clusters), f"no resource is called {name}"
        return Rehearsed(self.plan, base, clusters)

    def joined_by(self, *resources: Resource) -> "Rehearsed":
        """The same with further resources in the clusters' stack."""
        return replace(self, clusters=replace(self.clusters, resources=(*self.clusters.resources, *resources)))

    def resource(self, name: str) -> Resource:
        """The resource whose Azure id ends with a name."""
        (found,) = (item for item in (*self.base, *self.clusters) if (item.id or "").endswith(f"/{name}"))
        return found


@cache
def rehearsed(name: str) -> Rehearsed:
    """A shipped region, or "pair"."""
    catalog = load_catalog()
    plan = plan_region(_pair(load_region("dev", catalog)) if name == "pair" else load_region(name, catalog), catalog)
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    base = run_program(lambda: make(plan, plan.base_stack), "gpufleet", plan.base_stack, backend=backend)
    outputs = {plan.base_stack: base.stack_outputs}
    return Rehearsed(
        plan, base, run_program(lambda: make(plan, plan.stack), "gpufleet", plan.stack, backend=backend, stack_outputs=outputs)
    )


def _pair(dev: Region) -> Region:
    """The dev region with two clusters: near is peered and has an ingress, far has InfiniBand and sits behind a private link."""
    document = dev.clusters[0].model_dump(mode="json")
    cpu, gpu = document["pools"]
    near = {**document, "name": "near", "pools": [{**cpu, "load_balanced": True}, gpu]}
    infiniband = {
        **gpu,
        "vm_size": "Standard_ND96isr_H100_v5",
        "interconnect": "infiniband",
        "image": "nd-h100@2026.11.0",
        "capacity": "regular",
    }
    far = {**document, "name": "far", "slot": 1, "connectivity": "private-link", "pools": [cpu, infiniband]}
    clusters = tuple(Cluster.model_validate_json(json.dumps(item)) for item in (near, far))
    return dev.model_copy(update={"name": "pair", "address_space": "10.48.0.0/12", "clusters": clusters})

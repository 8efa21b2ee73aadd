"""Region of the benchmark: southcentralus' first cluster, one machine of each role, and the requested number of nodes."""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from bench.regions import ADDRESS_SPACE, MODEL, Quoting
from components.plan.model import RegionPlan
from stacks.load import load_catalog, load_plan, load_region

NAME = "bench"
TEAM = "pretraining"
"""Team in whose namespace the measured pods run, which has all nodes."""


def one_cluster(nodes: int, folder: Path) -> RegionPlan:
    """Write the region's file into a folder and plan it as any other."""
    region = load_region(MODEL, load_catalog()).model_dump(mode="json", exclude_none=True)
    document = region | {"name": NAME, "address_space": ADDRESS_SPACE, "clusters": [_cluster(region["clusters"][0], nodes)]}
    path = folder / f"{NAME}.yaml"
    path.write_text(yaml.dump(document, Dumper=Quoting, sort_keys=False, width=sys.maxsize), encoding="utf-8")
    return load_plan(str(path))


def _cluster(model: dict[str, Any], nodes: int) -> dict[str, Any]:
    """One etcd member, one for events, one API server, one pool of ND96isr_H100_v5."""
    cluster = deepcopy(model)
    for machines in cluster["control_plane"].values():
        machines["count"] = 1
    (pool,) = cluster["pools"]
    pool |= {"nodes": nodes, "create_at_once": min(nodes, pool["create_at_once"]), "largest_gang": min(nodes, pool["largest_gang"])}
    budget = cluster["rotation"]["budget"]
    budget["machines"] = min(nodes, budget["machines"])
    cluster["tenancy"]["allocations"] = [{"team": TEAM, "pool": pool["name"], "nodes": nodes}]
    return cluster

"""Settings for a node's pod network are written for both modes, and the node program reads them back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from cni.node.settings import parse
from cni.settings import settings
from components.boot.machine import BootFile
from components.boot.node import boot_nodes
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan
from components.plan.region import plan_region
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog, load_plan

POOLS = [
    pytest.param(cluster, pool, id=f"{cluster.name}/{pool.name}")
    for name in ("dev", "southcentralus", "swedencentral")
    for cluster in load_plan(name).clusters
    for pool in cluster.pools
]
OF_THE_NETWORK = ("/etc/gpufleet/network.json", "/etc/cni/net.d/", "gpufleet-node.service", "gpufleet-azure-endpoints.service")


def with_cni(region: str, cni: str) -> RegionPlan:
    """A region whose first cluster has another pod network."""
    document: dict[str, Any] = copy.deepcopy(yaml.safe_load((REGIONS / f"{region}.yaml").read_text()))
    document["clusters"][0].setdefault("pod_network", {})["cni"] = cni
    return plan_region(Region.model_validate(document), load_catalog())


@pytest.mark.parametrize(("region", "cni"), [("dev", "native"), ("dev", "azure-vnet"), ("swedencentral", "native")])
def test_the_files_that_land_on_a_node_are_as_written_down(region: str, cni: str, golden: Callable[[str, str], None]) -> None:
    plan = with_cni(region, cni)
    boot = boot_nodes(plan, plan.clusters[0], plan.clusters[0].pools[0])[0]
    found = [item for item in boot.files if any(part in item.path for part in OF_THE_NETWORK)]
    golden(f"cni/{region}-{cni}.txt", "\n".join(map(shown, found)))


def shown(item: BootFile) -> str:
    return f"# {item.path} {item.owner} {item.mode}\n{item.content}"


@pytest.mark.parametrize(("cluster", "pool"), POOLS)
def test_the_node_program_reads_what_the_plan_says(cluster: ClusterPlan, pool: PoolPlan) -> None:
    read, network = parse(json.loads(settings(cluster, pool)), "network.json"), cluster.pod_network
    assert (read.mode, read.internal, read.not_masqueraded) == (network.cni.value, network.internal, network.not_masqueraded)
    assert (read.service_cidr, read.snat, read.mtu) == (cluster.network.service_cidr, True, 1_500)
    assert read.planned_pods + 1 == pool.addresses_per_machine
    assert read.planned_pods + read.host_network_pods == pool.max_pods
    assert (read.shaping is None) == (network.shaping is None)
    if read.shaping is not None and network.shaping is not None:
        assert vars(read.shaping) == vars(network.shaping)

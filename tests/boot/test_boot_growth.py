"""Growth changes no boot file of a machine that is there already: a change would mark thousands of healthy nodes for reimage."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from components.boot.api_server import boot_api_server
from components.boot.machine import custom_data
from components.boot.node import boot_nodes
from components.plan.region import plan_region
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog

CATALOG = load_catalog()
DOCUMENT: dict[str, Any] = yaml.safe_load((REGIONS / "southcentralus.yaml").read_text())


def documents(clusters: list[dict[str, Any]]) -> dict[str, str]:
    """Custom data of every scale set and of every cluster's API servers, by name."""
    region = plan_region(Region.model_validate(dict(DOCUMENT, clusters=clusters)), CATALOG)
    found = {cluster.api_servers.name: custom_data(boot_api_server(region, cluster)) for cluster in region.clusters}
    for cluster in region.clusters:
        for pool in cluster.pools:
            boots = boot_nodes(region, cluster, pool)
            found |= {item.name: custom_data(boot) for item, boot in zip(pool.scale_sets, boots, strict=True)}
    return found


def cluster_of(nodes: int) -> dict[str, Any]:
    """A cluster with one pool of so many nodes."""
    found: dict[str, Any] = copy.deepcopy(DOCUMENT["clusters"][0])
    found["pools"][0] |= {"nodes": nodes, "largest_gang": None}
    found["tenancy"] = {"teams": found["tenancy"]["teams"]}
    return found


def nodes_to(count: int) -> Callable[[dict[str, Any]], None]:
    """Growth of the pool to a number of nodes."""
    return lambda cluster: cluster["pools"][0].update(nodes=count)


def one_pool_more(cluster: dict[str, Any]) -> None:
    """A second pool of GPU machines, before the first."""
    cluster["pools"].insert(0, copy.deepcopy(cluster["pools"][0]) | {"name": "added", "slot": 20, "nodes": 2_000})


def one_team_more(cluster: dict[str, Any]) -> None:
    """A second team."""
    cluster["tenancy"]["teams"].append({"name": "added", "group": "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4aff"})


@pytest.mark.parametrize(
    ("nodes", "grow"),
    [
        (600, nodes_to(601)),
        (900, nodes_to(1_200)),
        (2_900, nodes_to(7_500)),
        (900, one_pool_more),
        (900, one_team_more),
    ],
    ids=["600-to-601", "900-to-1200", "2900-to-7500", "a-pool-more", "a-team-more"],
)
def test_growth_changes_the_boot_files_of_no_machine_that_is_there(nodes: int, grow: Callable[[dict[str, Any]], None]) -> None:
    cluster = cluster_of(nodes)
    before = documents([cluster])
    grow(cluster)
    after = documents([cluster])
    assert set(before) <= set(after)
    assert [name for name, document in before.items() if after[name] != document] == []

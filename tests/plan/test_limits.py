"""A plan that breaks a limit is refused with value, bound, reason and remedy; the shipped regions break none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from components.plan.limits import LimitRow, broken, check
from components.plan.region import plan_region
from components.spec.region import Region
from gpufleet.cli import group
from stacks.load import REGIONS, load_catalog, load_plan, region_names

Document = dict[str, object]
Edit = Callable[[Document], None]


def planned(region: str, edit: Edit) -> tuple[LimitRow, ...]:
    """Broken rows of a shipped region after an edit of its document."""
    document = yaml.safe_load((REGIONS / f"{region}.yaml").read_text())
    edit(document)
    return broken(plan_region(Region.model_validate(document), load_catalog()))


def edit(path: str, value: object) -> Edit:
    """Return an edit that sets one path of a document, written as clusters.0.pools.0.nodes."""

    def apply(document: Document) -> None:
        node: object = document
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in parents:
            node = node[part]  # type: ignore[index]
        node[last] = value  # type: ignore[index]

    return apply


def fourth_cluster(document: Document) -> None:
    """Add a fourth cluster of 7,500 nodes in the region's subscription."""
    clusters = document["clusters"]
    assert isinstance(clusters, list)
    clusters.append({**clusters[0], "name": "research-c", "slot": 3})


def peer_all(document: Document) -> None:
    """Peer every cluster with the hub."""
    clusters = document["clusters"]
    assert isinstance(clusters, list)
    for cluster in clusters:
        cluster["connectivity"] = "peering"


def fifteen_clusters(document: Document) -> None:
    """Make fifteen clusters of the first, in a block that has room for them."""
    clusters = document["clusters"]
    assert isinstance(clusters, list)
    document["address_space"] = "10.0.0.0/9"
    clusters[:] = [{**clusters[0], "name": f"research-{slot}", "slot": slot} for slot in range(15)]


def services_pool(nodes: int) -> Edit:
    """Replace the first cluster's pools by one load-balanced CPU pool."""

    def apply(document: Document) -> None:
        clusters = document["clusters"]
        assert isinstance(clusters, list)
        pool = dict(clusters[2]["pools"][3], nodes=nodes, slot=0, pods_per_node=7)
        clusters[0]["pools"], clusters[0]["tenancy"]["allocations"] = [pool], []

    return apply


REFUSED = [
    (
        "31 addresses for each of 7,500 nodes",
        edit("clusters.0.pools.0.pods_per_node", 30),
        "private addresses per virtual network",
        "232,5",
    ),
    (
        "101 InfiniBand machines in one set",
        edit("clusters.0.pools.0.machines_per_set", 101),
        "machines per scale set",
        "101 machines is over the bound of 100: InfiniBand needs one placement group",
    ),
    (
        "a gang larger than its InfiniBand domain",
        edit("clusters.0.pools.0.largest_gang", 128),
        "machines of the largest gang",
        "a gang must fit one set",
    ),
    (
        "a fourth cluster of 7,500 nodes in one subscription",
        fourth_cluster,
        "machines per subscription and region",
        "give the cluster a subscription of its own",
    ),
    ("an even number of etcd members", edit("clusters.1.control_plane.etcd.count", 4), "etcd members", "use 3, 5 or 7 members"),
    (
        "API servers too small for the nodes",
        edit("clusters.0.control_plane.api_servers.vm_size", "Standard_D16s_v5"),
        "API server memory",
        "69 GiB is over the bound of 64",
    ),
    (
        "a load balancer over 5,000 backends",
        services_pool(5_001),
        "machines behind a load balancer",
        "5,001 machines is over the bound of 5,000",
    ),
    ("all clusters peered with the hub", peer_all, "private addresses per peered group", "set connectivity: private-link"),
    (
        "an etcd machine without local disk",
        edit("clusters.0.control_plane.etcd.vm_size", "Standard_D8s_v5"),
        "etcd disk",
        "more local NVMe",
    ),
    ("three members in two zones", edit("clusters.0.control_plane.events_etcd.zones", ["1", "2"]), "etcd members in one zone", "no quorum"),
    ("7,501 nodes over two pools", edit("clusters.2.pools.3.nodes", 25), "nodes per cluster", "7,501"),
    (
        "more creates at once than replicas serve",
        edit("clusters.0.pools.0.create_at_once", 2_500),
        "image replicas",
        "lower create_at_once",
    ),
    ("more vCPUs than were granted", edit("quotas.0.vcpus", 1_919_999), "vCPUs granted", "vcpus: 1920000}"),
    (
        "more vCPUs than were granted to all families",
        lambda document: document["quotas"].append({"family": "cores", "vcpus": 2_110_079}),  # type: ignore[attr-defined]
        "vCPUs granted to all families together",
        "/cores: vCPUs granted to all families together: 2,110,080 vCPU is over the bound of 2,110,079",
    ),
    (
        "a rotation faster than Azure's bucket",
        edit("clusters.0.rotation.azure_calls_per_minute", 501),
        "instance operations per minute and subscription",
        "429 beyond it; write at most azure_calls_per_minute: 166 under rotation of research-a, research-b, frontier",
    ),
    (
        "SNAT ports shared by too many",
        edit("clusters.0.nat_prefix_length", 31),
        "SNAT ports per machine and destination",
        "is under the bound of 256",
    ),
    (
        "connections to one destination shared by too many",
        edit("clusters.0.nat_prefix_length", 30),
        "NAT connections per machine to one destination",
        "research-a/nodes-00: NAT connections per machine to one destination: 200 connections is under the bound of 256",
    ),
    (
        "more network resources than Azure takes writes",
        fifteen_clusters,
        "network resources written by one update",
        "Azure takes 1,000 writes to Microsoft.Network in 5 minutes",
    ),
    (
        "allocations beyond the pool",
        edit("clusters.0.tenancy.allocations.0.nodes", 7_000),
        "machines allocated to teams",
        "lower the allocations",
    ),
]


def test_what_machines_fetch_through_a_nat_gateway_has_a_use_and_no_bound_since_nobody_declares_a_need() -> None:
    rows = [row for row in check(load_plan("southcentralus")) if row.limit == "NAT throughput per machine"]
    assert [(row.where, row.use, row.bound, row.broken) for row in rows] == [
        (f"{cluster}/nodes-00", 50, None, False) for cluster in ("research-a", "research-b", "frontier")
    ]


def etcd_remedy(count: int, zones: list[str]) -> str:
    """Return the remedy of the zone rule for the first cluster's etcd with a number of members over zones."""

    def apply(document: Document) -> None:
        edit("clusters.0.control_plane.etcd.count", count)(document)
        edit("clusters.0.control_plane.etcd.zones", zones)(document)

    (found,) = (row for row in planned("southcentralus", apply) if row.limit == "etcd members in one zone")
    return found.remedy


def test_the_advice_for_etcd_leads_to_a_ring_that_outlives_any_zone() -> None:
    assert etcd_remedy(4, ["1", "2", "3"]).startswith("use an odd number of members; ")
    assert etcd_remedy(5, ["1", "2"]) == "name all 3 zones"
    assert etcd_remedy(4, ["1"]) == "name all 3 zones, and use an odd number of members"
    for count in (3, 5, 7):
        document = edit("clusters.0.control_plane.etcd.count", count)
        assert not [row for row in planned("southcentralus", document) if "etcd" in row.limit]


def test_a_pool_is_sent_to_a_lower_slot_only_where_one_helps() -> None:
    def remedies(slot: int, nodes: int) -> list[str]:
        def apply(document: Document) -> None:
            edit("clusters.0.pools.0.slot", slot)(document)
            edit("clusters.0.pools.0.nodes", nodes)(document)
            edit("clusters.0.pools.0.pods_per_node", 100)(document)

        return [row.remedy for row in planned("southcentralus", apply) if row.limit == "last node-subnet slot"]

    assert remedies(20, 1_000) == ["give the pool slot 0, or lower its nodes"]
    assert remedies(0, 7_500) == remedies(4, 7_500) == ["lower pods_per_node or nodes, or move nodes to another cluster"]


@pytest.mark.parametrize("name", region_names())
def test_a_shipped_region_breaks_no_limit(name: str) -> None:
    assert [row.sentence() for row in broken(load_plan(name))] == []


@pytest.mark.parametrize(("change", "limit", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_plan_beyond_a_limit_is_refused_with_reason_and_remedy(change: Edit, limit: str, words: str) -> None:
    sentences = [row.sentence() for row in planned("southcentralus", change) if row.limit == limit]
    assert len(sentences) >= 1
    assert any(words in sentence for sentence in sentences), sentences
    assert all("\n" not in sentence for sentence in sentences)


def test_every_row_names_its_source_and_what_to_do() -> None:
    for name in region_names():
        for row in check(load_plan(name)):
            assert re.match(r"https://|docs/", row.source), row
            assert row.reason
            assert row.remedy
            if row.source.startswith("docs/"):
                assert (Path(__file__).parents[2] / row.source).exists(), row.source


def test_check_exits_1_with_the_breach_in_words(tmp_path: Path) -> None:
    document = yaml.safe_load((REGIONS / "southcentralus.yaml").read_text())
    edit("clusters.0.pools.0.largest_gang", 128)(document)
    (tmp_path / "southcentralus.yaml").write_text(json.dumps(document))
    result = CliRunner().invoke(group, ["check", str(tmp_path / "southcentralus.yaml")])
    assert result.exit_code == 1
    assert "broken: research-a/h100: machines of the largest gang: 128 machines is over the bound of 100" in result.output


def test_check_as_json_holds_every_row() -> None:
    result = CliRunner().invoke(group, ["check", "dev", "--json"])
    report = json.loads(result.output)
    assert result.exit_code == 0
    assert report["broken"] == 0
    assert len(report["rows"]) == len(check(load_plan("dev")))


def test_a_pin_that_moves_on_leaves_the_old_version_in_the_gallery() -> None:
    document = yaml.safe_load((REGIONS / "dev.yaml").read_text())
    edit("clusters.0.pools.0.image", "cpu@2026.10.0")(document)
    moved = plan_region(Region.model_validate(document), load_catalog())
    assert {image.version_id for image in moved.gallery.images} == {image.version_id for image in load_plan("dev").gallery.images}
